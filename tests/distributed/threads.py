"""Workers that are threads of one process, for what exchanges objects only."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from keras_lstm_dssm.distributed.collectives import Cluster


class ThreadCollectives:
    """Has the methods of `Collectives` that work outside of graphs."""

    def __init__(self, cluster: Cluster, slots: list, barrier: Any) -> None:
        self.cluster = cluster
        self._slots = slots
        self._barrier = barrier

    def gather_objects(self, value: Any) -> list[Any]:
        self._slots[self.cluster.rank] = value
        self._barrier.wait(10)
        values = list(self._slots)
        self._barrier.wait(10)
        return values

    def sum_counts(self, counts: np.ndarray) -> np.ndarray:
        return np.sum(self.gather_objects(counts), axis=0)


def run_workers(count: int, work: Callable[[Any], Any]) -> list[Any]:
    """What each worker's call of `work(collectives)` returns or raises."""
    addresses = tuple(f"host{rank}:1" for rank in range(count))
    slots, barrier = [None] * count, threading.Barrier(count)

    def run(rank: int) -> Any:
        cluster = Cluster(addresses, rank)
        try:
            return work(ThreadCollectives(cluster, slots, barrier))
        except BaseException as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))

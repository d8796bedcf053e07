"""Workers that are threads of one process, for what exchanges objects only."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_lstm_dssm.distributed.cluster import Cluster


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
    results: list[Any] = [None] * count

    def run(rank: int) -> None:
        cluster = Cluster(addresses, rank)
        try:
            results[rank] = work(ThreadCollectives(cluster, slots, barrier))
        except BaseException as error:
            results[rank] = error

    threads = [
        threading.Thread(target=run, args=[rank]) for rank in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results

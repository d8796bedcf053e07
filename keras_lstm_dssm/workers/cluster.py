"""Cluster: which processes train together, as `TF_CONFIG` says."""

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from keras_lstm_dssm.errors import InputError

TF_CONFIG = "TF_CONFIG"

_EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


class Cluster(NamedTuple):
    """Describes the processes of a training and which of them this one is.

    Attributes:
        workers: Address of each worker, `"host:port"`.
        rank: Index of this process among them. Worker 0 writes the files.
    """

    workers: tuple[str, ...]
    rank: int

    @property
    def size(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def first(self) -> bool:
        """Whether this is worker 0, which writes the files of the run."""
        return self.rank == 0

    def describe(self, rank: int) -> str:
        """Names a worker in messages.

        Example:
        >>> Cluster(("a:1", "b:1"), 0).describe(1)
        'worker 1 (b:1)'
        """
        return f"worker {rank} ({self.workers[rank]})"

    def share(self, count: int, rank: int | None = None) -> int:
        """Returns a worker's part of a number, such as the batch size.

        Args:
            count: The number that all workers have together.
            rank: The worker. Default `None`: this one.

        Example:
        >>> [Cluster(("a:1", "b:1"), 0).share(5, rank) for rank in (0, 1)]
        [3, 2]
        """
        rank = self.rank if rank is None else rank
        return count // self.size + (rank < count % self.size)

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None
    ) -> "Cluster":
        """Reads `TF_CONFIG`, which Ray Train and other launchers set.

        Args:
            environment: Name -> value. Default `None`: `os.environ`.

        Raises:
            InputError: It is missing, or does not describe workers.

        Example:
        >>> config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
        >>> Cluster.from_environment({"TF_CONFIG": config}).rank
        1
        """  # noqa: E501
        text = (os.environ if environment is None else environment).get(
            TF_CONFIG
        )
        if not text:
            raise InputError(
                f"{TF_CONFIG} is not set: expected the addresses of all "
                f"workers and the index of this one, such as {_EXAMPLE}"
            )
        try:
            config = json.loads(text)
            jobs, task = config["cluster"], config["task"]
            cluster = cls(tuple(jobs["worker"]), int(task["index"]))
            if (
                set(jobs) != {"worker"}
                or task["type"] != "worker"
                or not 0 <= cluster.rank < cluster.size
                or not all(":" in address for address in cluster.workers)
            ):
                raise ValueError("there are workers only, of known addresses")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{TF_CONFIG}: found {text} ({error}), expected the addresses "
                "of all workers and the index of this one, such as "
                f"{_EXAMPLE}"
            ) from None
        return cluster


def in_cluster() -> bool:
    """Returns whether a launcher has made this process one of several."""
    return bool(os.environ.get(TF_CONFIG)) and (
        Cluster.from_environment().size > 1
    )

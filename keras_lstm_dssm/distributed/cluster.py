"""The addresses of all workers, from `TF_CONFIG`, and their rendezvous."""

import errno
import json
import os
import socket
import threading
import time
from contextlib import suppress
from typing import NamedTuple

from keras_lstm_dssm.errors import InputError
from lstm_dssm_client.options import is_loopback

TF_CONFIG = "TF_CONFIG"

_EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


class Cluster(NamedTuple):
    """Describes the processes of a training and which of them this one is."""

    workers: tuple[str, ...]  # address of each worker, `"host:port"`
    rank: int  # index of this process among them. Worker 0 writes the files

    @property
    def size(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def first(self) -> bool:
        """Whether this is worker 0, which writes the files of the run."""
        return self.rank == 0

    def describe(self, rank: int) -> str:
        """Names a worker in messages."""
        return f"worker {rank} ({self.workers[rank]})"

    def share(self, count: int, rank: int | None = None) -> int:
        """Returns a worker's part of a number, such as the batch size."""
        rank = self.rank if rank is None else rank
        return count // self.size + (rank < count % self.size)

    @classmethod
    def from_environment(cls) -> "Cluster":
        """Reads `TF_CONFIG`, which Ray Train and other launchers set."""
        text = os.environ.get(TF_CONFIG)
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


_HELLO = b"lstm-dssm worker %d of %d\n"
_RETRY_SECONDS = 0.1
_CALL_SECONDS = 5.0


def meet(cluster: Cluster, seconds: float) -> None:
    """Waits until each worker has called each other one.

    TensorFlow waits without end, and uninterruptibly, for a worker that never
    starts. So the workers first meet by calls to the same ports, which are
    free again when this function returns.
    """
    deadline = time.monotonic() + seconds
    called_by: set[int] = set()
    with _listener(cluster) as listener:
        answering = threading.Thread(
            target=_answer, args=[listener, cluster, called_by], daemon=True
        )
        answering.start()
        others = {*range(cluster.size)} - {cluster.rank}
        answered: set[int] = set()
        while answered != others or called_by != others:
            for rank in others - answered:
                if _call(cluster, rank):
                    answered.add(rank)
            if time.monotonic() > deadline:
                missing = sorted(others - (answered & called_by))
                names = ", ".join(cluster.describe(rank) for rank in missing)
                raise InputError(
                    f"{cluster.describe(cluster.rank)} waited "
                    f"{seconds / 60:.3g} minutes for {names}: start all workers"
                    " within that time, or wait longer (--start_minutes)"
                )
            time.sleep(_RETRY_SECONDS)
        listener.shutdown(socket.SHUT_RDWR)  # ends the thread
        answering.join()


def _listener(cluster: Cluster) -> socket.socket:
    """Listens at the address of this worker, not at those of other networks.

    The addresses of a host may be those of a proxy before it; and on Debian
    its own name is at loopback, where others do not reach it. It then listens
    at all addresses, as TensorFlow does anyway.
    """
    host, port = _split(cluster.workers[cluster.rank])
    found: list[tuple[socket.AddressFamily, str]] = []
    with suppress(OSError, UnicodeError):
        found = [
            (family, str(address[0]))
            for family, *_, address in socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
            if is_loopback(host) or not is_loopback(str(address[0]))
        ]
    everywhere = socket.AF_INET6 if ":" in host else socket.AF_INET
    for family, address in [*found, (everywhere, "")]:
        try:
            return socket.create_server(
                (address, port), family=family, backlog=cluster.size
            )
        except OSError as error:
            if address and error.errno == errno.EADDRNOTAVAIL:
                continue
            raise InputError(
                f"{cluster.describe(cluster.rank)}: cannot listen at port"
                f" {port} ({error.strerror}), expected a free port: end what"
                " uses it, or name another in TF_CONFIG"
            ) from error
    raise AssertionError("all addresses can be listened at")


def _answer(
    listener: socket.socket, cluster: Cluster, called_by: set[int]
) -> None:
    """Answers calls of other workers until the listener is shut down."""
    known = {
        _HELLO % (rank, cluster.size): rank for rank in range(cluster.size)
    }
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            connection.settimeout(_CALL_SECONDS)
            rank = known.get(connection.makefile("rb").readline(100))
            if rank is not None:
                connection.sendall(_HELLO % (cluster.rank, cluster.size))
                called_by.add(rank)


def _call(cluster: Cluster, rank: int) -> bool:
    """Returns whether a worker has answered."""
    with suppress(OSError):
        address = _split(cluster.workers[rank])
        with socket.create_connection(address, _CALL_SECONDS) as connection:
            connection.sendall(_HELLO % (cluster.rank, cluster.size))
            answer = connection.makefile("rb").readline(100)
            return answer == _HELLO % (rank, cluster.size)
    return False


def _split(address: str) -> tuple[str, int]:
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)

"""meet: waits until all workers have started."""

import socket
import threading
import time
from contextlib import suppress

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.workers.cluster import Cluster

_HELLO = b"lstm-dssm worker %d of %d\n"
_RETRY_SECONDS = 0.1
_CALL_SECONDS = 5.0


def meet(cluster: Cluster, seconds: float) -> None:
    """Waits until each worker has called each other one.

    TensorFlow waits without end, and uninterruptibly, for a worker that never
    starts. So the workers first meet by calls to the same ports, which are
    free again when this function returns.

    Args:
        cluster: The workers.
        seconds: How long to wait.

    Raises:
        InputError: A worker is missing, or this worker's port is in use.
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
    host, port = _split(cluster.workers[cluster.rank])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            ("", port), family=family, backlog=cluster.size
        )
    except OSError as error:
        raise InputError(
            f"{cluster.describe(cluster.rank)}: cannot listen at port {port} "
            f"({error.strerror}), expected a free port: end what uses it, or "
            "name another in TF_CONFIG"
        ) from error


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

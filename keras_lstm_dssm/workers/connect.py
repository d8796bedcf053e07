"""connect: meets the other workers, or ends the process."""

import os
import socket
import sys
import threading

import tensorflow as tf

from keras_lstm_dssm.workers.cluster import Cluster
from keras_lstm_dssm.workers.collectives import Collectives


def connect(cluster: Cluster, minutes: float = 5.0) -> Collectives:
    """Waits until all workers have started, and connects them.

    `TF_CONFIG` must be set, from which TensorFlow takes the addresses too.
    To be called before anything else of TensorFlow runs in the process.
    TensorFlow waits without end for a worker that never starts, and cannot
    be interrupted: after `minutes`, the process prints a line that names the
    missing workers, and ends with the exit code 1.

    Args:
        cluster: The workers.
        minutes: How long to wait.
    """
    timer = threading.Timer(60 * minutes, _give_up, [cluster, minutes])
    timer.daemon = True
    timer.start()
    # Nothing is created in its scope: it starts this worker's server, and
    # watches that the others are alive.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    collectives = Collectives(cluster, strategy)
    collectives.barrier()
    timer.cancel()
    return collectives


def _give_up(cluster: Cluster, minutes: float) -> None:
    missing = [
        cluster.describe(rank)
        for rank, address in enumerate(cluster.workers)
        if rank != cluster.rank and not _answers(address)
    ]
    names = ", ".join(missing) or "a worker"
    print(
        f"error: {cluster.describe(cluster.rank)} waited {minutes:g} minutes "
        f"for {names}: start all workers within that time, or wait longer "
        "(--start_minutes)",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)


def _answers(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 2):
            return True
    except OSError:
        return False

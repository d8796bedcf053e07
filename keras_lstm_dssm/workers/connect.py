"""connect: meets the other workers, and makes the collectives."""

import tensorflow as tf

from keras_lstm_dssm.workers.cluster import Cluster
from keras_lstm_dssm.workers.collectives import Collectives
from keras_lstm_dssm.workers.meeting import meet


def connect(cluster: Cluster, minutes: float = 5.0) -> Collectives:
    """Waits until all workers have started, and connects them.

    `TF_CONFIG` must be set, from which TensorFlow takes the addresses too.
    To be called before anything else of TensorFlow runs in the process.

    Args:
        cluster: The workers.
        minutes: How long to wait for the others.

    Raises:
        InputError: A worker is missing.
    """
    meet(cluster, 60 * minutes)
    # Nothing is created in its scope: it starts this worker's server, and
    # watches that the others are alive.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    collectives = Collectives(cluster, strategy)
    collectives.barrier()
    return collectives

"""Workers: several processes that take one training step together."""

from keras_lstm_dssm.workers.cluster import Cluster
from keras_lstm_dssm.workers.collectives import Collectives
from keras_lstm_dssm.workers.connect import connect
from keras_lstm_dssm.workers.joint_step import (
    JointRows,
    JointStep,
    JointTitles,
)

__all__ = [
    "Cluster",
    "Collectives",
    "JointRows",
    "JointStep",
    "JointTitles",
    "connect",
]

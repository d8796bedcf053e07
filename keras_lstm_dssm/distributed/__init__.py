"""Several processes that train together: one step, one model."""

from keras_lstm_dssm.distributed.cluster import Cluster
from keras_lstm_dssm.distributed.collectives import Collectives, connect
from keras_lstm_dssm.distributed.joint_step import (
    JointRows,
    JointStep,
    JointTitles,
)
from keras_lstm_dssm.distributed.on_ray import train_on_ray
from keras_lstm_dssm.distributed.worker import LostWorker, train_worker

__all__ = [
    "Cluster",
    "Collectives",
    "JointRows",
    "JointStep",
    "JointTitles",
    "LostWorker",
    "connect",
    "train_on_ray",
    "train_worker",
]

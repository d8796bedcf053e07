"""Training of one model by several processes, the workers."""

from keras_lstm_dssm.distributed.on_ray import train_on_ray
from keras_lstm_dssm.distributed.worker import LostWorker, train_worker

__all__ = ["LostWorker", "train_on_ray", "train_worker"]

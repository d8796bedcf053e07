"""Training of one model by several processes, the workers."""

from keras_lstm_dssm.distributed.on_ray import train_on_ray

__all__ = ["train_on_ray"]

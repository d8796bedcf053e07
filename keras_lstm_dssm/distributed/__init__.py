"""Trains one model in several processes, which are called workers."""

from keras_lstm_dssm.distributed.on_ray import train_on_ray

__all__ = ["train_on_ray"]

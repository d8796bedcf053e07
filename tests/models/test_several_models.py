"""A process that makes several models is not warned of retracing."""

import logging

import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.models.small_towers import QUERIES, TITLES

MODELS = 6
"""TensorFlow warns from the fifth trace of a function's code on."""


class Messages(logging.Handler):
    """Keeps what TensorFlow logs."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def test_no_function_of_this_package_is_said_to_be_traced_too_often():
    """Keras's own trainer is: `TensorFlowTrainer`, with any models."""
    messages = Messages()
    tf.get_logger().addHandler(messages)
    try:
        for _ in range(MODELS):
            tower = dssm.CombinedEncoder(2, bag=2, sketch=2)
            tower.adapt(TITLES)
            model = dssm.TwoTower(tower, tower, negatives="in_batch")
            model.compile("sgd", dssm.CosineSoftmax(), run_eagerly=True)
            model.fit(QUERIES[:4], TITLES[:4], verbose=0)
            model.query_encoder.encode(QUERIES)
    finally:
        tf.get_logger().removeHandler(messages)
    retraced = [text for text in messages.texts if "retracing" in text]
    assert [t for t in retraced if "<function TensorFlowTrainer" not in t] == []

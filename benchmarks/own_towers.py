"""This package's own towers, trained and run as users do."""

from typing import Any

import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.benchmarks.limit import Work, step_work
from keras_lstm_dssm.benchmarks.measure import fit_seconds

PRESET = "lstm_96"


def new_model(cells: int = 96) -> dssm.TwoTower:
    """A compiled model of the paper's cells, in-batch negatives, Nesterov."""
    model = dssm.TwoTower.from_preset(
        PRESET, negatives="in_batch", encoder_config={"cells": cells}
    )
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(10.0))
    return model


class OwnTowers:
    """`TwoTower` behind the interface that the peers have too."""

    def __init__(self) -> None:
        self.model = new_model()

    def train(self, batches: tf.data.Dataset, steps: int) -> float:
        """Seconds a step, from batches of strings to updated weights."""
        return fit_seconds(self.model, batches, steps)

    def encode(self, titles: list[str], batch_size: int) -> Any:
        """Encodes titles, `[len(titles), 96]`."""
        return self.model.document_encoder.encode(titles, batch_size)

    def work(self, query: tf.Tensor, document: tf.Tensor) -> Work:
        """Counts the work of a training step on a batch of strings."""
        cell = self.model.query_encoder.lstm.cell
        return step_work(
            self.model.query_encoder.trigrams.distinct(query),
            self.model.document_encoder.trigrams.distinct(document),
            cell.units,
            len(cell.gates),
        )

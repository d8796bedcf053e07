"""Exports a pair scorer as a SavedModel from pairs of strings to scores."""

import os
from functools import partial
from pathlib import Path

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.input_ranks import vectors_only
from keras_lstm_dssm.export.saved_module import finite_weights, publish_module
from keras_lstm_dssm.models import PairScorer


class ScorerModule(tf.Module):
    """Holds a pair scorer's variables and the function that a server calls.

    Args:
        model: The trained pair scorer, float32 or float64.

    Raises:
        InputError: A weight is NaN or infinite, or the matcher has not been
            pre-trained.
    """

    def __init__(self, model: PairScorer) -> None:
        super().__init__()
        if model.matcher.needs_pretraining:
            raise InputError(
                f"{type(model.matcher).__name__} has not been pre-trained, so "
                "its scores have no meaning: train the model with dssm.train"
            )
        self.weights = finite_weights(model)
        # The table of a vocabulary; a server's loader fails without it.
        self.resources = model.words.resources
        # A plain function: TensorFlow would save the whole Keras model.
        self._score = partial(model.call, training=False)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "query"),
            tf.TensorSpec([None], tf.string, "document"),
        ]
    )
    @vectors_only
    def serve(
        self, query: tf.Tensor, document: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Scores pairs; the signature `serving_default`.

        A query has one row for each of its documents, because a server that
        batches requests needs the batch as the first dimension of every
        input. Each distinct text is represented once nevertheless, and the
        score of a pair does not depend on the other pairs.

        Args:
            query: Strings `[batch]`.
            document: Strings `[batch]`.

        Returns:
            `score`, float32 `[batch]`, for float64 models, too: clients
            expect it. Only the order within a query has a meaning.
        """
        rows = tf.shape(query)[0]
        equal_rows = tf.debugging.assert_equal(
            *(rows, tf.shape(document)[0]),
            "query and document must have the same number of rows",
        )
        with tf.control_dependencies([equal_rows]):
            query = tf.identity(query)  # no op of the model may fail before
        # Convolutions and poolings have no result for a batch of no texts.
        extra = tf.fill([tf.cast(tf.equal(rows, 0), tf.int32)], "")
        scores = self._score(
            (tf.concat([query, extra], 0), tf.concat([document, extra], 0))
        )
        return {"score": tf.cast(scores[:rows], tf.float32)}


def export_scorer(
    model: PairScorer,
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes a pair scorer as a version of a model, for TF Serving.

    Args:
        model: The trained pair scorer.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.

    Returns:
        `base/<number>`, which holds `saved_model.pb`.

    Raises:
        InputError: The version exists already, a weight is not finite, or
            the matcher has not been pre-trained.

    Example:
    >>> export_scorer(model, "models/scorer")
    PosixPath('models/scorer/1')
    """
    return publish_module(ScorerModule(model), base, version)

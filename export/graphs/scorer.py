"""The graph of a pair scorer, which scores pairs of strings."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import Documents
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.export.graphs.saved_module import (
    Graphs,
    ServedModule,
    ServedWeights,
    signature,
)
from keras_lstm_dssm.models.pair_scorer import PairScorer


class ScorerModule(ServedModule):
    """A trained pair scorer, float32 or float64."""

    def __init__(self, model: PairScorer) -> None:
        super().__init__()
        if model.matcher.needs_pretraining:
            raise InputError(
                f"{type(model.matcher).__name__} has not been pre-trained, so "
                "its scores have no meaning: train the model with dssm.train"
            )
        self._served = ServedWeights(model)
        self.weights = self._served.variables
        # TensorFlow saves a vocabulary table only if the table is an attribute.
        self.resources = model.words.resources
        # TensorFlow would also save a Keras model that is an attribute. The
        # lambda hides the model.
        self._score = lambda *pair: model.call(pair, training=False)

    @signature(query=tf.string, document=tf.string)
    def serve(
        self, query: tf.Tensor, document: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Signature `serving_default`: float32 scores of pairs, `[batch]`."""
        rows = tf.shape(query)[0]
        # An empty batch gets one empty pair, because convolutions need a row.
        extra = tf.fill([tf.cast(tf.equal(rows, 0), tf.int32)], "")
        with self._served.reading():
            scores = self._score(
                tf.concat([query, extra], 0), tf.concat([document, extra], 0)
            )
        return {"score": tf.cast(scores[:rows], tf.float32)}


def scorer_graphs(
    model: PairScorer, documents: Documents | EncodedParts | None, *_: Any
) -> Graphs:
    """Returns "scorer" -> function that makes the exported pair scorer."""
    if documents is not None:
        raise InputError(
            "documents are for the retriever of a KeyVec or of two towers, "
            "and this model is a pair scorer: leave the documents out"
        )
    return {"scorer": lambda: ScorerModule(model)}

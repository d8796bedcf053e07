"""RecurrentCosine: LSTM-RNN and Bi-LSTM-RNN, the cosine of two texts."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.bidirectional_recurrence import run_on_rows
from keras_lstm_dssm.layers.recurrent import PeepholeLSTM
from keras_lstm_dssm.matchers.matcher import Matcher, Texts, as_rows
from keras_lstm_dssm.matchers.mv_lstm import lstm
from keras_lstm_dssm.ops import cosine_pairs
from keras_lstm_dssm.registration import register


@register
class RecurrentCosine(Matcher):
    """Computes a multiple of the cosine of one vector for each text.

        s = scale * cos(h_X(m), h_Y(n))

    LSTM-RNN of Palangi et al. 2016 as Wan et al. 2016 compare with it, with
    their LSTM: a forget gate, no peepholes. In both directions (Bi-LSTM-RNN)
    the vector of a text is [h_forward(m); h_backward(1)].

    Args:
        word_dimension: Width of the word vectors. Default 50.
        units: Width of the LSTM of each direction. Default 50.
        bidirectional: Whether there is a second LSTM, which reads the words
            from last to first. Default `False`.
        share: Whether queries and documents have the same LSTMs. Default
            `True`.
        scale: Factor of the cosine. Default 5. The hinge loss asks for a
            margin of 1 between scores; cosines, which span 2, reach it for
            few pairs, so that with 1 little is learnt.
        forget_bias: Start of the bias of the forget gates. Default 3: their
            values are then near 1, and the vector of a text depends on all of
            its words before anything is learnt. With 0 the weight of a word
            is halved at each further word.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query: `WordSequences` of `pairs` queries, in any order.
        document: `WordSequences` of as many documents, in any order.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        Scores `(pairs,)`, from -scale to scale.

    Example:
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> texts = words(words.distinct(["hex bolt", "steel bolt"]))
    >>> RecurrentCosine(word_dimension=4, units=3)(texts, texts).shape
    TensorShape([2])
    """

    reads_flat = True

    def __init__(
        self,
        word_dimension: int = 50,
        units: int = 50,
        bidirectional: bool = False,
        share: bool = True,
        scale: float = 5.0,
        forget_bias: float = 3.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        self.units = units
        self.bidirectional = bidirectional
        self.share = share
        self.scale = scale
        self.forget_bias = forget_bias
        self.query_lstms = self._lstms("")
        self.document_lstms = (
            self.query_lstms if share else self._lstms("document_")
        )
        self.built = True

    def represent(
        self, texts: Texts, side: str, training: bool = False
    ) -> tf.Tensor:
        """Encodes texts, `(texts, units)`; twice as wide if bidirectional."""
        layers = self.query_lstms if side == "query" else self.document_lstms
        rows = as_rows(texts)
        outputs = run_on_rows(layers, rows, training)
        # Where each LSTM ends: at the last word, or at the first one.
        ends = [rows.starts + rows.lengths - 1, rows.starts]
        return tf.concat(
            [
                tf.gather(part, end)
                for part, end in zip(
                    tf.split(outputs, len(layers), axis=1), ends, strict=False
                )
            ],
            axis=-1,
        )

    def score_rows(
        self,
        query: Texts,
        document: Texts,
        query_rows: tf.Tensor,
        document_rows: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Scores pairs of texts; see `Matcher.score_rows`."""
        if not self.share:
            rows = query_rows, document_rows
            return super().score_rows(query, document, *rows, training)
        # One loop over time for all texts.
        both = as_rows(query).joined(as_rows(document))
        vectors = self.represent(both, "query", training)
        queries = tf.size(query.lengths)
        return self.match(
            tf.gather(vectors, query_rows),
            tf.gather(vectors, queries + document_rows),
            training,
        )

    def match(
        self, query: tf.Tensor, document: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Computes the score of each pair."""
        return self.scale * cosine_pairs(query, document)

    def _lstms(self, prefix: str) -> list[PeepholeLSTM]:
        names = ["forward", "backward"] if self.bidirectional else ["forward"]
        return [
            lstm(
                self.word_dimension,
                self.units,
                forget_bias=self.forget_bias,
                dtype=self.dtype_policy,
                name=prefix + name,
            )
            for name in names
        ]

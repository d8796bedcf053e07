"""Graphs of a pair scorer, of a ranker, and of the search in two stages.

In the latter a ranker orders the documents that a retriever returns.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import Documents, check_documents
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.export.graphs.retriever import (
    MAX_K,
    PADDING_COSINE,
    SearchModule,
    check_retriever_options,
    nearest,
    stored_vectors,
)
from keras_lstm_dssm.export.graphs.saved_module import (
    ServedModule,
    ServedWeights,
    signature,
)
from keras_lstm_dssm.models import PairScorer
from keras_lstm_dssm.ranker import Ranker
from keras_lstm_dssm.ranker.overlap_features import on_grid
from keras_lstm_dssm.ranker.ranker import CANDIDATES, graph_scores
from keras_lstm_dssm.text.strings import as_strings

PADDING_SCORE = float(np.finfo(np.float32).min)
"""Score in the columns beyond a query's own k: the lowest float32 number, as
scores of trees may be negative, and JSON has no infinity."""


def with_equal_rows(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Returns the queries; the graph fails if there are not as many documents.

    It fails before any operation of a model reads the pairs.
    """
    equal_rows = tf.debugging.assert_equal(
        *(tf.shape(query)[0], tf.shape(document)[0]),
        "query and document must have the same number of rows",
    )
    with tf.control_dependencies([equal_rows]):
        return tf.identity(query)


def scored_pairs(
    query: tf.Tensor,
    document: tf.Tensor,
    score: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """Scores pairs of strings `[pairs]` as float32 `[pairs]`, or no pairs.

    Convolutions and poolings have no result for a batch of no texts, so that
    `score` gets one pair of empty texts then.
    """
    rows = tf.shape(query)[0]
    extra = tf.fill([tf.cast(tf.equal(rows, 0), tf.int32)], "")
    scores = score(
        tf.concat([query, extra], 0), tf.concat([document, extra], 0)
    )
    return tf.cast(scores[:rows], tf.float32)


class RankerModule(ServedModule):
    """A trained ranker with the models whose scores it reads."""

    def __init__(self, ranker: Ranker) -> None:
        super().__init__()
        self.trees = ranker.trees
        self.overlap = ranker.features.overlap
        # A plain object: TensorFlow would save a Keras model.
        self._ranker = ranker
        models: list[Any] = []
        # Tables of vocabularies; a server's loader fails without them.
        self.resources: list[Any] = []
        for name, source in ranker.features.sources.items():
            if (model := source.towers) is not None:
                model.sync_weights()
                models += model.query_encoder, model.document_encoder
            elif source.model is not None:
                models.append(source.model)
                self.resources += source.model.words.resources
            else:
                raise InputError(
                    f"the ranker reads the cosine of {name}, which is not of"
                    " this package and cannot be exported: train the ranker"
                    " without --encoder"
                )
        self._served = ServedWeights(*models)
        self.weights = self._served.variables

    @signature(query=tf.string, document=tf.string)
    def serve(
        self, query: tf.Tensor, document: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Signature `serving_default`: scores pairs of strings `[batch]`.

        `score` is float32 `[batch]`. Only the order within a query has a
        meaning.
        """
        query = with_equal_rows(query, document)
        return {"score": self._scores(query, document, {})}

    def _scores(
        self,
        queries: tf.Tensor,
        titles: tf.Tensor,
        known: dict[str, tf.Tensor],
    ) -> tf.Tensor:
        """Scores pairs of strings `[pairs]` as float32 `[pairs]`.

        `known` has the scores of sources that are computed already, by name.
        """
        columns = [self.overlap(queries, titles)]
        for name, source in self._ranker.features.sources.items():
            if name in known:
                scores = known[name]
            else:
                with self._served.reading():
                    scores = scored_pairs(
                        queries, titles, partial(graph_scores, source)
                    )
            columns.append(on_grid(scores)[:, tf.newaxis])
        return self._ranker.score_features(tf.concat(columns, axis=1))


class TwoStageModule(SearchModule, RankerModule):
    """An exact retriever of candidates, and a ranker that orders them.

    The candidates are the 100 titles with the largest cosine of the ranker's
    first two towers. For the arguments see `export_models`, for the inputs
    `SearchModule.serve`.

    Of the outputs, `ids` and `titles` are strings `[batch, width]`, `scores`
    those of the ranker, float32 of the same shape, best first. The width is the
    largest k, but at most 100, `max_k` and the number of documents. Columns
    beyond the k of a row hold "" and `PADDING_SCORE`.
    """

    def __init__(
        self,
        ranker: Ranker,
        documents: Documents,
        vectors: str = "float32",
        max_k: int = MAX_K,
        progress: bool = False,
    ) -> None:
        check_retriever_options(vectors, max_k)
        check_documents(documents)
        if ranker.towers is None:
            raise InputError(
                "the ranker reads no towers, which find the candidates among"
                " --documents: train it with the run of two towers in"
                " --features, or export it without documents"
            )
        RankerModule.__init__(self, ranker)
        ids, titles, _, tags = documents
        self._candidates = min(CANDIDATES, len(ids))
        self._set_documents(ids, tags, min(max_k, self._candidates))
        self.titles = tf.Variable(as_strings(titles), trainable=False)
        towers, stored = [], []
        for name, source in ranker.features.sources.items():
            if (model := source.towers) is not None:
                towers.append((name, model.query_encoder.unit_vectors))
                encoder = EncoderModule(model.document_encoder)
                encoded = encoder.encode_all(titles, progress)
                stored.append(stored_vectors(encoded, vectors))
        self._towers, self.vectors = towers, stored

    def _search(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        mask = None if tags is None else self.tags.mask(tags)
        with self._served.reading():
            queries = [
                tf.cast(encode(text), tf.float32) for _, encode in self._towers
            ]
        cosines, rows = nearest(
            queries[0],
            self.vectors[0],
            tf.constant(self._candidates),
            mask,
        )
        known = {self._towers[0][0]: tf.reshape(cosines, [-1])}
        for (name, _), vectors, encoded in zip(
            self._towers[1:], self.vectors[1:], queries[1:], strict=True
        ):
            cosines_of_rows = vectors.cosines_of_rows(encoded, rows)
            known[name] = tf.reshape(cosines_of_rows, [-1])
        scores = self._scores(
            tf.repeat(text, self._candidates),
            tf.gather(self.titles, tf.reshape(rows, [-1])),
            known,
        )
        width = self._width(k)
        scores = tf.reshape(scores, [-1, self._candidates])
        if mask is not None:
            # `nearest` fills up with documents outside the mask.
            scores = tf.where(cosines > PADDING_COSINE, scores, PADDING_SCORE)
        # Of equal scores the one with the larger cosine comes first.
        scores, best = tf.math.top_k(scores, width)
        numbers = tf.gather(rows, best, batch_dims=1)
        is_result = tf.range(width) < k[:, tf.newaxis]
        if mask is not None:
            is_result &= scores > PADDING_SCORE
        return {
            "ids": tf.where(is_result, tf.gather(self.ids, numbers), ""),
            "titles": tf.where(is_result, tf.gather(self.titles, numbers), ""),
            "scores": tf.where(is_result, scores, PADDING_SCORE),
        }


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
        # The table of a vocabulary; a server's loader fails without it.
        self.resources = model.words.resources
        # A plain function: TensorFlow would save the whole Keras model.
        self._score = lambda *pair: model.call(pair, training=False)

    @signature(query=tf.string, document=tf.string)
    def serve(
        self, query: tf.Tensor, document: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Signature `serving_default`: scores pairs of strings `[batch]`.

        A server that batches needs the batch first, so that a query has a row
        for each document; distinct texts are encoded once. `score` is float32
        `[batch]`, whatever the model: clients expect it.
        """
        query = with_equal_rows(query, document)
        with self._served.reading():
            return {"score": scored_pairs(query, document, self._score)}

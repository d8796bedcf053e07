"""The graph of a hybrid retriever: probabilities from cosines and BM25."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import WORDS
from keras_lstm_dssm.evaluation.postings import stemmer_facts
from keras_lstm_dssm.export.graphs.encoder import HybridEncoderModule
from keras_lstm_dssm.export.graphs.request_limits import refuse_long_reasons
from keras_lstm_dssm.export.graphs.retriever import (
    MASKED,
    MAX_K,
    DocumentRows,
    SearchModule,
    best_rows,
    block_edges,
)
from keras_lstm_dssm.export.graphs.saved_module import signature
from keras_lstm_dssm.export.graphs.terms import (
    TermGraph,
    flat_words,
    shares_as_json,
)
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.plain_files import damage_named, read_json
from keras_lstm_dssm.settings.hybrid import HybridSettings
from lstm_dssm_client.bm25 import MAX_WORDS, TERM_PARTS, Postings, TermScores
from lstm_dssm_client.signatures import (
    EXPLAINED_K,
    EXPLAINED_PARTS,
    HYBRID_PARTS,
)
from lstm_dssm_client.weighted_parts import WeightedParts
from lstm_dssm_client.words import MAX_BYTES_PER_WORD

MAX_SCORES = 2**24
"""Maximum number of scores in memory at once: documents times queries."""

SETTINGS_FILE = Path("assets.extra", "hybrid.json")
"""Path of a hybrid retriever's settings in the folder of a version."""


class HybridModule(SearchModule):
    """Ranks all documents by the probability that they are relevant.

    `lstm_dssm_client.hybrid.Hybrid` has the equation.
    """

    def __init__(
        self,
        encoder: HybridEncoderModule | None,  # None if only terms have a weight
        rows: DocumentRows,
        settings: HybridSettings,
        postings: Postings,
        hubness: np.ndarray | None = None,  # float32 [documents]
        kind: str = "float32",  # dtype of the stored vectors
        max_k: int = MAX_K,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._term_count = len(postings.bounds) - 1
        self._form_count = len(postings.term_of)
        self._parts = encoder.weighted if encoder else WeightedParts([])
        self._words_rule = encoder and encoder.words_rule
        self._count = len(rows.ids)
        self._chunk_size = max(1, MAX_SCORES // self._count)
        self._has_terms = any(settings.weights[name] for name in TERM_PARTS)
        self._vector_weight = self._parts.vector_weight
        if encoder is None:
            self._set_documents(rows, range(self._count), max_k)
            self._edges = block_edges(np.arange(self._count))
        else:
            self._set_vectors(rows, kind, max_k)
            assert self.stored is not None
            order = self.stored.equal.order
            self._edges = self.vectors.edges
            postings = postings.in_order(order)
            if hubness is not None:
                hubness = hubness[order]
        if self._has_terms:
            self.terms = TermGraph(
                TermScores(postings, str(settings.bm25_words), settings.weights)
            )
        self.hubness = None
        if hubness is not None:
            weighted = np.float32(settings.hubness) * hubness
            self.hubness = tf.Variable(weighted, trainable=False)
        if encoder is not None:
            self.weights = encoder.weights
            self.resources = encoder.resources
            # All signatures share the graph of `encode`. If `encode` were an
            # attribute, TensorFlow would save a second copy of the graph. So
            # `_encode` is a lambda, which TensorFlow does not save.
            encode = tf.function(
                encoder.encode,
                [tf.TensorSpec([None], tf.string)],
                autograph=False,
            )
            self._encode = lambda text: encode(text)
            self._word_rows = encoder.word_rows

    def write_extra(self, version: Path) -> None:
        """Writes settings, parts with a weight, and facts about the terms."""
        super().write_extra(version)
        record = {
            "settings": self._settings.to_dict(),
            "parts": [n for n, w in self._settings.weights.items() if w],
            "terms": self._term_count,
            "forms": self._form_count,
            **stemmer_facts(self._settings),
        }
        write_json(version / SETTINGS_FILE, record)

    @signature(text=tf.string, k=tf.int32, tags=tf.string)
    def explained(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Signature `explained`: finds documents, and explains their scores.

        `ExplainedHit` describes the outputs `parts`, `words` (JSON) and `weak`.
        For a query whose `tags` are "", all documents are searched.
        """
        return self._search(text, k, tags, explained=True)

    def _search(
        self,
        text: tf.Tensor,
        k: tf.Tensor,
        tags: tf.Tensor | None = None,
        explained: bool = False,
    ) -> dict[str, tf.Tensor]:
        if explained:
            text, width = self._admitted(
                text, k, min(self._widest, EXPLAINED_K)
            )
            hit_counts = tf.clip_by_value(k, 0, width)
            text = refuse_long_reasons(text, hit_counts, self._max_read_bytes)
        else:
            text, width = self._admitted(text, k, self._widest)
        batch = tf.shape(text)[0]
        vectors = tf.zeros([batch, 0])
        if self._vector_weight:
            vectors = self._encode(text)
        empty = [tf.zeros([0, width]), tf.zeros([0, width], tf.int32)]
        if explained:
            shape = [0, width, len(HYBRID_PARTS)]
            empty += [tf.zeros(shape), tf.fill([0, width], "")]

        def add_chunk(
            start: tf.Tensor, *before: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            stop = tf.minimum(start + self._chunk_size, batch)
            mask = None if tags is None else self._mask(tags[start:stop])
            chunk = self._best(
                text[start:stop], vectors[start:stop], width, mask, explained
            )
            return stop, *(
                tf.concat(pair, 0) for pair in zip(before, chunk, strict=True)
            )

        _, scores, rows, *explanations = tf.while_loop(
            lambda start, *_: start < batch,
            add_chunk,
            [tf.constant(0), *empty],
            shape_invariants=[
                tf.TensorShape([]),
                *(tf.TensorShape([None] * t.shape.rank) for t in empty),
            ],
            parallel_iterations=1,
        )
        is_result = tf.range(width) < k[:, tf.newaxis]
        # If vectors have no weight, a document with the score 0 has no term of
        # the query. The document is then no result.
        if not self._vector_weight:
            is_result &= scores > 0
        elif tags is not None:
            is_result &= scores > MASKED
        scores = tf.sigmoid(scores + np.float32(self._settings.base))
        outputs = self._results(scores, rows, is_result)
        if explained:
            parts, words = explanations
            outputs["parts"] = tf.where(is_result[..., tf.newaxis], parts, 0.0)
            outputs["words"] = tf.where(is_result, words, "")
            weak = is_result & (scores < self._settings.weak)
            outputs["weak"] = tf.cast(weak, tf.int32)
        return outputs

    def _best(
        self,
        texts: tf.Tensor,
        vectors: tf.Tensor,
        width: tf.Tensor,
        mask: Any,
        explained: bool,
    ) -> list[tf.Tensor]:
        batch = tf.shape(texts)[0]
        if self._has_terms:
            sums = self.terms.sums(self.terms.matches(texts), batch)

        def scores_of(start: tf.Tensor, stop: tf.Tensor) -> tf.Tensor:
            parts = []
            if self._vector_weight:
                cosines = self.vectors.cosines(vectors, start, stop)
                parts.append(np.float32(self._vector_weight) * cosines)
            if self._has_terms:
                parts.append(sums[:, start:stop])
            scores = tf.add_n(parts)
            if self.hubness is not None:
                scores -= self.hubness[start:stop]
            return scores

        scores, rows = best_rows(scores_of, vectors, self._edges, width, mask)
        if not explained:
            return [scores, rows]
        # Queries are explained one at a time, because memory grows with the
        # number of words times the number of hits.
        parts, words = tf.map_fn(
            lambda query: self._reasons(*query),
            (texts, vectors, rows),
            fn_output_signature=(
                tf.TensorSpec([None, len(HYBRID_PARTS)]),
                tf.TensorSpec([None], tf.string),
            ),
            parallel_iterations=1,
        )
        return [scores, rows, parts, words]

    def _reasons(
        self, text: tf.Tensor, vector: tf.Tensor, rows: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns outputs `parts` and `words` of `explained` for one query."""
        width = tf.size(rows)
        parts = {name: tf.zeros([width]) for name in HYBRID_PARTS}
        words = {name: tf.fill([width], "{}") for name in EXPLAINED_PARTS}
        if self._has_terms:
            matches = self.terms.matches(text[tf.newaxis])
            term_words = tf.gather(matches.words, matches.word_of)
            for name, shares in zip(
                TERM_PARTS, self.terms.shares(matches, rows), strict=True
            ):
                parts[name] = tf.reduce_sum(shares, axis=0)
                words[name] = shares_as_json(term_words, shares)
        if self._vector_weight:
            documents = self.vectors.vectors_of(rows)
            documents *= np.float32(self._vector_weight)
            for name, columns in self._parts.columns.items():
                part, query_part = documents[:, columns], vector[columns]
                parts[name] = tf.linalg.matvec(part, query_part)
                if name == WORDS:
                    words[name] = self._words_as_json(text, part, query_part)
        if self.hubness is not None:
            parts["hubness"] = -tf.gather(self.hubness, rows)
        parts["base"] = tf.fill([width], np.float32(self._settings.base))
        entries = [f'"{name}": ' + shares for name, shares in words.items()]
        explanation = "{" + tf.strings.join(entries, ", ") + "}"
        values = [parts[name] for name in HYBRID_PARTS]
        return tf.stack(values, axis=-1), explanation

    def _words_as_json(
        self, text: tf.Tensor, documents: tf.Tensor, query: tf.Tensor
    ) -> tf.Tensor:
        """Divides part `words` of each hit's score among the query's words."""
        assert self._words_rule is not None, self._parts.columns
        words, _ = flat_words(text[tf.newaxis], *self._words_rule)
        vectors = self._word_rows(words)
        scale = tf.math.divide_no_nan(
            tf.norm(query), tf.norm(tf.reduce_sum(vectors, axis=0))
        )
        shares = tf.matmul(vectors * scale, documents, transpose_b=True)
        return shares_as_json(words, shares)

    @property
    def _max_read_bytes(self) -> int | None:
        """Maximum number of bytes read from a query; None: no maximum."""
        _, max_words = self._words_rule or ("", MAX_WORDS)
        if max_words is None:
            return None
        return max(MAX_WORDS, max_words) * MAX_BYTES_PER_WORD


def describe_published(version: Path) -> str:
    """Describes a version of an exported hybrid retriever in one line."""
    record = read_json(version / SETTINGS_FILE)
    with damage_named(version / SETTINGS_FILE, "export the model again"):
        settings = HybridSettings.from_dict(record["settings"])
        return (
            f"{settings.describe(record['parts'])};"
            f" {record['forms']:,} forms of {record['terms']:,} terms"
        )

"""PairScorer: scores, losses and training steps."""

from functools import cached_property

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.matchers import MVLSTM, RecurrentCosine
from keras_lstm_dssm.models.pair_scorer import PairScorer
from tests.kit.equal import check_equal
from tests.matchers.ragged_texts import randomise
from tests.models.small_keyvec import small_keyvec
from tests.models.small_matchers import (
    NEGATIVES,
    POSITIVES,
    QUERIES,
    TRIPLES,
    compiled,
    pair_score,
    small_scorer,
)


def by_numpy(scorer: PairScorer, documents: list[str]) -> np.ndarray:
    return np.array(
        [pair_score(scorer, *p) for p in zip(QUERIES, documents, strict=True)]
    )


def test_scores_equal_numpy_by_every_way(float64):
    scorer = small_scorer()
    expected = by_numpy(scorer, POSITIVES)
    assert np.ptp(expected) > 1e-3
    texts = tf.constant(QUERIES), tf.constant(POSITIVES)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(3)
    for found in (
        scorer(texts),
        scorer(tuple(map(scorer.words.distinct, texts))),
        tf.function(scorer)(texts),
        scorer.predict(QUERIES, POSITIVES, verbose=0),
        scorer.predict(dataset, verbose=0),
        scorer.score_pairs(QUERIES, POSITIVES),
        scorer.score_pairs(QUERIES, POSITIVES, batch_size=1),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    documents = [*POSITIVES, *NEGATIVES, ""]
    for size in (256, 2):
        np.testing.assert_allclose(
            scorer.score("wood glue", documents, batch_size=size),
            [pair_score(scorer, "wood glue", text) for text in documents],
            rtol=1e-12,
            atol=1e-15,
        )
    np.testing.assert_allclose(
        scorer.predict_on_batch((QUERIES, POSITIVES)), expected, rtol=1e-12
    )
    assert len(scorer.score("wood glue", [])) == 0
    assert scorer.predict([], [], verbose=0).shape == (0,)
    assert len(scorer.score_pairs([], [])) == 0


@pytest.mark.parametrize("matcher", [
    MVLSTM(4, 3, hidden=5, k=6, slices=2, unit_length=True),
    MVLSTM(4, 3, "cosine", hidden=5, share=False, include_word=True),
    RecurrentCosine(4, 3),
    RecurrentCosine(4, 3, bidirectional=True, share=False),
], ids=["tensor", "cosine", "forward", "both directions"])  # fmt: skip
def test_scores_without_a_graph_equal_those_of_the_graph(matcher):
    words = VocabularyVectors(["hex", "bolt", "wood", "glue", "in"], 4)
    scorer = PairScorer(words, matcher)
    documents = [*POSITIVES, *NEGATIVES, "", "bolt " * 9]
    assert matcher.scores_by_numpy
    for seed in 3, 4:  # weights are read at each call
        randomise(scorer, seed)
        for query in "wood glue", "hex bolt bolt in wood":
            for size in 1024, 3:
                np.testing.assert_allclose(
                    scorer.score(query, documents, size),
                    scorer.score_pairs([query] * len(documents), documents),
                    rtol=1e-5,
                    atol=1e-6,
                )


def test_a_subclass_scores_by_its_own_match():
    class OneMore(MVLSTM):
        def match(self, query, document, training=False):
            return 1 + super().match(query, document, training)

    words = VocabularyVectors(["hex", "bolt"], 4)
    scorer = PairScorer(words, OneMore(4, 3))
    found = scorer.score("bolt", ["hex bolt"])
    np.testing.assert_allclose(
        found, scorer.score_pairs(["bolt"], ["hex bolt"]), rtol=1e-5
    )
    assert not OneMore.scores_by_numpy


def test_evaluate_counts_by_hand(float64):
    positive, negative = (by_numpy(small_scorer(), t) for t in TRIPLES[1:])
    margin = float(np.median(positive - negative))  # two triples are within
    losses = np.maximum(0, margin + negative - positive)
    assert np.count_nonzero(losses) == 2
    scorer = compiled(margin)
    expected = [losses.mean(), np.mean(positive > negative)]
    for size in (2, 3, 128):
        found = scorer.evaluate(TRIPLES, batch_size=size, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_tie_is_not_accurate():
    scorer = compiled(run_eagerly=True)
    same = (QUERIES, POSITIVES, POSITIVES)
    assert scorer.evaluate(same, verbose=0) == [1.0, 0.0]


def test_each_distinct_text_is_represented_once():
    scorer = compiled()
    seen = scorer.matcher.represented
    scorer.train_step(tuple(map(tf.constant, TRIPLES)))
    # 3 queries, and 5 documents: "glue" and the bolt occur on both sides.
    assert seen == [("query", 3), ("document", 5)]


def test_training_step_equals_numpy(float64):
    """The gradient of the scale is the sum of (s- - s+) where l > 0."""
    scorer = compiled()
    positive, negative = (by_numpy(scorer, t) for t in TRIPLES[1:])
    gradient = np.mean(negative - positive)  # all within the margin
    scorer.train_step(tuple(map(tf.constant, TRIPLES)))
    step = 0.03 * gradient / (abs(gradient) + 1e-7)
    assert float(scorer.matcher.scale) == pytest.approx(1 - step, abs=1e-12)


@pytest.mark.parametrize("frozen", ["words", "embedding", "matcher"])
def test_what_is_frozen_stays_frozen(frozen, tmp_path):
    """By the constructor or later, and in the loaded model."""
    words = VocabularyVectors(["hex", "bolt"], 4, trainable=frozen != "words")
    matcher = MVLSTM(4, 2, hidden=3, trainable=frozen != "matcher")
    scorer = PairScorer(words, matcher)
    if frozen == "embedding":
        words.embedding.trainable = False
    scorer.save(tmp_path / "scorer.keras")
    loaded = keras.saving.load_model(tmp_path / "scorer.keras")
    trained = "words" if frozen == "matcher" else "matcher"
    for model in (scorer, loaded):
        expected = getattr(model, trained).weights
        assert len(expected) == {"words": 1, "matcher": 13}[trained]
        assert list(map(id, model.trainable_variables)) == [*map(id, expected)]
    assert loaded.get_config() == scorer.get_config()


@pytest.mark.parametrize("make", [small_scorer, small_keyvec])
def test_a_file_is_written_and_read_without_a_graph(make, tmp_path):
    """Keras reads all attributes that a model lists."""
    model = make()
    graphs = [
        name
        for kind in type(model).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, cached_property)
    ]
    assert graphs
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    check_equal(loaded, model)
    for each in (model, loaded):
        assert not {*graphs} & {*vars(each)}

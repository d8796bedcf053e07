"""PairScorer: scores, losses, training steps and saving."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import NOT_FINITE, InputError
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.losses import PairwiseHinge
from keras_lstm_dssm.matchers import MVLSTM, RAE, DeepMatch
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.optimizers.adagrad import Adagrad
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovMomentum
from tests.models.small_matchers import (
    HashedWords,
    MeanDot,
    pair_score,
    small_scorer,
)

QUERIES = ["hex bolt", "wood glue", "drill", "hex bolt"]
POSITIVES = ["steel hex bolt 3 in", "glue", "drill kit for wood", "bolt"]
NEGATIVES = ["glue", "steel hex bolt 3 in", "lamp", "glue"]
TRIPLES = (QUERIES, POSITIVES, NEGATIVES)


def compiled(margin: float = 1.0, **options: Any) -> PairScorer:
    scorer = small_scorer()
    scorer.compile(Adagrad(0.03), PairwiseHinge(margin), **options)
    return scorer


def by_numpy(scorer: PairScorer, documents: list[str]) -> np.ndarray:
    return np.array(
        [pair_score(scorer, *p) for p in zip(QUERIES, documents, strict=True)]
    )


def test_a_first_nesterov_step_is_one_of_gradient_descent(float64):
    weights = []
    for optimizer in (
        keras.optimizers.SGD(0.3),
        NesterovMomentum(0.3, threshold=None),
    ):
        scorer = small_scorer()
        before = scorer.get_weights()
        scorer.compile(optimizer, PairwiseHinge())
        scorer.train_step(tuple(map(tf.constant, TRIPLES)))
        weights.append(scorer.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert any(
        abs(old - new).max() > 1e-3
        for old, new in zip(before, weights[0], strict=True)
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
    scorer = compiled()
    same = (QUERIES, POSITIVES, POSITIVES)
    assert scorer.evaluate(same, verbose=0) == [1.0, 0.0]


def test_each_distinct_text_is_represented_once():
    scorer = compiled()
    seen = scorer.matcher.represented
    batch = tuple(tf.constant(texts) for texts in TRIPLES)
    scorer.train_step(batch)
    # 3 queries, and 5 documents: "glue" and the bolt occur on both sides.
    assert seen == [("query", 3), ("document", 5)]


def test_training_step_equals_numpy(float64):
    """The gradient of the scale is the sum of (s- - s+) where l > 0."""
    scorer = compiled()
    positive, negative = (by_numpy(scorer, t) for t in TRIPLES[1:])
    gradient = np.mean(negative - positive)  # all within the margin
    scorer.fit(TRIPLES, epochs=1, verbose=0)
    step = 0.03 * gradient / (abs(gradient) + 1e-7)
    assert float(scorer.matcher.scale) == pytest.approx(1 - step, abs=1e-12)


def test_fit_learns_and_shuffles_by_seed():
    first, second = (
        compiled()
        .fit(TRIPLES, batch_size=2, epochs=6, verbose=0, **options)
        .history
        for options in ({}, {"validation_data": TRIPLES})
    )
    assert first["loss"] == second["loss"]
    assert first["loss"][0] > 0.9 and first["loss"][-1] < 0.5
    assert second["val_loss"][-1] < 0.5
    assert second["val_accuracy"][-1] == 1


def test_one_batch_of_lists():
    """A training step on lists is a fit of them as one batch."""
    scorer, fitted = compiled(), compiled()
    found = scorer.train_on_batch(TRIPLES, return_dict=True)
    history = fitted.fit(TRIPLES, shuffle=False, verbose=0).history
    assert {name: [value] for name, value in found.items()} == history
    for one, other in zip(
        scorer.get_weights(), fitted.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert scorer.test_on_batch(TRIPLES) == fitted.evaluate(TRIPLES, verbose=0)


def test_fit_of_a_dataset_equals_fit_of_lists():
    weights = []
    for dataset in (False, True):
        scorer = compiled()
        x: Any = TRIPLES
        if dataset:
            x = tf.data.Dataset.from_tensor_slices(TRIPLES).batch(2)
        scorer.fit(x, batch_size=2, epochs=2, shuffle=False, verbose=0)
        weights.append(scorer.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_leaves_the_weights(number):
    scorer = compiled()
    scorer.fit(TRIPLES, verbose=0)
    scorer.matcher.scale.assign(number)
    before = scorer.get_weights()
    with pytest.raises(tf.errors.InvalidArgumentError, match=NOT_FINITE):
        scorer.fit(TRIPLES, verbose=0)
    for one, other in zip(before, scorer.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert int(scorer.optimizer.iterations) == 1


def test_saved_model_in_a_fresh_process(tmp_path, fresh_process):
    scorer = compiled(margin=0.5)
    scorer.fit(TRIPLES, verbose=0)
    path = tmp_path / "scorer.keras"
    scorer.save(path)
    scores = scorer.score_pairs(QUERIES, NEGATIVES)
    scorer.fit(TRIPLES, verbose=0)
    later = scorer.score_pairs(QUERIES, NEGATIVES)
    assert not np.array_equal(scores, later)
    np.save(tmp_path / "expected.npy", [scores, later])
    program = f"""
import keras, numpy as np
from tests.models import test_pair_scorer as t
scorer = keras.saving.load_model({str(path)!r})
assert scorer.loss.margin == 0.5 and scorer.optimizer.iterations == 1
scores, later = np.load({str(tmp_path / "expected.npy")!r})
found = scorer.score_pairs(t.QUERIES, t.NEGATIVES)
np.testing.assert_array_equal(found, scores)
scorer.fit(t.TRIPLES, verbose=0)
found = scorer.score_pairs(t.QUERIES, t.NEGATIVES)
np.testing.assert_allclose(found, later, rtol=1e-6)
"""
    fresh_process(program)


def check_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_wrong_input_is_explained():
    scorer = compiled()
    pairs = tf.data.Dataset.from_tensor_slices(TRIPLES[:2]).batch(2)
    single = tf.data.Dataset.from_tensor_slices(TRIPLES)
    for x, message in (
        (TRIPLES[:2], "three lists of texts in a tuple; got tuple of 2"),
        ("abc", "got str of 3 parts"),
        (None, "got NoneType of no parts"),
        ((QUERIES, POSITIVES, ["x"]), "4 queries, 4 positives and 1 negative"),
        (pairs, "batches, string tensors"),
        (single, r"with .batch\(128\)"),
    ):
        check_refused(lambda x=x: scorer.fit(x), message)
        check_refused(lambda x=x: scorer.evaluate(x), message)
    for name in ("sample_weight", "class_weight", "y"):
        for call in (scorer.fit, scorer.train_on_batch):
            check_refused(
                lambda call=call, name=name: call(
                    TRIPLES, **{name: np.zeros(4)}
                ),
                f"^{name} is not supported: give x=.queries, positives, neg",
            )
    check_refused(
        lambda: scorer.fit(TRIPLES, np.ones(4)), r"batch_size is array\("
    )
    nothing: Any = ([], [], [])
    for call in (scorer.fit, scorer.evaluate, scorer.train_on_batch):
        check_refused(lambda call=call: call(nothing), "^found no examples: ")
    check_refused(
        lambda: scorer.fit(TRIPLES, validation_data=nothing, verbose=0),
        "^found no examples: ",
    )
    check_refused(
        lambda: scorer((QUERIES, POSITIVES[:1])), "found 4 queries, 1 documents"
    )
    one_document = tf.data.Dataset.from_tensors((QUERIES, POSITIVES[:1]))
    check_refused(
        lambda: scorer.predict(one_document, verbose=0),
        "found 4 queries, 1 documents",
    )
    check_refused(
        lambda: scorer.score(["a"], ["b"]), r"query is \['a'\] \(list\)"
    )
    check_refused(lambda: scorer.score("a", "b"), "expected a list of texts")
    check_refused(lambda: scorer.score("a", ["b"], 0), "1 or more, not 0")
    check_refused(
        lambda: scorer.score_pairs(["a"], []), "1 queries and 0 documents"
    )
    check_refused(lambda: scorer.export("folder"), "export is not supported")
    check_refused(
        lambda: PairScorer(HashedWords(3), MeanDot(4)),
        "width 4, but words has 3",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["mse"]}, "evaluate_systems"),
        ({"jit_compile": True}, "XLA has no string operations"),
        (
            {
                "optimizer": keras.optimizers.LossScaleOptimizer(
                    keras.optimizers.SGD()
                )
            },
            "mixed precision",
        ),
    ],
)
def test_compile_refuses(options, message):
    options = {"optimizer": Adagrad(), "loss": PairwiseHinge(), **options}
    check_refused(lambda: small_scorer().compile(**options), message)


@pytest.mark.parametrize("kind", [DeepMatch, RAE])
def test_fit_asks_for_pretraining(kind):
    words = VocabularyVectors(["bolt", "glue"], 3)
    scorer = PairScorer(words, kind(3))
    scorer.compile(Adagrad(), PairwiseHinge())
    check_refused(
        lambda: scorer.fit(TRIPLES),
        f"^{kind.__name__} has not been pretrained: call scorer.matcher.pretr",
    )


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

"""Negatives: drawn, in the batch, and given."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import CorpusNegatives
from keras_lstm_dssm.models import two_tower as two_tower_module
from keras_lstm_dssm.models.pair_batch import pair_batches
from keras_lstm_dssm.models.two_tower import (
    all_cosines,
    clicked_is_nearest,
    random_negatives,
)
from tests import reference
from tests.models.small_towers import one_batch, two_tower

RANDOM = np.random.default_rng(6)
QUERY, DOCUMENT = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(4, 3))
CLICKED = [0, 1, 0, 2, 3]  # rows 0 and 2 clicked the same document


def drawn(
    seed: int, n: int = 4, clicked: list[int] = CLICKED
) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and labels of one draw."""
    all_clicked = tf.constant(clicked, tf.int32)
    cosines, labels = random_negatives(
        tf.constant(QUERY[: len(clicked)]), tf.constant(DOCUMENT),
        all_clicked[:, tf.newaxis], n, tf.constant([0, seed]), all_clicked, 0,
    )  # fmt: skip
    return cosines.numpy(), labels.numpy()


def test_random_negatives_are_other_rows_documents():
    table = np.array(
        [[reference.cosine(q, d) for d in DOCUMENT] for q in QUERY]
    )
    for seed in range(20):
        cosines, labels = drawn(seed)
        assert cosines.shape == labels.shape == (5, 5)
        np.testing.assert_allclose(cosines[:, 0], table[range(5), CLICKED])
        np.testing.assert_array_equal(labels[:, 0], 1)
        for row, clicked in enumerate(CLICKED):
            for cosine, label in zip(
                cosines[row, 1:], labels[row, 1:], strict=True
            ):
                (document,) = np.flatnonzero(np.isclose(table[row], cosine))
                assert label == (-1 if document == clicked else 0)


def test_random_negatives_are_drawn_evenly_from_the_other_rows():
    """Row 0: document 0 of row 2, and 1, 2, 3, each a quarter."""
    (cosines, labels) = drawn(0, n=8000)
    values, counts = np.unique(cosines[0, 1:].round(9), return_counts=True)
    assert len(values) == 4
    np.testing.assert_allclose(counts / 8000, 0.25, atol=0.02)
    np.testing.assert_allclose((labels[0] < 0).mean(), 0.25, atol=0.02)


def test_random_negatives_follow_the_seed():
    np.testing.assert_array_equal(drawn(1)[0], drawn(1)[0])
    assert (drawn(1)[0] != drawn(2)[0]).any()


def test_a_batch_of_one_or_none_has_no_negatives():
    cosines, labels = drawn(0, clicked=[2])
    np.testing.assert_array_equal(labels, [[1, -1, -1, -1, -1]])
    assert np.isfinite(cosines).all()
    assert drawn(0, clicked=[])[0].shape == (0, 5)


def test_in_batch_cosines_are_those_of_whole_vectors_and_of_their_blocks():
    whole = [[reference.cosine(q, d) for d in DOCUMENT] for q in QUERY]
    np.testing.assert_allclose(all_cosines([QUERY], [DOCUMENT]), whole)
    query, document = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for vectors in (QUERY, DOCUMENT)
    )
    for columns in ([1, 2], [2, 1]):
        blocks = [tf.split(each, columns, 1) for each in (query, document)]
        np.testing.assert_allclose(all_cosines(*blocks), whole)
    # Blocks of different widths are put together first.
    other = tf.split(query, [1, 2], 1), tf.split(document, [2, 1], 1)
    np.testing.assert_allclose(all_cosines(*other), whole)


def test_the_clicked_document_is_nearest_if_no_negative_is_as_near():
    cosines = np.array([[0.5, 0.2, 0.5], [0.5, 0.2, 0.4], [0.5, 0.6, -1.0]])
    # As indices, and as labels with a document that is left out.
    for labels, expected in (
        (np.array([0, 0, 1]), [False, True, True]),
        (np.array([2, 1, 0]), [False, False, False]),
        ([[1, 0, 0], [1, 0, 0], [0, 1, 0]], [False, True, True]),
        ([[1, 0, -1], [0, 1, -1], [1, -1, 0]], [True, False, True]),
    ):
        nearest = clicked_is_nearest(tf.constant(cosines), tf.constant(labels))
        assert nearest.numpy().tolist() == expected


THREE = ["hose", "lamp", "hose"]
CLICKS = ["garden hose", "desk lamp", "hose, 50 ft"]
GIVEN = [["hose clamp", "rope"], ["desk", "lamp oil"], ["rope"] * 2]
LOG_Q = np.log([[0.5, 0.1, 0.2], [0.3, 0.1, 0.1], [0.2, 0.2, 0.2]])
GAMMA = 10.0


def batch(**extras: Any) -> tuple[Any, ...]:
    return tf.constant(THREE), tf.constant(CLICKS), extras


def cosines(model: dssm.TwoTower, texts: list[str]) -> np.ndarray:
    queries = model.query_encoder.encode(THREE)
    return queries @ model.document_encoder.encode(texts).T


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("corrected", [False, True])
def test_the_loss_against_plain_numpy(tied, corrected):
    """Every distinct title of the batch, given ones too, is a candidate."""
    model = two_tower(shared=tied)
    q_of = dict(zip(CLICKS, LOG_Q[:, 0], strict=True))
    for row, q in zip(GIVEN, LOG_Q[:, 1:], strict=True):
        q_of.update(zip(row, q, strict=True))
    texts = list(q_of)
    logits = GAMMA * cosines(model, texts)
    extras = {"negatives": tf.constant(GIVEN)}
    if corrected:
        logits -= [q_of[text] for text in texts]
        extras["log_q"] = tf.constant(LOG_Q, tf.float32)
    own = logits[range(3), [texts.index(t) for t in CLICKS]]
    expected = (np.log(np.exp(logits).sum(axis=1)) - own).mean()
    # Of the second, the mean of both, which have the same loss.
    for step in (model.test_step, model.train_step):
        loss = step(batch(**extras))["loss"]
        assert float(loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_beside_drawn_negatives_each_row_has_its_own(tied):
    """One row: nothing can be drawn, so that only the given ones count."""
    model = two_tower(shared=tied, negatives="random")
    given = {"negatives": tf.constant([["rope", CLICKS[0]]])}
    found = model.test_step(
        (tf.constant(THREE[:1]), tf.constant(CLICKS[:1]), given)
    )
    own, rope = GAMMA * cosines(model, [CLICKS[0], "rope"])[0]
    # The clicked title among them is no negative.
    expected = np.log1p(np.exp(rope - own))
    # float32 rounds 1 + exp to a multiple of 1.2e-7.
    assert float(found["loss"]) == pytest.approx(expected, rel=1e-5, abs=3e-7)


def test_of_a_corpus_a_row_has_no_negatives_but_its_own():
    model = two_tower(negatives="corpus")
    texts = [[title, *own] for title, own in zip(CLICKS, GIVEN, strict=True)]
    texts[1][2] = "Desk  LAMP"  # the clicked title: no negative
    logits = [
        GAMMA * cosines(model, row)[number] for number, row in enumerate(texts)
    ]
    counts = [0, 1, 2], [0, 1], [0, 1, 2]
    expected = [
        np.log(np.exp(row[counted]).sum()) - row[0]
        for row, counted in zip(logits, counts, strict=True)
    ]
    extras = batch(negatives=tf.constant([row[1:] for row in texts]))
    for step in (model.test_step, model.train_step):
        loss = float(step(extras)["loss"])
        assert loss == pytest.approx(np.mean(expected), rel=1e-5)


def test_lists_are_a_corpus():
    """`evaluate` draws equal negatives each time, from its list of titles."""
    model = two_tower(negatives="corpus", n=3, run_eagerly=True)
    titles = [f"{kind} {size}" for kind in CLICKS for size in range(9)]
    queries = [f"{THREE[row // 9]} {row}" for row in range(27)]
    found = [
        model.evaluate(queries, titles, batch_size=size, verbose=0)[0]
        for size in (27, 27)
    ]
    (drawn,) = CorpusNegatives(titles, 3).attach(
        pair_batches(queries, titles, 27, model.seed)
    )
    rows, clicked = (part.numpy().astype(str) for part in drawn[:2])
    negatives = drawn[2]["negatives"].numpy().astype(str)
    vectors = {
        text: model.document_encoder.encode([text])[0] for text in titles
    }
    of_queries = model.query_encoder.encode(rows.tolist())
    losses = []
    for query, title, others in zip(
        of_queries, clicked, negatives, strict=True
    ):
        logits = [GAMMA * query @ vectors[t] for t in (title, *others)]
        losses.append(np.log(np.exp(logits).sum()) - logits[0])
    assert found == [pytest.approx(np.mean(losses), rel=1e-5)] * 2


def test_fit_draws_others_in_each_epoch(monkeypatch):
    seen: list[list[list[int]]] = []

    def recorded(*arguments: Any) -> Any:
        seen.append(arguments[2].numpy().tolist())
        return random_negatives(*arguments)

    monkeypatch.setattr(two_tower_module, "random_negatives", recorded)
    model = two_tower(negatives="corpus", run_eagerly=True)
    titles = [f"title {number}" for number in range(40)]
    lists = titles, titles
    model.fit(*lists, batch_size=40, epochs=2, shuffle=False, verbose=0)
    model.fit(*lists, batch_size=40, shuffle=False, verbose=0)
    model.train_on_batch(*lists)
    again = two_tower(negatives="corpus", run_eagerly=True)
    again.fit(*lists, batch_size=40, shuffle=False, verbose=0)
    assert [len(rows[0]) for rows in seen] == [5] * 5
    assert seen[4] == seen[0]
    assert len({str(rows) for rows in seen}) == 4


def test_batches_without_negatives_have_none_of_a_corpus():
    model = two_tower(negatives="corpus")

    def validate(data: tf.data.Dataset) -> None:
        model.fit(THREE, CLICKS, validation_data=data)

    for data in (
        one_batch(THREE, CLICKS),
        one_batch(*batch(sample_weight=tf.ones(3))),
    ):
        for call in (model.fit, model.evaluate, validate):
            with pytest.raises(dssm.InputError, match="CorpusNegatives.titles"):
                call(data)


def test_a_corpus_of_one_title_is_nothing_to_compare_with():
    model = two_tower(negatives="corpus")
    for call in (model.fit, model.evaluate):
        with pytest.raises(dssm.InputError, match="found a single title: neg"):
            call(["one", "other"], ["wood glue", "Wood  glue"])


def test_log_q_is_for_in_batch_negatives():
    model = two_tower(negatives="random")
    with pytest.raises(dssm.InputError, match="corrects CosineSoftmax with in"):
        model.test_step(batch(log_q=tf.constant(LOG_Q[:, 0], tf.float32)))

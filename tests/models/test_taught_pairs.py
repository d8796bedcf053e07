"""A batch with a teacher's vectors: which cosines, and what they cost."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distillation.teacher_vectors import (
    TaughtBatches,
    TeacherVectors,
)
from keras_lstm_dssm.models.pair_batch import PairHasher, teacher_cosines

INFINITY = float("inf")
QUERIES = ["bolt", "glue", "lamp", "desk"]
TITLES = ["hex bolt", "wood glue", "desk lamp", "desk lamp"]
NEGATIVES = [["wood glue"], ["paint"], ["hex bolt"], ["Paint"]]
KNOWN = ["bolt", "glue", "desk", "hex bolt", "wood glue", "desk lamp", "paint"]
VECTORS = np.random.default_rng(6).normal(size=(len(KNOWN), 5))
TEACHER = TeacherVectors(KNOWN, VECTORS)


def taught(negatives: bool = True) -> tf.data.Dataset:
    parts: tuple[Any, ...] = (QUERIES, TITLES)
    if negatives:
        parts = (*parts, {"negatives": NEGATIVES})
    batches = tf.data.Dataset.from_tensors(parts)
    texts = [*QUERIES, *TITLES, "paint", "Paint"]
    return TaughtBatches(TEACHER, texts).attach(batches)


def test_cosines_of_rows_with_distinct_titles():
    """The second title is that of rows 1 and 2; row 2's own text is it."""
    basis = np.eye(3, dtype=np.float32)
    vectors = np.stack(
        [
            basis[[0, 0]],
            basis[[1, 1]],
            basis[[1, 1]],
            [[0, 0, 1], [0.6, 0.8, 0]],
        ]
    ).astype(np.float32)
    numbers = np.array([[7, 0], [8, 1], [1, 1], [9, -1]], np.int32)
    cosines = teacher_cosines(
        tf.constant(vectors),
        tf.constant(numbers),
        tf.constant([[0], [1], [1], [2]]),
        tf.constant(3),
    )
    np.testing.assert_allclose(
        cosines,
        [[1, 0, -INFINITY], [0, 1, -INFINITY], [0, -INFINITY, -INFINITY],
         [0, 0, -INFINITY]],
    )  # fmt: skip


def expected_cosines(titles: list[str]) -> np.ndarray:
    """From the definition, in NumPy; `lamp` is unknown: its title's vector."""
    cosines = np.full((4, len(titles)), -INFINITY)
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    for row, query in enumerate(QUERIES):
        own = query if query in KNOWN else TITLES[row]
        for column, title in enumerate(titles):
            if title != own:
                vectors = unit[KNOWN.index(own)], unit[KNOWN.index(title)]
                cosines[row, column] = vectors[0] @ vectors[1]
    return cosines


@pytest.mark.parametrize("tied", [False, True])
def test_a_hashed_batch_has_the_cosines_of_the_definition(tied):
    query = dssm.DSSMEncoder([3])
    hasher = PairHasher(query, query if tied else dssm.DSSMEncoder([3]))
    ((hashed,),) = hasher.dataset(taught())
    clicked, negatives = hashed.candidates.numpy().T
    distinct = ["hex bolt", "wood glue", "desk lamp", "paint"]
    columns = [*clicked[:3], negatives[1]]
    # "Paint", which the teacher does not know, and "paint" are one text.
    assert negatives[3] == negatives[1]
    expected = expected_cosines(distinct)
    np.testing.assert_allclose(
        hashed.teacher.numpy()[:, columns], expected, atol=1e-6
    )


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("negatives", ["in_batch", "random"])
def test_a_batch_costs_the_clicks_and_the_divergence(tied, negatives):
    """The sum goes over all distinct titles, with random negatives, too."""
    query = dssm.DSSMEncoder([6])
    document = query if tied else dssm.DSSMEncoder([6])
    model = dssm.TwoTower(query, document, negatives=negatives)
    loss = dssm.Distillation(7.0, weight=2.5, temperature=0.3, teacher_gamma=5)
    model.compile(dssm.NesterovMomentum(0.1), loss)
    titles = TITLES[:3]
    ((hashed,),) = PairHasher(query, document).dataset(taught(negatives=False))
    with_teacher = float(model.batch_loss(hashed, training=True))
    without = float(
        model.batch_loss(hashed._replace(teacher=None), training=True)
    )
    cosines = query.encode(QUERIES) @ document.encode(titles).T
    norms = [
        np.linalg.norm(encoder.encode(texts), axis=1)
        for encoder, texts in ((query, QUERIES), (document, titles))
    ]
    cosines /= norms[0][:, np.newaxis] * norms[1]
    teacher = expected_cosines(titles)
    p = softmax(teacher / 0.3)
    q = softmax(np.where(np.isinf(teacher), -INFINITY, 5 * cosines))
    divergence = np.sum(
        p * np.log(np.where(p > 0, p, 1) / np.where(q > 0, q, 1)), axis=1
    )
    assert with_teacher - without == pytest.approx(
        2.5 * divergence.mean(), rel=1e-4
    )
    # Evaluations measure the loss of the clicks alone.
    assert float(model.batch_loss(hashed, training=False)) == pytest.approx(
        float(model.batch_loss(hashed._replace(teacher=None), training=False))
    )


def test_another_loss_does_not_learn_from_a_teacher():
    model = dssm.TwoTower(dssm.DSSMEncoder([3]), dssm.DSSMEncoder([3]))
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
    with pytest.raises(dssm.InputError, match="compile with dssm.Distillation"):
        model.fit(taught(), verbose=0)


def test_half_of_the_extras_is_refused():
    model = dssm.TwoTower(dssm.DSSMEncoder([3]), dssm.DSSMEncoder([3]))
    model.compile(dssm.NesterovMomentum(0.1), dssm.Distillation())
    batches = taught().map(
        lambda query, title, extras: (
            query,
            title,
            {"teacher": extras["teacher"]},
        )
    )
    with pytest.raises(dssm.InputError, match="with teacher_texts, int32"):
        model.fit(batches, verbose=0)


def test_a_fit_in_batches_of_a_teacher_lowers_the_divergence():
    """Eager or in a graph, with lazily updated tables."""
    model = dssm.TwoTower(
        dssm.DSSMEncoder([6]), dssm.DSSMEncoder([6]), negatives="in_batch"
    )
    model.compile(dssm.NesterovMomentum(0.1), dssm.Distillation(weight=9.0))
    history = model.fit(taught().repeat(20), epochs=2, verbose=0)
    assert history.history["loss"][1] < history.history["loss"][0]

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.models.two_tower import (
    all_cosines,
    clicked_is_nearest,
    random_negatives,
)
from tests import reference

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


def test_a_batch_of_one_has_no_negatives():
    cosines, labels = drawn(0, clicked=[2])
    np.testing.assert_array_equal(labels, [[1, -1, -1, -1, -1]])
    assert np.isfinite(cosines).all()


def test_a_batch_of_none():
    assert drawn(0, clicked=[])[0].shape == (0, 5)


def test_in_batch_negatives_are_the_distinct_documents():
    cosines = all_cosines([tf.constant(QUERY)], [tf.constant(DOCUMENT)])
    expected = [[reference.cosine(q, d) for d in DOCUMENT] for q in QUERY]
    np.testing.assert_allclose(cosines, expected)


def test_the_products_of_blocks_are_those_of_whole_vectors():
    query, document = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for vectors in (QUERY, DOCUMENT)
    )
    whole = all_cosines([query], [document])
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

"""Patches found by LDA, and the graph between their levels."""

import numpy as np
import pytest

from keras_lstm_dssm import InputError
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.matchers.deep_match import (
    Patches,
    find_patches,
    overlapping,
    probable_words,
    text_ids,
    topic_levels,
)

pytest.importorskip("gensim.models")

# Two subjects; words 1 to 4 and 5 to 8. Word 4 occurs on both sides.
SUBJECTS = [([1, 2, 4], [3, 4]), ([5, 6], [7, 8])]


def pairs(count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    random = np.random.default_rng(0)
    queries, documents = [], []
    for number in range(count):
        query, document = SUBJECTS[number % 2]
        queries.append(random.choice([*query, 0], 6))
        documents.append(random.choice([*document, 0], 6))
    return queries, documents


def test_topics_are_the_subjects_and_keep_the_sides_apart():
    patches = find_patches(*pairs(60), topics=2, largest=3, passes=20)
    found = {
        (frozenset(query) - {0}, frozenset(document) - {0})
        for query, document in zip(
            patches.query.tolist(), patches.document.tolist(), strict=True
        )
    }
    assert found == {
        (frozenset(query), frozenset(document)) for query, document in SUBJECTS
    }
    assert patches.query.shape == patches.document.shape == (2, 3)


def test_the_seed_decides():
    first, second, other = (
        find_patches(*pairs(40), topics=4, largest=8, passes=1, seed=seed)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert np.any(np.array(first) != other)


def test_probable_words_reach_the_mass():
    random = np.random.default_rng(0)
    shares, ids = random.random((5, 9)), random.permutation(9) + 1
    words = probable_words(3 * shares, ids, 9, 0.7)
    for share, row in zip(shares, words, strict=True):
        count = np.count_nonzero(row)
        ranked = np.sort(share / share.sum())[::-1]
        assert ranked[:count].sum() >= 0.7 > ranked[: count - 1].sum()
        assert row[:count].tolist() == ids[np.argsort(-share)][:count].tolist()
        assert not row[count:].any()
    few = probable_words(shares, ids, 2, 0.7)
    np.testing.assert_array_equal(few, words[:, :2])
    assert np.count_nonzero(probable_words(shares, ids, 12, 1.0)) == 45


def test_overlapping_needs_words_of_both_sides():
    coarse = Patches(np.array([[1, 2], [3, 0]]), np.array([[5, 6], [7, 0]]))
    fine = Patches(
        np.array([[2, 0], [1, 3], [3, 4], [1, 2]]),
        np.array([[5, 0], [9, 0], [7, 5], [6, 5]]),
    )
    assert overlapping(coarse, fine, 0.0).tolist() == [
        [True, False, False, True],
        [False, False, True, False],
    ]
    # Half of [1, 2] and all of [5, 6]; and where the fewer words are one,
    # one of one.
    larger = Patches(np.array([[1, 9], [2, 0]]), np.array([[5, 6], [5, 0]]))
    assert overlapping(coarse, larger, 0.5)[0].tolist() == [True, True]
    assert overlapping(coarse, larger, 0.6)[0].tolist() == [False, True]


def test_ids_of_texts_keep_their_order():
    words = VocabularyVectors(["b", "a"], 2, max_words=3)
    texts = ["a", "b a x a", "", "a"] * 300  # more than one batch
    ids = [row.tolist() for row in text_ids(words, texts)]
    assert ids == [[2], [1, 2, 0], [0], [2]] * 300


def test_levels_by_size():
    assert topic_levels(20_000) == (20, 50, 100)
    assert topic_levels(20_001) == (50, 100, 200)


def test_no_known_word():
    known, unknown = [np.array([1])], [np.array([0, 0])]
    with pytest.raises(InputError, match="no document has a word of the voc"):
        find_patches(known, unknown, 2)

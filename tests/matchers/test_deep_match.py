"""DeepMatch against NumPy with sets of words; patches found by LDA."""

import functools
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError, layers
from keras_lstm_dssm.matchers.deep_match import (
    DeepMatch,
    Patches,
    find_patches,
    overlapping,
    probable_words,
    text_ids,
    topic_levels,
)
from keras_lstm_dssm.models.pair_scorer import PairScorer
from tests.matchers import ragged_texts
from tests.matchers.plain_convolutions import mlp
from tests.reference import sigmoid

# Patches of two, three and two topics over words 1 to 8, by level.
LEVELS = [
    Patches(np.array(query, "int32"), np.array(document, "int32"))
    for query, document in (
        ([[1, 2, 3], [4, 5, 0]], [[1, 2, 0], [6, 7, 8]]),
        ([[1, 4, 0], [5, 6, 7], [8, 0, 0]], [[2, 0, 0], [6, 1, 0], [1, 7, 0]]),
        ([[5, 0, 0], [7, 8, 2]], [[6, 3, 0], [4, 0, 0]]),
    )
]
COUNTS = [len(level.query) for level in LEVELS]
# Layer II: its unit -> the units of layer I that it reads.
READS = {0: [0, 2], 1: [1, 3], 2: [2], 3: [3, 5], 4: [4]}
QUERIES = [[1, 2, 2, 5, 9], [7, 0, 4], [8]]
DOCUMENTS = [[6, 1, 6, 2], [7, 1, 0], [3, 4]]


def small_matcher() -> DeepMatch:
    matcher = DeepMatch(
        4, COUNTS, units=2, rank=3, committee=4, largest=3, overlap=0.0
    )
    matcher.set_patches(LEVELS)
    random = np.random.default_rng(0)
    for weight in matcher.trainable_variables:
        weight.assign(random.normal(size=weight.shape))
    return matcher


def sequences(texts: list[list[int]]) -> layers.WordSequences:
    words = tf.ragged.constant(texts, dtype=tf.int32)
    lengths = tf.constant([len(text) for text in texts])
    vectors = tf.ones([*words.to_tensor().shape, 4], keras.config.floatx())
    return layers.WordSequences(vectors, lengths, words.to_tensor())


def projections(matcher: DeepMatch, side: str, text: np.ndarray) -> np.ndarray:
    """x' a_r of each patch, by a table of each word of each patch."""
    table = {
        (patch, word): row
        for patch, word, row in zip(
            np.array(matcher.entry_patches[side]).tolist(),
            np.array(matcher.entry_words[side]).tolist(),
            np.array(matcher.kernels[side]),
            strict=True,
        )
    }
    patches = [ids for level in LEVELS for ids in getattr(level, side)]
    return np.array(
        [
            sum(
                (table[i, word] for word in set(text) & set(patch) - {0}),
                np.zeros(6),
            ).reshape(2, 3)
            for i, patch in enumerate(patches)
        ]
    )


def score(matcher: DeepMatch, query: np.ndarray, document: np.ndarray) -> float:
    x = projections(matcher, "query", query)
    y = projections(matcher, "document", document)
    first = sigmoid(np.sum(x * y, -1) + np.array(matcher.bias))
    kernel = np.array(matcher.second_kernel)
    second = [
        sum(first[i] @ kernel[i, :, unit] for i in reads)
        for unit, reads in READS.items()
    ]
    second = sigmoid(np.array(second) + np.array(matcher.second_bias))
    return mlp(matcher.output_layers, second)


@pytest.mark.usefixtures("float64")
def test_scores_equal_numpy_whatever_the_padding_and_the_batch():
    matcher = small_matcher()
    ragged_texts.check_scores(
        matcher,
        functools.partial(score, matcher),
        (sequences(QUERIES), sequences(DOCUMENTS)),
    )


@pytest.mark.usefixtures("float64")
def test_gradients_equal_central_differences():
    matcher = small_matcher()
    texts = sequences(QUERIES), sequences(DOCUMENTS)
    gradients = ragged_texts.check_central_differences(
        lambda: tf.reduce_sum(matcher(*texts)),
        [v.value for v in matcher.trainable_variables],
    )
    # Not 9 and the unknown word, which are in no patch; nor 8, as the only
    # patch where its document has a word is not read by layer II.
    rows = np.any(gradients[0], axis=1)
    found = np.array(matcher.entry_words["query"])[rows]
    assert set(found.tolist()) == {1, 2, 4, 5, 7}


def test_the_first_scores_are_zero():
    matcher = DeepMatch(4, COUNTS, largest=3, overlap=0.0)
    matcher.set_patches(LEVELS)
    scores = matcher(sequences(QUERIES), sequences(DOCUMENTS))
    np.testing.assert_array_equal(scores, np.zeros(3))
    assert 0.05 < np.max(np.abs(matcher.kernels["query"])) <= 0.1


VOCABULARY = ["hex", "bolt", "wood", "glue", "steel", "oz"]
PAIRS = (
    ["hex bolt", "wood glue", "bolt", "glue for wood"] * 5,
    ["steel bolt", "glue 8 oz", "hex bolt steel", "wood glue oz"] * 5,
)


def pretrained(seed: int = 0) -> PairScorer:
    pytest.importorskip("gensim.models")
    keras.utils.set_random_seed(0)
    words = layers.VocabularyVectors(VOCABULARY, 4)
    matcher = DeepMatch(4, [2, 3], largest=4, passes=3)
    assert matcher.needs_pretraining
    matcher.pretrain(words, *PAIRS, seed=seed)
    return PairScorer(words, matcher)


def test_pretraining_finds_words_of_each_side():
    matcher = pretrained().matcher
    assert not matcher.needs_pretraining
    texts = [" ".join(side) for side in PAIRS]
    for text, stored in zip(texts, matcher.entry_words.values(), strict=True):
        ids = np.unique(stored)[1:]
        expected = {i for i, w in enumerate(VOCABULARY, 1) if w in text}
        assert set(ids.tolist()) == expected
    again, other = pretrained().matcher, pretrained(seed=7).matcher
    for mine, same, different in zip(
        matcher.non_trainable_variables,
        again.non_trainable_variables,
        other.non_trainable_variables,
        strict=True,
    ):
        np.testing.assert_array_equal(mine, same)
        assert mine.shape == different.shape
    patches = [
        np.array(m.entry_patches["query"]).tolist() for m in (matcher, other)
    ]
    assert patches[0] != patches[1]


def test_patches_are_saved_with_the_weights(tmp_path):
    scorer = pretrained()
    trained = scorer.matcher.trainable_variables
    ragged_texts.check_saved_scorer(scorer, trained, PAIRS, tmp_path)


def test_pretraining_says_what_it_needs(monkeypatch):
    matcher = DeepMatch(4, [2, 3], largest=4)
    with pytest.raises(InputError, match='use words="vocabulary"'):
        matcher.pretrain(layers.TrigramVectors(4), *PAIRS)
    words = layers.VocabularyVectors(VOCABULARY, 4)
    with pytest.raises(InputError, match="found 2 queries and 1 documents"):
        matcher.pretrain(words, ["a", "b"], ["c"])
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r"keras-lstm-dssm\[baselines\]"):
        matcher.pretrain(words, *PAIRS)


# Two subjects; words 1 to 4 and 5 to 8. Word 4 occurs on both sides.
SUBJECTS = [([1, 2, 4], [3, 4]), ([5, 6], [7, 8])]


def drawn_pairs(count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    random = np.random.default_rng(0)
    queries, documents = [], []
    for number in range(count):
        query, document = SUBJECTS[number % 2]
        queries.append(random.choice([*query, 0], 6))
        documents.append(random.choice([*document, 0], 6))
    return queries, documents


def test_topics_are_the_subjects_and_keep_the_sides_apart():
    pytest.importorskip("gensim.models")
    patches = find_patches(*drawn_pairs(60), topics=2, largest=3, passes=20)
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
    words = layers.VocabularyVectors(["b", "a"], 2, max_words=3)
    texts = ["a", "b a x a", "", "a"] * 300  # more than one batch
    ids = [row.tolist() for row in text_ids(words, texts)]
    assert ids == [[2], [1, 2, 0], [0], [2]] * 300


def test_numbers_of_topics_by_size():
    assert topic_levels(20_000) == (20, 50, 100)
    assert topic_levels(20_001) == (50, 100, 200)


def test_no_document_with_a_known_word():
    pytest.importorskip("gensim.models")
    known, unknown = [np.array([1])], [np.array([0, 0])]
    with pytest.raises(InputError, match="no document has a word of the voc"):
        find_patches(known, unknown, 2)

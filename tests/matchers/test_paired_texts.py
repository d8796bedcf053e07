"""Groups of pairs of similar length: nothing lost, little padding."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import WordSequences
from keras_lstm_dssm.layers.packed_sequence import FlatSequences
from keras_lstm_dssm.matchers.mv_lstm import (
    MVLSTM,
    PairedTexts,
    order_by_length,
)
from tests.matchers.ragged_texts import (
    alone_of,
    check_training,
    randomise,
    word_sequences,
)

RANDOM = np.random.default_rng(0)
LENGTHS = [9, 7, 3, 2, 1]


def paired(texts: WordSequences, rows: tf.Tensor) -> PairedTexts:
    flat = FlatSequences.from_padded(texts.vectors, texts.lengths)
    return PairedTexts(flat.table, flat.starts, flat.lengths, rows)


@pytest.mark.parametrize("pairs", [0, 1, 3, 40])
def test_groups_hold_each_pair_once_padded_to_their_longest(pairs):
    texts = word_sequences(LENGTHS, 4)
    rows = tf.constant(RANDOM.integers(5, size=pairs), tf.int32)
    side = paired(texts, rows)
    seen = []
    for group in side.groups():
        (padded,) = group.padded((side.vectors,))
        longest = max(group.pair_lengths.numpy(), default=1)
        assert padded.shape == (len(group.rows), longest, 4)
        for found, row in zip(padded, group.rows, strict=True):
            np.testing.assert_array_equal(
                found[: LENGTHS[row]], texts.vectors[row, : LENGTHS[row]]
            )
        seen += group.rows.numpy().tolist()
    assert seen == rows.numpy().tolist()


def test_the_order_puts_similar_lengths_into_a_group():
    of_query = RANDOM.integers(1, 30, size=80).astype(np.int32)
    of_document = RANDOM.integers(1, 60, size=80).astype(np.int32)
    order = order_by_length(tf.constant(of_query), tf.constant(of_document))
    parts = of_document[order].reshape(4, 20)
    ends = [(part.min(), part.max()) for part in parts]
    for (_, longest), (shortest, _) in itertools.pairwise(ends):
        assert longest <= shortest
    for part in of_query[order].reshape(4, 20):
        np.testing.assert_array_equal(part, np.sort(part))


def test_indices_are_those_of_all_vectors():
    texts = word_sequences(LENGTHS, 4)
    rows = tf.constant([4, 0, 2])
    side = paired(texts, rows)
    positions = np.array([[[0, -1]], [[8, 3]], [[2, 1]]], np.int32)
    found = tf.gather(side.vectors, side.vector_rows(tf.constant(positions)))
    for pair, row in enumerate(rows):
        np.testing.assert_array_equal(
            found[pair, 0],
            tf.gather(texts.vectors[row], np.maximum(positions[pair, 0], 0)),
        )


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("interaction", ["tensor", "cosine"])
def test_rows_of_distinct_texts_score_as_single_pairs(share, interaction):
    """In training, too, and with the gradient of single pairs."""
    matcher = MVLSTM(
        4, 3, interaction=interaction, slices=2, k=6, hidden=5, share=share
    )
    randomise(matcher)
    query = word_sequences([6, 3, 2, 1], 4)
    document = word_sequences([8, 5, 5, 1, 1], 4, seed=1)
    rows = [
        RANDOM.integers(texts, size=30).astype(np.int32) for texts in (4, 5)
    ]
    weights = [v.value for v in matcher.trainable_variables]
    scores = check_training(
        lambda training: matcher.score_rows(query, document, *rows, training),
        [*weights, query.vectors, document.vectors],
    )
    for pair in range(3):
        alone = (
            alone_of(text, number[pair])
            for text, number in zip((query, document), rows, strict=True)
        )
        np.testing.assert_allclose(
            matcher(*alone), scores[pair : pair + 1], rtol=1e-10
        )

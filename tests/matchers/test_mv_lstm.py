"""MVLSTM: its strongest cells, its weights, and pairs of distinct texts."""

import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import WordSequences
from keras_lstm_dssm.layers.bidirectional_recurrence import FlatSequences
from keras_lstm_dssm.matchers import mv_lstm
from tests.matchers import ragged_texts
from tests.matchers.plain_matchers import k_max, mv_lstm_cells

pytestmark = pytest.mark.usefixtures("float64")


def small(**arguments: Any) -> mv_lstm.MVLSTM:
    matcher = mv_lstm.MVLSTM(4, 3, slices=2, rank=7, k=6, hidden=5, **arguments)
    ragged_texts.randomise(matcher)
    return matcher


def test_explain_names_the_strongest_cells():
    matcher = small(interaction="cosine")
    query, document = ragged_texts.pairs(4)
    values, rows, columns = matcher.explain(query, document)
    texts = zip(
        ragged_texts.texts_of(query),
        ragged_texts.texts_of(document),
        strict=True,
    )
    for pair, (one, other) in enumerate(texts):
        expected = mv_lstm_cells(matcher, one, other)
        np.testing.assert_allclose(
            values[pair], k_max(expected, matcher.k), rtol=1e-10
        )
        for value, i, j in zip(
            values[pair, 0], rows[pair, 0], columns[pair, 0], strict=True
        ):
            cell = 0 if i < 0 else expected[0, i, j]
            np.testing.assert_allclose(value, cell, rtol=1e-10)
    same = matcher.explain(query, query)  # each word matches itself best
    np.testing.assert_allclose(same.values[0, 0], np.ones(6), rtol=1e-12)
    np.testing.assert_array_equal(
        same.query_positions[0], same.document_positions[0]
    )


def test_weights_of_the_interaction_learn_at_a_tenth_of_the_rate():
    assert small(interaction="tensor").multipliers == {"interaction": 0.1}
    assert small(interaction="cosine").multipliers == {}


def test_each_weight_has_a_path_of_its_own():
    """So `multipliers` of `Adagrad` can name the LSTMs of one side."""
    names = "forward/cell/kernel", "backward/cell/bias"
    for share, sides in (
        (True, ["positions"]),
        (False, ["positions", "document_positions"]),
    ):
        matcher = small(share=share)
        paths = [weight.path for weight in matcher.weights]
        assert len(set(paths)) == len(paths)
        for name in names:
            found = [path for path in paths if path.endswith(name)]
            assert found == [f"{side}/{name}" for side in sides]


RANDOM = np.random.default_rng(0)
LENGTHS = [9, 7, 3, 2, 1]


def paired(texts: WordSequences, rows: tf.Tensor) -> mv_lstm.PairedTexts:
    flat = FlatSequences.from_padded(texts.vectors, texts.lengths)
    return mv_lstm.PairedTexts(flat.table, flat.starts, flat.lengths, rows)


@pytest.mark.parametrize("number", [0, 1, 3, 40])
def test_groups_hold_each_pair_once_padded_to_their_longest(number):
    texts = ragged_texts.word_sequences(LENGTHS, 4)
    rows = tf.constant(RANDOM.integers(5, size=number), tf.int32)
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
    order = mv_lstm.order_by_length(
        tf.constant(of_query), tf.constant(of_document)
    )
    parts = of_document[order].reshape(4, 20)
    ends = [(part.min(), part.max()) for part in parts]
    for (_, longest), (shortest, _) in itertools.pairwise(ends):
        assert longest <= shortest
    for part in of_query[order].reshape(4, 20):
        np.testing.assert_array_equal(part, np.sort(part))


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("interaction", ["tensor", "cosine"])
def test_rows_of_distinct_texts_score_as_single_pairs(share, interaction):
    """In training, too, and with the gradient of single pairs."""
    matcher = small(interaction=interaction, share=share)
    query = ragged_texts.word_sequences([6, 3, 2, 1], 4)
    document = ragged_texts.word_sequences([8, 5, 5, 1, 1], 4, seed=1)
    rows = [
        RANDOM.integers(texts, size=30).astype(np.int32) for texts in (4, 5)
    ]
    weights = [v.value for v in matcher.trainable_variables]
    scores = ragged_texts.check_training(
        lambda training: matcher.score_rows(query, document, *rows, training),
        [*weights, query.vectors, document.vectors],
    )
    for pair in range(3):
        alone = (
            ragged_texts.alone_of(text, number[pair])
            for text, number in zip((query, document), rows, strict=True)
        )
        np.testing.assert_allclose(
            matcher(*alone), scores[pair : pair + 1], rtol=1e-10
        )

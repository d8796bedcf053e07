"""MVLSTM: its strongest cells, special cases and the names of its weights.

Its scores and gradients are in `test_matchers.py`.
"""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import WordSequences, unit
from keras_lstm_dssm.layers.cosine import cosine_pairs
from keras_lstm_dssm.matchers.mv_lstm import MVLSTM
from keras_lstm_dssm.matchers.recurrent_cosine import RecurrentCosine
from tests.matchers.plain_matchers import k_max, mv_lstm_cells
from tests.matchers.ragged_texts import alone_of, pairs, randomise, texts_of

pytestmark = pytest.mark.usefixtures("float64")


def small(**arguments: Any) -> MVLSTM:
    matcher = MVLSTM(4, 3, slices=2, rank=7, k=6, hidden=5, **arguments)
    randomise(matcher)
    return matcher


def test_explain_names_the_strongest_cells():
    matcher = small(interaction="cosine")
    query, document = pairs(4)
    values, rows, columns = matcher.explain(query, document)
    texts = zip(texts_of(query), texts_of(document), strict=True)
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


def test_forward_positions_at_both_ends_are_the_lstm_rnn():
    """The special case that Wan et al. 2016 state at the end of section 3."""
    matcher = small(interaction="cosine")
    lstm_rnn = RecurrentCosine(word_dimension=4, units=3, scale=1.0)
    lstm_rnn.query_lstms[0].set_weights(
        matcher.query_positions.forward_lstm.get_weights()
    )
    query, document = pairs(4)
    for number in range(len(query.lengths)):
        one, other = (alone_of(text, number) for text in (query, document))
        u, v = (
            unit(matcher.query_positions(text)[:, -1:, :3])
            for text in (one, other)
        )
        cell = matcher.comparison(u, v)[0, 0, 0]
        np.testing.assert_allclose(lstm_rnn(one, other), cell, rtol=1e-12)


def test_both_directions_at_their_ends_are_the_bi_lstm_rnn():
    matcher = small()
    both = RecurrentCosine(word_dimension=4, units=3, bidirectional=True)
    layer = matcher.query_positions
    for lstm, other in zip(
        both.query_lstms, [layer.forward_lstm, layer.backward_lstm], strict=True
    ):
        lstm.set_weights(other.get_weights())

    def ends(texts: WordSequences) -> tf.Tensor:
        p = layer(texts)
        last = tf.gather(p, texts.lengths - 1, batch_dims=1)
        return tf.concat([last[:, :3], p[:, 0, 3:]], axis=1)

    query, document = pairs(4)
    np.testing.assert_allclose(
        both(query, document),
        5.0 * cosine_pairs(ends(query), ends(document)),
        rtol=1e-12,
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

"""MVLSTM against plain NumPy, pair by pair, in float64."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError
from keras_lstm_dssm.layers import WordSequences, unit
from keras_lstm_dssm.layers.cosine import cosine_pairs
from keras_lstm_dssm.matchers.mv_lstm import MVLSTM, PositionalBiLSTM
from keras_lstm_dssm.matchers.recurrent_cosine import RecurrentCosine
from tests import reference
from tests.matchers.ragged_texts import (
    alone_of,
    check_gradients,
    check_saving,
    check_scores,
    check_start,
    pairs,
    randomise,
    texts_of,
)

SMALL = {
    "word_dimension": 4, "units": 3, "slices": 2, "rank": 7, "k": 6,
    "hidden": 5,
}  # fmt: skip
CASES: list[dict[str, Any]] = [
    {"interaction": "tensor", "unit_length": True},
    {"interaction": "bilinear", "share": False, "rank": None},
    {"interaction": "cosine", "include_word": True},
    {"interaction": "dot", "k": 1},
    {"interaction": "tensor", "pooling": "dynamic", "grid": [2, 3]},
]

pytestmark = pytest.mark.usefixtures("float64")


def small(**arguments: Any) -> MVLSTM:
    matcher = MVLSTM(**{**SMALL, **arguments})
    randomise(matcher)
    return matcher


def positions(layer: PositionalBiLSTM, words: np.ndarray) -> np.ndarray:
    """Compute p_t of one text, `[words, dimension]`."""
    forward, backward = (
        reference.lstm(reference.gates_of(one.cell, one.cell.kernel), text)["y"]
        for one, text in [
            (layer.forward_lstm, words),
            (layer.backward_lstm, words[::-1]),
        ]
    )
    parts = [words] if layer.include_word else []
    p = np.concatenate([*parts, forward, backward[::-1]], axis=1)
    if layer.unit_length:
        p /= np.linalg.norm(p, axis=1, keepdims=True)
    return p


def cells(matcher: MVLSTM, query: np.ndarray, text: np.ndarray) -> np.ndarray:
    """Compute s(u_i, v_j) of one pair, `[slices, m, n]`."""
    u = positions(matcher.query_positions, query)
    v = positions(matcher.document_positions, text)
    M, *others = [v.numpy() for v in matcher.comparison.variables] or [None]
    if M is not None and matcher.rank:
        M = M @ M.swapaxes(-1, -2)
    if matcher.interaction == "dot":
        return (u @ v.T)[np.newaxis]
    if matcher.interaction == "cosine":
        norms = [np.linalg.norm(x, axis=1) for x in (u, v)]
        return (u @ v.T / np.outer(*norms))[np.newaxis]
    if matcher.interaction == "bilinear":
        (b,) = others
        return (u @ M @ v.T + b)[np.newaxis]
    W, b = others
    width = u.shape[1]
    return np.array(
        [
            np.maximum(
                u @ M[k] @ v.T
                + (u @ W[k, :width])[:, np.newaxis]
                + (v @ W[k, width:])[np.newaxis]
                + b[k],
                0,
            )
            for k in range(matcher.slices)
        ]
    )


def k_max(values: np.ndarray, k: int) -> np.ndarray:
    """Sort the cells of each slice and keep k, or zeros."""
    result = np.zeros((len(values), k))
    for row, one in zip(result, values, strict=True):
        largest = np.sort(one.ravel())[::-1][:k]
        row[: len(largest)] = largest
    return result


def by_numpy(matcher: MVLSTM, query: np.ndarray, text: np.ndarray) -> float:
    """Compute the score of one pair."""
    values = cells(matcher, query, text)
    if matcher.pooling == "k_max":
        q = k_max(values, matcher.k).ravel()
    else:  # has tests of its own
        lengths = [[len(query)], [len(text)]]
        batch = np.moveaxis(values, 0, -1)[np.newaxis]
        q = matcher.dynamic(batch, *lengths).numpy().ravel()
    W_r, b_r, W_s, b_s = (v.numpy() for v in matcher.mlp.variables)
    return (np.maximum(q @ W_r + b_r, 0) @ W_s + b_s)[0]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scores_equal_numpy_whatever_the_padding_and_the_batch(case):
    matcher = small(**case)
    check_scores(matcher, lambda q, d: by_numpy(matcher, q, d))


def test_gradients_equal_central_differences():
    check_gradients(small(interaction="tensor", unit_length=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gradient_of_training_is_that_of_tensorflow(case):
    matcher = small(**case)
    query, document = pairs(matcher.word_dimension)
    toward = tf.constant([1.0, -2.0, 3.0, 0.5, -1.0], tf.float64)
    sources = [v.value for v in matcher.trainable_variables]
    results = []
    for training in True, False:
        with tf.GradientTape() as tape:
            tape.watch([query.vectors, document.vectors])
            scores = matcher(query, document, training=training)
            loss = tf.reduce_sum(scores * toward)
        gradients = tape.gradient(
            loss, [*sources, query.vectors, document.vectors]
        )
        results.append([tf.convert_to_tensor(g).numpy() for g in gradients])
    for custom, automatic in zip(*results, strict=True):
        assert custom.any()
        np.testing.assert_allclose(custom, automatic, rtol=1e-10, atol=1e-12)


def test_it_starts_at_zero_and_has_the_parameters_of_wan_et_al():
    for case in CASES:
        check_start(MVLSTM(**{**SMALL, **case, "rank": 7}))
    matcher = MVLSTM()
    assert matcher.query_positions.count_params() == 40_400
    assert matcher.comparison.count_params() == 76_005
    assert matcher.mlp.count_params() == 5_401
    assert matcher.count_params() == 40_400 + 76_005 + 5_401
    bilinear = MVLSTM(interaction="bilinear", share=False, rank=None)
    assert bilinear.count_params() == 2 * 40_400 + 10_001 + 1_401
    wide = MVLSTM(include_word=True)
    assert wide.query_positions.dimension == 150


def test_explain_names_the_strongest_cells():
    matcher = small(interaction="cosine", share=True)
    query, document = pairs(matcher.word_dimension)
    values, rows, columns = matcher.explain(query, document)
    texts = zip(texts_of(query), texts_of(document), strict=True)
    for pair, (one, other) in enumerate(texts):
        expected = cells(matcher, one, other)
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


def test_saving(tmp_path):
    check_saving(
        MVLSTM,
        {
            **SMALL,
            "interaction": "bilinear",
            "share": False,
            "include_word": True,
            "pooling": "dynamic",
            "grid": [2, 1],
            "unit_length": True,
            "name": "mine",
        },
        tmp_path,
    )


def test_a_model_of_0_2_0_has_no_factors(tmp_path):
    check_saving(
        MVLSTM, {**SMALL, "rank": None}, tmp_path, absent={"rank": None}
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


def test_wrong_arguments():
    with pytest.raises(InputError, match="interaction must be .* 'product'"):
        MVLSTM(interaction="product")
    with pytest.raises(InputError, match="pooling must be one of .* 'mean'"):
        MVLSTM(pooling="mean")

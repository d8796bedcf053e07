"""LSTM-RNN and Bi-LSTM-RNN against plain NumPy, in float64."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.matchers.recurrent_cosine import RecurrentCosine
from tests import reference
from tests.matchers.ragged_texts import (
    check_gradients,
    check_saving,
    check_scores,
    pairs,
    randomise,
)

pytestmark = pytest.mark.usefixtures("float64")
every_kind = pytest.mark.parametrize(
    ("bidirectional", "share"), [(False, True), (True, True), (True, False)]
)


@functools.cache
def small(bidirectional: bool, share: bool) -> RecurrentCosine:
    matcher = RecurrentCosine(4, 3, bidirectional, share)
    randomise(matcher)
    return matcher


def vector(lstms: list, words: np.ndarray) -> np.ndarray:
    """Compute h_forward(m), or [h_forward(m); h_backward(1)], of one text."""
    return np.concatenate(
        [
            reference.lstm(reference.gates_of(one.cell, one.cell.kernel), text)[
                "y"
            ][-1]
            for one, text in zip(lstms, [words, words[::-1]], strict=False)
        ]
    )


@every_kind
def test_scores_equal_numpy_whatever_the_padding_and_the_batch(
    bidirectional, share
):
    matcher = small(bidirectional=bidirectional, share=share)
    check_scores(
        matcher,
        lambda query, document: (
            5.0
            * reference.cosine(
                vector(matcher.query_lstms, query),
                vector(matcher.document_lstms, document),
            )
        ),
    )


def test_gradients_equal_central_differences():
    check_gradients(small(bidirectional=True, share=False))


@every_kind
def test_the_gradient_of_training_is_that_of_tensorflow(bidirectional, share):
    matcher = small(bidirectional, share)
    query, document = pairs(4)
    sources = [v.value for v in matcher.trainable_variables]
    results = []
    for training in True, False:
        with tf.GradientTape() as tape:
            tape.watch([query.vectors, document.vectors])
            loss = tf.reduce_sum(matcher(query, document, training=training))
        gradients = tape.gradient(
            loss, [*sources, query.vectors, document.vectors]
        )
        results.append([tf.convert_to_tensor(g).numpy() for g in gradients])
    for custom, automatic in zip(*results, strict=True):
        assert custom.any()
        np.testing.assert_allclose(custom, automatic, rtol=1e-10, atol=1e-12)


def test_parameters_and_their_start():
    assert RecurrentCosine().count_params() == 20_200
    assert RecurrentCosine(bidirectional=True).count_params() == 40_400
    separate = RecurrentCosine(bidirectional=True, share=False)
    assert separate.count_params() == 80_800
    starts = []
    for lstm in [*separate.query_lstms, *separate.document_lstms]:
        cell = lstm.cell
        starts_of_gates = {g: 3.0 * (g == "f") for g in cell.gates}
        np.testing.assert_array_equal(
            cell.bias, np.repeat(list(starts_of_gates.values()), 50)
        )
        for weight in cell.kernel, cell.recurrent_kernel:
            assert 0.099 < np.abs(weight).max() <= 0.1
            starts.append(float(weight[0, 0]))
    assert len(set(starts)) == 8


def test_saving(tmp_path):
    arguments = {
        "word_dimension": 4, "units": 3, "bidirectional": True,
        "share": False, "scale": 3.0, "forget_bias": 1.0, "name": "mine",
    }  # fmt: skip
    check_saving(RecurrentCosine, arguments, tmp_path)


def test_a_model_of_0_2_0_has_other_defaults(tmp_path):
    absent = {"scale": 1.0, "forget_bias": 0.0}
    arguments = {"word_dimension": 4, "units": 3, **absent}
    check_saving(RecurrentCosine, arguments, tmp_path, absent)

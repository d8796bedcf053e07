"""All matchers of word vectors against NumPy, one pair at a time."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError
from keras_lstm_dssm.matchers import (
    ARCI,
    ARCII,
    CNTN,
    MVLSTM,
    RAE,
    DeepMatch,
    Matcher,
    MultiGranCNN,
    RecurrentCosine,
)
from keras_lstm_dssm.settings.recipes import SCORER_PRESETS
from tests.matchers import plain_matchers as plain
from tests.matchers import ragged_texts

pytestmark = pytest.mark.usefixtures("float64")

ARC_I_OF_WAN, ARC_II_OF_WAN, CNTN_OF_WAN, MULTI_GRAN_CNN_OF_WAN = (
    SCORER_PRESETS[f"{name}_wan"].matcher_config
    for name in ("arc_i", "arc_ii", "cntn", "multi_gran_cnn")
)

SMALL: dict[type[Matcher], tuple[Callable[..., float], dict[str, Any]]] = {
    ARCI: (plain.arc_i, {"hidden": [6]}),
    ARCII: (plain.arc_ii, {"hidden": [6]}),
    CNTN: (plain.cntn, {"filters": [3, 2], "dimension": 4, "slices": 2}),
    MultiGranCNN: (plain.multi_gran_cnn, {
        "sizes": [4, 3], "match_filters": [2], "hidden": [6],
    }),
    RecurrentCosine: (plain.recurrent_cosine, {"units": 3}),
    MVLSTM: (plain.mv_lstm, {
        "units": 3, "slices": 2, "rank": 7, "k": 6, "hidden": 5,
    }),
}  # fmt: skip
"""Class -> score of a pair by NumPy, and arguments that its forms share."""
# The longest query has 7 words, so that 6 cuts it and 12 pads all texts.
# One word and width 2 give two positions, fewer than CNTN's k_top: filled
# with 0.
FORMS: dict[str, tuple[type[Matcher], dict[str, Any]]] = {
    "arc_i cut": (ARCI, {"filters": [2, 3], "width": 2, "max_words": 6}),
    "arc_i padded": (ARCI, {"filters": [3, 2], "hidden": [], "max_words": 12}),
    "arc_i no bias": (ARCI, {
        "filters": [4], "use_bias": False, "max_words": 8,
    }),
    "arc_i tanh": (ARCI, {
        "filters": [3, 2], "activation": "tanh", "max_words": 11,
    }),
    "arc_i wan": (ARCI, {**ARC_I_OF_WAN, "filters": [2, 3]}),
    "arc_ii cut": (ARCII, {"filters": [3], "width": 2, "max_words": 6}),
    "arc_ii padded": (ARCII, {"filters": [3, 2], "max_words": 12}),
    "arc_ii deep": (ARCII, {
        "filters": [2, 2, 3], "width": 2, "max_words": 11, "hidden": [8, 5],
    }),
    "arc_ii wan": (ARCII, {**ARC_II_OF_WAN, "filters": [3], "max_words": 9}),
    "cntn": (CNTN, {"width": 2, "k_top": 4, "dimension": 3}),
    "cntn deep": (CNTN, {
        "filters": [2, 3, 2], "k_top": 2, "k_min": 3, "slices": 1,
    }),
    "cntn no dense": (CNTN, {
        "k_top": 3, "dimension": None, "use_bias": False,
    }),
    "cntn wan": (CNTN, {**CNTN_OF_WAN, "filters": [3, 2]}),
    "multi_gran_cnn": (MultiGranCNN, {}),
    "multi_gran_cnn two maps": (MultiGranCNN, {
        "sizes": [5, 3, 2], "match_filters": [2, 3],
    }),
    "multi_gran_cnn direct": (MultiGranCNN, {
        "similarity": "direct", "blocks": 2, "width": 2,
    }),
    "multi_gran_cnn concat": (MultiGranCNN, {"similarity": "concat"}),
    "multi_gran_cnn wan": (MultiGranCNN, {
        **MULTI_GRAN_CNN_OF_WAN, "hidden": [6], "sizes": [6],
    }),
    "lstm_rnn": (RecurrentCosine, {}),
    "bi_lstm_rnn": (RecurrentCosine, {"bidirectional": True}),
    "bi_lstm_rnn separate": (RecurrentCosine, {
        "bidirectional": True, "share": False,
    }),
    "mv_lstm tensor": (MVLSTM, {"interaction": "tensor", "unit_length": True}),
    "mv_lstm bilinear": (MVLSTM, {
        "interaction": "bilinear", "share": False, "rank": None,
    }),
    "mv_lstm cosine": (MVLSTM, {"interaction": "cosine", "include_word": True}),
    "mv_lstm dot": (MVLSTM, {"interaction": "dot", "k": 1}),
    "mv_lstm grid": (MVLSTM, {
        "interaction": "tensor", "pooling": "dynamic", "grid": [2, 3],
    }),
}  # fmt: skip
RECURRENT = [form for form in FORMS if "lstm" in form]


def new(form: str, **arguments: Any) -> Matcher:
    kind, own = FORMS[form]
    return kind(3, **{**SMALL[kind][1], **own, **arguments})


@functools.cache
def randomised(form: str) -> Matcher:
    matcher = new(form)
    ragged_texts.randomise(matcher)
    return matcher


@pytest.mark.parametrize("form", FORMS)
def test_scores_equal_numpy_whatever_the_padding_and_the_batch(form):
    score, _ = SMALL[FORMS[form][0]]
    matcher = randomised(form)
    ragged_texts.check_scores(matcher, functools.partial(score, matcher))


@pytest.mark.parametrize(
    "form",
    ["arc_i cut", "arc_i wan", "arc_ii padded", "arc_ii wan", "cntn",
     "cntn wan", "multi_gran_cnn", "multi_gran_cnn direct",
     "multi_gran_cnn concat", "multi_gran_cnn wan", "bi_lstm_rnn separate",
     "mv_lstm tensor"],
)  # fmt: skip
def test_gradients_equal_central_differences(form):
    ragged_texts.check_gradients(randomised(form))


@pytest.mark.parametrize("form", RECURRENT)
def test_the_gradient_of_training_is_that_of_tensorflow(form):
    matcher, texts = randomised(form), ragged_texts.pairs(3)
    weights = [v.value for v in matcher.trainable_variables]
    ragged_texts.check_training(
        lambda training: matcher(*texts, training=training),
        [*weights, *(text.vectors for text in texts)],
    )


def test_arc_ii_sum_of_convolutions_is_one_of_the_concatenation():
    """`represent` and an outer sum give the first maximum of ARC-II."""
    matcher = randomised("arc_ii padded")
    texts = ragged_texts.pairs(3)
    query = matcher.represent(texts[0], "query")
    document = matcher.represent(texts[1], "document")
    for number, words in enumerate(
        zip(*map(ragged_texts.texts_of, texts), strict=True)
    ):
        cells, _ = plain.first_layer(matcher, *words)
        expected = plain.squares_of_two(cells)
        sums = query.values[number][:, None] + document.values[number][None]
        rows, columns = query.lengths[number], document.lengths[number]
        np.testing.assert_allclose(
            tf.nn.relu(sums)[:rows, :columns],
            expected[:rows, :columns],
            rtol=1e-12,
        )
        assert not expected[rows:].any() and not expected[:, columns:].any()
        assert expected[:rows, :columns].any()


@pytest.mark.parametrize(
    "form", ["arc_i padded", "arc_ii padded", "cntn", "multi_gran_cnn",
             *(form for form in RECURRENT if form.startswith("mv_lstm"))],
)  # fmt: skip
def test_all_scores_are_zero_at_the_start(form):
    ragged_texts.check_start(new(form))


def test_parameters_of_the_papers_and_of_wan_et_al():
    def count(kind: type[Matcher], **arguments: Any) -> int:
        return kind(**arguments).count_params()

    def inputs(kind: type[Matcher], **arguments: Any) -> int:
        (dense,) = kind(**arguments).mlp.dense
        return dense.kernel.shape[0]

    assert inputs(ARCI) == 2 * 11 * 200
    assert inputs(ARCI, **ARC_I_OF_WAN) == 100
    assert count(ARCI, **ARC_I_OF_WAN) == (
        4 * 3 * 50 * 50 + 100 * 200 + 200 + 200 + 1
    )
    assert inputs(ARCII) == 5 * 5 * 50
    assert count(ARCII, **ARC_II_OF_WAN) == (
        2 * 3 * 50 * 30 + 30 + 26 * 26 * 30 * 60 + 60 + 60 + 1
    )
    assert count(CNTN, **CNTN_OF_WAN) == (
        4 * 3 * 50 * 50 + 5 * (50 * 50 + 2 * 50 + 1 + 1)
    )
    of_side = 2 * (3 * 50 * 50 + 50) + 10 * 50 * 200 + 200
    assert count(CNTN) == 2 * of_side + 5 * (200 * 200 + 402)
    assert count(MultiGranCNN, **MULTI_GRAN_CNN_OF_WAN) == (
        2 * 3 * 3 * 50 * 50 + 50 * 50 + 15 * 15 * 200 + 200 + 200 + 1
    )
    assert inputs(MultiGranCNN) == 2 * 2 * 50
    assert count(RecurrentCosine) == 20_200
    assert count(RecurrentCosine, bidirectional=True) == 40_400
    assert count(RecurrentCosine, bidirectional=True, share=False) == 80_800
    assert count(MVLSTM) == 40_400 + 76_005 + 5_401
    assert count(
        MVLSTM, interaction="bilinear", share=False, rank=None
    ) == 2 * 40_400 + 10_001 + 1_401  # fmt: skip


def test_gates_start_small_and_the_forget_gate_open():
    matcher = RecurrentCosine(bidirectional=True, share=False)
    starts = []
    for lstm in [*matcher.query_lstms, *matcher.document_lstms]:
        cell = lstm.cell
        biases = [3.0 * (gate == "f") for gate in cell.gates]
        np.testing.assert_array_equal(cell.bias, np.repeat(biases, 50))
        for weight in cell.kernel, cell.recurrent_kernel:
            assert 0.099 < np.abs(weight).max() <= 0.1
            starts.append(float(weight[0, 0]))
    assert len(set(starts)) == 8


@pytest.mark.parametrize(("kind", "arguments", "message"), [
    (ARCI, {"pooling": "mean"}, "pooling must be .* not 'mean'"),
    (ARCI, {"max_words": 5}, "5 positions are too few for 2 conv"),
    (ARCI, {"filters": []}, "filters is empty"),
    (ARCII, {"filters": []}, "filters is empty"),
    (ARCII, {"max_words": 9}, "9 positions are too few for 3 conv"),
    (ARCII, {"filters": [2, 0]},
     "filters is 0: expected a whole number of 1 or more"),
    (MultiGranCNN, {"match_filters": [2, 0, 2]},
     "match_filters is 0: expected a whole number of 1 or more"),
    (CNTN, {"slices": 0}, "slices is 0: expected a whole number of 1 or more"),
    (CNTN, {"dimension": 0},
     "dimension is 0: expected a whole number of 1 or more"),
    (CNTN, {"k_top": 0}, "k_top is 0: expected a whole number of 1 or more"),
    (MultiGranCNN, {"sizes": [15]}, "one number more .* 1 and 3"),
    (MultiGranCNN, {"similarity": "dot"}, "kind must be .* not 'dot'"),
    (MultiGranCNN, {"similarity_activation": "gelu"},
     "activation must be .* not 'gelu'"),
    (MVLSTM, {"interaction": "product"}, "interaction must be .* 'product'"),
    (MVLSTM, {"pooling": "mean"}, "pooling must be one of .* 'mean'"),
    (DeepMatch, {"topics": [20]}, "two or more levels, not"),
    (DeepMatch, {"rank": 0}, "rank is 0: expected a whole number of 1 or more"),
    (DeepMatch, {"overlap": 1.5}, "overlap must be from 0 to 1, not 1.5"),
    (DeepMatch, {"mass": 1.5}, "mass must be above 0, up to 1, not 1.5"),
    (RAE, {"head": "mean"}, "head must be one of pool, root"),
    (RAE, {"learning_rate": 0.0}, "learning_rate must be above 0, not 0.0"),
    (RAE, {"epochs": 0}, "epochs is 0: expected a whole number of 1 or more"),
    (RAE, {"tree": "parsed"}, "tree must be one of greedy"),
    (RAE, {"max_words": 0},
     "max_words is 0: expected a whole number of 1 or more"),
])  # fmt: skip
def test_wrong_arguments(kind, arguments, message):
    with pytest.raises(InputError, match=message):
        kind(**arguments)

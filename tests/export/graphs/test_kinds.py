"""Exports of every kind of model give the model's own numbers."""

import operator

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_models
from keras_lstm_dssm.text.word_hashing import MAX_BYTES_PER_WORD, MAX_LETTERS
from tests.export.agreement import check_export, loaded
from tests.export.graphs.kinds import KINDS, Case, pair_scorer, request
from tests.models.small_keyvec import small_keyvec


@pytest.fixture(params=KINDS)
def cases(request, exported) -> list[Case]:
    return exported(request.param).cases


def run(case: Case, rows: slice) -> dict[str, np.ndarray]:
    """Calls the signature in Python with some rows of the request."""
    inputs = {
        name: tf.constant(tf.make_ndarray(proto)[rows])
        for name, proto in case.request.inputs.items()
    }
    signature = case.request.model_spec.signature_name or "serving_default"
    outputs = loaded(case.version).signatures[signature](**inputs)
    return {name: value.numpy() for name, value in outputs.items()}


def assert_close(found: np.ndarray, expected: np.ndarray, atol: float) -> None:
    assert found.shape == expected.shape
    if expected.dtype in (object, np.int32):
        assert found.tolist() == expected.tolist()
    else:
        assert found.dtype == np.float32 and np.isfinite(found).all()
        np.testing.assert_allclose(found, expected, rtol=3e-7, atol=atol)


def test_cpp_loader_gives_what_the_model_gives(cases):
    """With the warm-up requests of all signatures, which a server replays."""
    outputs = check_export(*((case.version, case.request) for case in cases))
    for case, output in zip(cases, outputs, strict=True):
        for name, expected in case.expected.items():
            if expected.dtype != object:
                assert np.ptp(expected) > 1e-2
            assert_close(output[name], expected, case.atol)


def test_a_row_alone_has_the_outputs_that_it_has_in_a_batch(cases):
    """One short text is encoded by operations of its own."""
    for case in cases:
        together = run(case, slice(None))
        for row in range(len(next(iter(together.values())))):
            alone = run(case, slice(row, row + 1))
            for name, (values,) in alone.items():
                # A batch is as wide as its largest k.
                batch = together[name][row]
                if values.ndim:
                    batch = batch[: len(values)]
                assert_close(values, batch, case.atol)


def test_no_rows_have_no_outputs(cases):
    for case in cases:
        for values in run(case, slice(0)).values():
            assert len(values) == 0


def test_long_texts_and_words_are_cut_in_the_graph(exported):
    """A request cannot make the server hash megabytes."""
    texts = [
        *("a" * MAX_LETTERS, "a" * 1_000_000),
        *("", " " * 128 * MAX_BYTES_PER_WORD + "bolt"),
    ]
    version = exported("encoder").cases[0].version
    found = run(Case(version, request(text=texts), {}), slice(None))
    word, long_word, empty, late = found["embedding"]
    np.testing.assert_array_equal(word, long_word)
    np.testing.assert_array_equal(empty, late)


@pytest.mark.parametrize(("make", "weight"), [
    (lambda: dssm.TwoTower(dssm.RNNEncoder(3), dssm.RNNEncoder(3)),
     "document_encoder.embedding.table"),
    (lambda: pair_scorer("RecurrentCosine"), "words.embedding.table"),
    (small_keyvec, "word_scores.bias"),
])  # fmt: skip
def test_weights_that_are_not_finite_publish_nothing(make, weight, tmp_path):
    model = make()
    variable = operator.attrgetter(weight)(model)
    variable.assign(variable * np.nan)
    layer, name = weight.split(".")[-2:]
    with pytest.raises(dssm.InputError, match=f"{layer}/{name}: .* not finite"):
        export_models(model, tmp_path)
    assert list(tmp_path.iterdir()) == []

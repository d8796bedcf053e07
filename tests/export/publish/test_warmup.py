"""Warm-up records: whole, replayed, and refused when they would fail."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.publish.warmup import write_warmup
from tests.serving import tiny_models as tiny
from tests.serving.wire import warmup_requests


def test_one_record_for_each_signature_and_size(tmp_path):
    tiny.save_functions(
        tmp_path,
        serving_default=tiny.signature(tiny.encode, text="string"),
        search=tiny.signature(tiny.search, text="string", k="int32"),
    )
    path = write_warmup(tmp_path, "both", sizes=(1, 3))
    assert path.relative_to(tmp_path) == Path(
        "assets.extra/tf_serving_warmup_requests"
    )
    one, three = [b"warm"], [b"warm", b"warm up", b"warm up 2"]
    for request, (name, expected) in zip(
        warmup_requests(tmp_path),
        [("search", {"text": one, "k": [10]}),
         ("search", {"text": three, "k": [10] * 3}),
         ("serving_default", {"text": one}),
         ("serving_default", {"text": three})],
        strict=True,
    ):  # fmt: skip
        spec, inputs = request.model_spec, request.inputs.items()
        assert (spec.name, spec.signature_name) == ("both", name)
        found = {alias: tf.make_ndarray(proto) for alias, proto in inputs}
        assert {alias: a.tolist() for alias, a in found.items()} == expected


@pytest.mark.parametrize(("serve", "message"), [
    (lambda text: {"y": tf.fill(tf.shape(text), np.float32("nan"))},
     "serving_default gives y with numbers that are not finite"),
    (lambda text: {"y": tf.zeros([7])}, r"gives y of shape \(7,\) for 1 rows"),
    (lambda text: {"y": tf.zeros([])}, r"gives y of shape \(\) for 1 rows"),
    (lambda text: {"y": tf.strings.to_number(text)},
     "serving_default fails: .*StringToNumberOp could not .* reject"),
])  # fmt: skip
def test_a_record_that_would_fail_is_an_error(tmp_path, serve, message):
    with pytest.raises(InputError, match=message):
        write_warmup(tiny.save_function(tmp_path, serve, text="string"), "m")


def test_unknown_inputs_and_too_many_records(tmp_path):
    tiny.save_function(tmp_path / "x", lambda x: {"y": 2 * x}, x="float32")
    with pytest.raises(InputError, match="has an input 'x'; warm-up req"):
        write_warmup(tmp_path / "x", "numbers")
    lengths = lambda text: {"y": tf.strings.length(text)}  # noqa: E731
    tiny.save_function(tmp_path / "y", lengths, text="string")
    with pytest.raises(InputError, match="1001 warm-up requests; .* 1,000"):
        write_warmup(tmp_path / "y", "y", sizes=[1] * 1001)

"""The JSON of replies, and the way there and back."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from keras_lstm_dssm.serving.rest_json import (
    JsonError,
    inputs_from_json,
    is_row_format,
    json_from_outputs,
    parse_object,
)


def test_outputs_by_row_and_by_name() -> None:
    ids = np.array([[b"a", b'"<b>'], [b"c", b"\xff"]], object)
    scores = np.float32([[1, 0.2], [-2, 1e-7]])
    both = {"scores": scores, "ids": ids}
    assert json_from_outputs(both, row=True) == (
        '{"predictions": [{"ids": ["a", "\\"<b>"], "scores": [1.0, 0.2]}, '
        '{"ids": ["c", "\ufffd"], "scores": [-2.0, 1e-07]}]}'
    )
    assert json_from_outputs(both, row=False) == (
        '{"outputs": {"ids": [["a", "\\"<b>"], ["c", "\ufffd"]], "scores": '
        "[[1.0, 0.2], [-2.0, 1e-07]]}}"
    )
    one = {"y": np.array([True, False])}
    assert json_from_outputs(one, True) == '{"predictions": [true, false]}'
    assert json_from_outputs(one, False) == '{"outputs": [true, false]}'
    raw = {"raw_bytes": np.array(b"\xff", object)}
    assert json_from_outputs(raw, False) == '{"outputs": {"b64": "/w=="}}'
    empty = {"y": np.zeros([0, 3]), "z": np.zeros([0], np.int8)}
    assert json_from_outputs(empty, True) == '{"predictions": []}'
    assert json_from_outputs(empty, False) == '{"outputs": {"y": [], "z": []}}'
    wrong = {"y": np.float64([math.nan, math.inf, -math.inf, 1e300])}
    assert json_from_outputs(wrong, False) == (
        '{"outputs": [NaN, Infinity, -Infinity, 1e+300]}'
    )


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({}, "Cannot convert empty tensor map"),
        ({"y": np.float32(1)}, "Tensor name: y has no shape information"),
        (
            {"x": np.zeros(1), "y": np.zeros(2)},
            "Tensor name: y has inconsistent batch size: 2 expecting: 1",
        ),
        ({"x": np.zeros(1, complex)}, "tensor type: complex128"),
    ],
)
def test_outputs_that_are_no_rows(
    outputs: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(JsonError, match=message):
        json_from_outputs(
            {n: np.asarray(a) for n, a in outputs.items()}, row=True
        )


NUMBERS = {
    "float": np.float32, "double": np.float64, "int8": np.int8,
    "int32": np.int32, "int64": np.int64, "uint64": np.uint64, "bool": np.bool_,
}  # fmt: skip
SHAPES = st_numpy.array_shapes(min_dims=1, max_dims=3, max_side=4)


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(NUMBERS)), st.booleans())
def test_numbers_survive_the_way_there_and_back(
    data: st.DataObject, dtype: str, row: bool
) -> None:
    array = data.draw(st_numpy.arrays(NUMBERS[dtype], SHAPES))
    replied = json.loads(json_from_outputs({"x": array}, row))
    if row:
        request = {"instances": replied["predictions"]}
    else:
        request = {"inputs": replied["outputs"]}
    sent = json.dumps(request)
    assert is_row_format(request) == row
    back = inputs_from_json(parse_object(sent.encode()), {"x": dtype})["x"]
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_the_largest_float_survives() -> None:
    """Replies write it with nine digits, 3.40282347e+38, which is above it."""
    largest = np.array([3.4028235e38, -3.4028235e38], np.float32)
    replied = json.loads(json_from_outputs({"x": largest}, False))
    request = parse_object(json.dumps({"inputs": replied["outputs"]}).encode())
    back = inputs_from_json(request, {"x": "float"})["x"]
    assert back.tolist() == largest.tolist() and np.isfinite(back).all()


@settings(deadline=None)
@given(st_numpy.arrays(object, SHAPES, elements=st.binary()), st.booleans())
def test_bytes_survive_the_way_there_and_back(
    array: np.ndarray, row: bool
) -> None:
    replied = json.loads(json_from_outputs({"x_bytes": array}, row))
    key, values = next(iter(replied.items()))
    request = {"instances" if row else "inputs": values}
    assert key == ("predictions" if row else "outputs")
    back = inputs_from_json(request, {"x": "string"})["x"]
    assert back.tolist() == array.tolist()

"""The JSON of requests and replies, without a server or TensorFlow."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from keras_lstm_dssm.serving import rest_json

TEXT = {"text": "string"}
PAIR = {"text": "string", "k": "int32"}


def arrays(body: str, dtypes: dict[str, str]) -> dict[str, Any]:
    converted = rest_json.inputs_from_json(
        rest_json.parse_object(body.encode(errors="surrogateescape")), dtypes
    )
    return {name: array.tolist() for name, array in converted.items()}


@pytest.mark.parametrize(("body", "dtypes", "message"), [
    ("", TEXT, "JSON Parse error: The document is empty"),
    ("instances = [1]", TEXT, "JSON Parse error: Invalid value."),
    ('{"inputs": ["a"]} 1', TEXT, "JSON Parse error"),
    ('{"inputs": [1e999]}', {"x": "float"}, "Number too big"),
    ("[" * 100_000, TEXT, "JSON Parse error"),
    ("[1, 2]", TEXT, "Is not object"),
    ('{"inputs": ["\udcff"]}', TEXT, "Invalid encoding"),
    ("{}", TEXT, "Missing 'inputs' or 'instances' key"),
    ('{"inputs": 1, "instances": 1}', TEXT, "expecting only one of"),
    ('{"instances": {}}', TEXT, "Excepting 'instances' to be an list"),
    ('{"instances": []}', TEXT, "No values in 'instances' array"),
    ('{"instances": [1]}', TEXT,
     "Failed to process element: 0 of 'instances' list. Error: "
     "INVALID_ARGUMENT: JSON Value: 1 Type: Number is not of expected "
     "type: string"),
    ('{"inputs": ["a"]}', PAIR, "inputs is a plain value/list"),
    ('{"inputs": {"k": [1]}}', PAIR, "Missing named input: text"),
    ('{"instances": ["a"]}', PAIR, "instances is a plain list"),
    ('{"instances": [{"b64": ""}]}', PAIR, "instances is a plain list"),
    ('{"instances": [{"b64": "YQ"}]}', PAIR, "instances is a plain list"),
    ('{"instances": [{"text": "a"}]}', PAIR, "keys must be equal to: k,te"),
    ('{"instances": [{"z": "a"}]}', TEXT, "does not have named input: z"),
    ('{"instances": ["a", {"text": "b"}]}', TEXT,
     "Expecting value/list but got object at item 1"),
    ('{"instances": [{"text": "b"}, "a"]}', TEXT,
     "Expecting object but got list at item 1"),
    ('{"inputs": [["a"], ["b", "c"]]}', TEXT,
     "Expecting tensor size: 1 but got: 2"),
    ('{"inputs": ["a", ["b"]]}', TEXT, "Expecting shape [] but got: [1]"),
    ('{"inputs": [["a"], "b"]}', TEXT, "Expecting shape [1] but got: []"),
    ('{"inputs": [[["a"], ["b"]], [["a"], ["b", "c"]]]}', TEXT,
     "Expecting shape [2,1] but got: unequal sizes"),
    ('{"instances": [{"text": "a", "k": 1}, {"text": "a", "k": "b"}]}',
     PAIR, "Failed to process element: 1 key: k of 'instances' list."),
    ('{"instances": [["a", "b"], ["c", 1]]}', TEXT,
     "Failed to process element: 1 of 'instances' list."),
    ('{"instances": [["a"], ["b", "c"]]}', TEXT,
     "Expecting tensor size: 1 but got: 2"),
    ('{"instances": [[["a"]], ["b"]]}', TEXT,
     "Expecting shape [1,1] but got: [1]"),
    ('{"inputs": ' + "[" * 40 + "]" * 40 + "}", TEXT, "nested over 32"),
    ('{"inputs": [null]}', TEXT, "JSON Value: null Type: Null is not"),
    ('{"inputs": [true]}', {"x": "int32"}, "Type: True is not of"),
    ('{"inputs": [1.0]}', {"x": "int32"}, "is not of expected type: int32"),
    ('{"inputs": [256]}', {"x": "uint8"}, "is not of expected type: uint8"),
    ('{"inputs": ["1"]}', {"x": "float"}, "Type: String is not of"),
    ('{"inputs": [{"b64": "YQ"}]}', {"x": "float"}, "Type: Object is not"),
    ('{"inputs": [16777216]}', {"x": "float"}, "without loss of precision"),
    ('{"inputs": [1e39]}', {"x": "float"}, "without loss of precision"),
    ('{"inputs": [3.4028236e38]}', {"x": "float"}, "without loss of precision"),
    ('{"inputs": [{"b64": "*"}]}', TEXT, "Unable to base64 decode"),
    ('{"inputs": [{"b64": 1}]}', TEXT, "not formatted correctly for base"),
    ('{"inputs": ["\\ud800"]}', TEXT, "surrogate pair"),
    ('{"inputs": [1]}', {"x": "complex64"}, "to type: complex64"),
    *((body, TEXT, "The surrogate pair in string is invalid") for body in (
        '["\\ud800"]', '{"\\uDFff": 1}', '{"a": ["\\ude00\\ud83d"]}',
        '{"a": [["\\ud83d\\ude00", "\\ud83d "]]}',
    )),
])  # fmt: skip
def test_wrong_bodies(body, dtypes, message):
    """They are refused by a message of limited length."""
    with pytest.raises(rest_json.InvalidError) as raised:
        arrays(body, dtypes)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 2000


@pytest.mark.parametrize(("request_", "expected"), [
    ({"instances": ["a"] * 7}, 7),
    ({"inputs": ["a"] * 7}, 7),
    ({"inputs": {"text": ["a"] * 3, "k": [1] * 7, "n": 1}}, 7),
    ({"inputs": {"b64": ""}}, 0),
    ({"inputs": "a"}, 0),
])  # fmt: skip
def test_rows_are_counted_before_they_are_converted(request_, expected):
    assert rest_json.row_count(request_) == expected


@pytest.mark.parametrize(("body", "dtypes", "expected"), [
    ('{"instances": ["a", "b"]}', TEXT, {"text": [b"a", b"b"]}),
    ('{"instances": [{"text": "a"}]}', TEXT, {"text": [b"a"]}),
    ('{"inputs": ["a"]}', TEXT, {"text": [b"a"]}),
    ('{"inputs": "a"}', TEXT, {"text": b"a"}),
    ('{"inputs": {"text": ["a"]}}', TEXT, {"text": [b"a"]}),
    ('{"inputs": []}', TEXT, {"text": []}),
    ('{"instances": [{"text": "a", "k": 1}, {"k": 2, "text": "b"}]}', PAIR,
     {"text": [b"a", b"b"], "k": [1, 2]}),
    # TF Serving ignores other names in `inputs`, and other keys.
    ('{"x": 1, "inputs": {"text": ["a"], "k": [1], "z": 3}}', PAIR,
     {"text": [b"a"], "k": [1]}),
    ('{"instances": [[[1.5, 2], [3, 4]]]}', {"x": "float"}, {"x": [[[1.5,
     2.0], [3.0, 4.0]]]}),
    # base64 stands for bytes everywhere, with or without padding.
    ('{"inputs": [{"b64": "/w=="}]}', TEXT, {"text": [b"\xff"]}),
    ('{"inputs": {"b64": "/w"}}', TEXT, {"text": b"\xff"}),
    ('{"instances": [{"b64": "YQ"}, "é"]}', TEXT,
     {"text": [b"a", "é".encode()]}),
    ('{"inputs": [true, false]}', {"x": "bool"}, {"x": [True, False]}),
    ('{"inputs": [18446744073709551615]}', {"x": "uint64"}, {"x": [2**64 - 1]}),
    ('{"inputs": [-9007199254740991]}', {"x": "double"},
     {"x": [-9007199254740991.0]}),
    ('\ufeff{"inputs": ["\\ud83d\\ude00"]}', TEXT, {"text": ["😀".encode()]}),
    # An escaped backslash is no half of a surrogate pair.
    ('{"inputs": ["\\\\ud800"]}', TEXT, {"text": [b"\\ud800"]}),
])  # fmt: skip
def test_inputs(body, dtypes, expected):
    assert arrays(body, dtypes) == expected


@settings(deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["text", "k", "b64", "inputs", "z"]), inner),
    max_leaves=12,
), st.sampled_from(["inputs", "instances"]))  # fmt: skip
def test_any_json_gives_arrays_or_an_error(value, key):
    for dtypes in (PAIR, TEXT, {"x": "float"}):
        try:
            made = rest_json.inputs_from_json({key: value}, dtypes)
        except rest_json.InvalidError:
            continue
        assert made.keys() == dtypes.keys()


def test_numbers_that_are_not_finite():
    nan, high, low = arrays(
        '{"inputs": [NaN, Infinity, -Infinity]}', {"x": "float"}
    )["x"]
    assert math.isnan(nan) and high == math.inf and low == -math.inf


def written(outputs: dict[str, np.ndarray], row: bool) -> str:
    return rest_json.json_from_outputs(outputs, row).decode()


def test_outputs_by_row_and_by_name():
    ids = np.array([[b"a", b'"<b>'], [b"c", b"\xff"]], object)
    scores = np.float32([[1, 0.2], [-2, 1e-7]])
    both = {"scores": scores, "ids": ids}
    assert written(both, row=True) == (
        '{"predictions":[{"ids":["a","\\"<b>"],"scores":[1.0,0.2]},'
        '{"ids":["c","\ufffd"],"scores":[-2.0,1e-7]}]}'
    )
    assert written(both, row=False) == (
        '{"outputs":{"ids":[["a","\\"<b>"],["c","\ufffd"]],"scores":'
        "[[1.0,0.2],[-2.0,1e-7]]}}"
    )
    one = {"y": np.array([True, False])}
    assert written(one, True) == '{"predictions":[true,false]}'
    assert written(one, False) == '{"outputs":[true,false]}'
    raw = {"raw_bytes": np.array(b"\xff", object)}
    assert written(raw, False) == '{"outputs":{"b64":"/w=="}}'
    empty = {"y": np.zeros([0, 3]), "z": np.zeros([0], np.int8)}
    assert written(empty, True) == '{"predictions":[]}'
    assert written(empty, False) == '{"outputs":{"y":[],"z":[]}}'
    wrong = {"y": np.float64([math.nan, math.inf, -math.inf, 1e300])}
    assert written(wrong, False) == (
        '{"outputs":[NaN,Infinity,-Infinity,1e+300]}'
    )


@pytest.mark.parametrize(("outputs", "message"), [
    ({}, "Cannot convert empty tensor map"),
    ({"y": np.float32(1)}, "Tensor name: y has no shape information"),
    ({"x": np.zeros(1), "y": np.zeros(2)},
     "Tensor name: y has inconsistent batch size: 2 expecting: 1"),
    ({"x": np.zeros(1, complex)}, "tensor type: complex128"),
])  # fmt: skip
def test_outputs_that_are_no_rows(outputs, message):
    with pytest.raises(rest_json.InvalidError, match=message):
        rest_json.json_from_outputs(
            {n: np.asarray(a) for n, a in outputs.items()}, by_row=True
        )


NUMBERS = {
    "float": np.float32, "double": np.float64, "int8": np.int8,
    "int32": np.int32, "int64": np.int64, "uint64": np.uint64, "bool": np.bool_,
}  # fmt: skip
SHAPES = st_numpy.array_shapes(min_dims=1, max_dims=3, max_side=4)


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(NUMBERS)), st.booleans())
def test_numbers_survive_the_way_there_and_back(data, dtype, row):
    array = data.draw(st_numpy.arrays(NUMBERS[dtype], SHAPES))
    replied = json.loads(rest_json.json_from_outputs({"x": array}, row))
    if row:
        request = {"instances": replied["predictions"]}
    else:
        request = {"inputs": replied["outputs"]}
    sent = json.dumps(request)
    assert rest_json.is_row_format(request) == row
    back = rest_json.inputs_from_json(
        rest_json.parse_object(sent.encode()), {"x": dtype}
    )["x"]
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_the_largest_float_survives():
    """Replies write it with nine digits, 3.40282347e+38, which is above it."""
    largest = np.array([3.4028235e38, -3.4028235e38], np.float32)
    replied = json.loads(rest_json.json_from_outputs({"x": largest}, False))
    request = rest_json.parse_object(
        json.dumps({"inputs": replied["outputs"]}).encode()
    )
    back = rest_json.inputs_from_json(request, {"x": "float"})["x"]
    assert back.tolist() == largest.tolist() and np.isfinite(back).all()


@settings(deadline=None)
@given(st_numpy.arrays(object, SHAPES, elements=st.binary()), st.booleans())
def test_bytes_survive_the_way_there_and_back(array, row):
    replied = json.loads(rest_json.json_from_outputs({"x_bytes": array}, row))
    key, values = next(iter(replied.items()))
    request = {"instances" if row else "inputs": values}
    assert key == ("predictions" if row else "outputs")
    back = rest_json.inputs_from_json(request, {"x": "string"})["x"]
    assert back.tolist() == array.tolist()

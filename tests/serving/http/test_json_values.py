"""Single JSON values of requests: strings, base64, numbers."""

import math

import pytest

from tests.serving.http.json_arrays import TEXT, arrays, assert_json_error


@pytest.mark.parametrize(
    ("body", "dtypes", "expected"),
    [
        # base64 stands for bytes everywhere, with or without padding.
        ('{"inputs": [{"b64": "/w=="}]}', TEXT, {"text": [b"\xff"]}),
        ('{"inputs": {"b64": "/w"}}', TEXT, {"text": b"\xff"}),
        ('{"instances": [{"b64": "YQ"}, "é"]}', TEXT,
         {"text": [b"a", "é".encode()]}),
        ('{"inputs": [true, false]}', {"x": "bool"}, {"x": [True, False]}),
        ('{"inputs": [18446744073709551615]}', {"x": "uint64"},
         {"x": [2**64 - 1]}),
        ('{"inputs": [-9007199254740991]}', {"x": "double"},
         {"x": [-9007199254740991.0]}),
        ('\ufeff{"inputs": ["\\ud83d\\ude00"]}', TEXT,
         {"text": ["😀".encode()]}),
    ],
)  # fmt: skip
def test_values(body: str, dtypes: dict[str, str], expected: object) -> None:
    assert arrays(body, dtypes) == expected


def test_numbers_that_are_not_finite() -> None:
    nan, high, low = arrays(
        '{"inputs": [NaN, Infinity, -Infinity]}', {"x": "float"}
    )["x"]
    assert math.isnan(nan) and high == math.inf and low == -math.inf


@pytest.mark.parametrize(
    ("body", "dtypes", "message"),
    [
        ('{"inputs": [null]}', TEXT, "JSON Value: null Type: Null is not"),
        ('{"inputs": [true]}', {"x": "int32"}, "Type: True is not of"),
        ('{"inputs": [1.0]}', {"x": "int32"}, "is not of expected type: int32"),
        ('{"inputs": [256]}', {"x": "uint8"}, "is not of expected type: uint8"),
        ('{"inputs": ["1"]}', {"x": "float"}, "Type: String is not of"),
        ('{"inputs": [{"b64": "YQ"}]}', {"x": "float"}, "Type: Object is not"),
        ('{"inputs": [16777216]}', {"x": "float"}, "without loss of precision"),
        ('{"inputs": [1e39]}', {"x": "float"}, "without loss of precision"),
        ('{"inputs": [3.4028236e38]}', {"x": "float"},
         "without loss of precision"),
        ('{"inputs": [{"b64": "*"}]}', TEXT, "Unable to base64 decode"),
        ('{"inputs": [{"b64": 1}]}', TEXT, "not formatted correctly for base"),
        ('{"inputs": ["\\ud800"]}', TEXT, "surrogate pair"),
        ('{"inputs": [1]}', {"x": "complex64"}, "to type: complex64"),
    ],
)  # fmt: skip
def test_wrong_values(body: str, dtypes: dict[str, str], message: str) -> None:
    assert_json_error(body, dtypes, message)

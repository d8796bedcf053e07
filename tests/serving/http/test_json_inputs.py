"""The inputs of requests, by row and by name."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.serving.rest_json import JsonError, inputs_from_json
from tests.serving.http.json_arrays import (
    PAIR,
    TEXT,
    arrays,
    assert_json_error,
)


@pytest.mark.parametrize(
    ("body", "dtypes", "expected"),
    [
        ('{"instances": ["a", "b"]}', TEXT, {"text": [b"a", b"b"]}),
        ('{"instances": [{"text": "a"}]}', TEXT, {"text": [b"a"]}),
        ('{"inputs": ["a"]}', TEXT, {"text": [b"a"]}),
        ('{"inputs": "a"}', TEXT, {"text": b"a"}),
        ('{"inputs": {"text": ["a"]}}', TEXT, {"text": [b"a"]}),
        ('{"inputs": []}', TEXT, {"text": []}),
        (
            '{"instances": [{"text": "a", "k": 1}, {"k": 2, "text": "b"}]}',
            PAIR,
            {"text": [b"a", b"b"], "k": [1, 2]},
        ),
        # TF Serving ignores other names in `inputs`, and other keys.
        (
            '{"x": 1, "inputs": {"text": ["a"], "k": [1], "z": 3}}',
            PAIR,
            {"text": [b"a"], "k": [1]},
        ),
        ('{"instances": [[[1.5, 2], [3, 4]]]}', {"x": "float"},
         {"x": [[[1.5, 2.0], [3.0, 4.0]]]}),
    ],
)  # fmt: skip
def test_inputs(body: str, dtypes: dict[str, str], expected: object) -> None:
    assert arrays(body, dtypes) == expected


@pytest.mark.parametrize(
    ("body", "dtypes", "message"),
    [
        (
            '{"instances": [1]}', TEXT,
            "Failed to process element: 0 of 'instances' list. Error: "
            "INVALID_ARGUMENT: JSON Value: 1 Type: Number is not of expected "
            "type: string",
        ),
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
         "Encountered list at unexpected size: 2 at level: 1 expected size: 1"),
        ('{"inputs": ["a", ["b"]]}', TEXT,
         "Encountered list at unexpected level: 1 expected < 1"),
        ('{"inputs": [["a"], "b"]}', TEXT, "found at incorrect level: 2"),
        ('{"instances": [["a"], ["b", "c"]]}', TEXT,
         "Expecting tensor size: 1 but got: 2"),
        ('{"instances": [[["a"]], ["b"]]}', TEXT,
         "Expecting shape [1,1] but got: [1]"),
        ('{"inputs": ' + "[" * 40 + "]" * 40 + "}", TEXT, "nested over 32"),
    ],
)  # fmt: skip
def test_wrong_inputs(body: str, dtypes: dict[str, str], message: str) -> None:
    assert_json_error(body, dtypes, message)


@settings(deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["text", "k", "b64", "inputs", "z"]), inner),
    max_leaves=12,
), st.sampled_from(["inputs", "instances"]))  # fmt: skip
def test_any_json_gives_arrays_or_an_error(value: Any, key: str) -> None:
    for dtypes in (PAIR, TEXT, {"x": "float"}):
        try:
            made = inputs_from_json({key: value}, dtypes)
        except JsonError:
            continue
        assert made.keys() == dtypes.keys()

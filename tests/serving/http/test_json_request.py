"""The JSON of requests, without a server and without TensorFlow."""

import pytest

from keras_lstm_dssm.serving.rest_json import (
    JsonError,
    parse_object,
    signature_name,
)
from tests.serving.http.json_arrays import TEXT, assert_json_error


@pytest.mark.parametrize(
    ("body", "dtypes", "message"),
    [
        ("", TEXT, "JSON Parse error: The document is empty"),
        ("instances = [1]", TEXT, "JSON Parse error: Invalid value."),
        ('{"inputs": ["a"]} 1', TEXT, "JSON Parse error"),
        ('{"inputs": [1e999]}', {"x": "float"}, "Number too big"),
        ("[" * 100_000, TEXT, "JSON Parse error"),
        ("[1, 2]", TEXT, "Is not object"),
        ("{}", TEXT, "Missing 'inputs' or 'instances' key"),
        ('{"inputs": 1, "instances": 1}', TEXT, "expecting only one of"),
        ('{"instances": {}}', TEXT, "Excepting 'instances' to be an list"),
        ('{"instances": []}', TEXT, "No values in 'instances' array"),
    ],
)  # fmt: skip
def test_wrong_requests(
    body: str, dtypes: dict[str, str], message: str
) -> None:
    assert_json_error(body, dtypes, message)


def test_a_body_that_is_not_utf8() -> None:
    with pytest.raises(JsonError, match="Invalid encoding"):
        parse_object(b'{"inputs": ["\xff"]}')


def test_signature_names() -> None:
    assert signature_name({}) == ""
    assert signature_name({"signature_name": "keys"}) == "keys"
    with pytest.raises(JsonError, match="must be a string value"):
        signature_name({"signature_name": 1})

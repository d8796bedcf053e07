"""Parses JSON to arrays, and checks refusals, for tests of the REST API."""

from typing import Any

import pytest

from keras_lstm_dssm.serving.rest_json import (
    JsonError,
    inputs_from_json,
    parse_object,
)

TEXT = {"text": "string"}
PAIR = {"text": "string", "k": "int32"}


def arrays(body: str, dtypes: dict[str, str]) -> dict[str, Any]:
    converted = inputs_from_json(parse_object(body.encode()), dtypes)
    return {name: array.tolist() for name, array in converted.items()}


def assert_json_error(body: str, dtypes: dict[str, str], message: str) -> None:
    """Asserts that a body is refused, by a message of limited length."""
    with pytest.raises(JsonError) as raised:
        arrays(body, dtypes)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 2000

"""Parses the JSON of requests to TF Serving's REST API.

The forms, checks and messages of this file and of `json_inputs.py`,
`json_values.py` and `json_outputs.py` are those of TF Serving, so that a client
of one works with the other. None of them imports TensorFlow.

Source: https://www.tensorflow.org/tfx/serving/api_rest and
`tensorflow_serving/util/json_tensor.cc`.
"""

import json
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

MAX_MESSAGE_CHARS = 1024
"""Values in error messages are cut after this number of characters."""

_PRETTY = json.JSONEncoder(ensure_ascii=False, indent=4)


class JsonError(ValueError):
    """Raised if a request's JSON does not fit; INVALID_ARGUMENT, HTTP 400."""


def parse_object(body: bytes) -> dict[str, Any]:
    """Parses the body of a request, a JSON object in UTF-8.

    As in TF Serving, the numbers NaN, Infinity and -Infinity are allowed.

    Raises:
        JsonError: It is no JSON, no object, or no UTF-8.

    Example:
    >>> parse_object(b'{"instances": ["bolt"]}')
    {'instances': ['bolt']}
    """
    if not body.strip():
        raise JsonError("JSON Parse error: The document is empty")
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_float=_finite)
    except UnicodeDecodeError as error:
        raise JsonError(
            "JSON Parse error: Invalid encoding in string. at offset: "
            f"{error.start}"
        ) from error
    except json.JSONDecodeError as error:
        raise JsonError(
            f"JSON Parse error: Invalid value. {error.msg} at offset: "
            f"{error.pos}"
        ) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits; lists in lists in lists.
        raise JsonError(f"JSON Parse error: {error}") from error
    if not isinstance(value, dict):
        raise JsonError(f"JSON Value: {excerpt(value)} Is not object")
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("Number too big to be stored in double.")
    return number


def signature_name(request: Mapping[str, Any]) -> str:
    """Returns the name of the requested signature, "" for the default one.

    Raises:
        JsonError: It is no string.
    """
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise JsonError(
            f"JSON Value: {excerpt(request)} not formatted correctly. "
            "'signature_name' key must be a string value."
        )
    return name


def is_row_format(request: Mapping[str, Any]) -> bool:
    """Returns whether a request has `instances` (rows), not `inputs` (columns).

    Raises:
        JsonError: It has both or neither, or `instances` is no list, or empty.
    """
    if "instances" in request and "inputs" in request:
        raise JsonError(
            f"JSON Value: {excerpt(request)} Not formatted correctly expecting "
            "only one of 'inputs' or 'instances' keys to exist "
        )
    if "instances" not in request:
        if "inputs" not in request:
            raise JsonError("Missing 'inputs' or 'instances' key")
        return False
    if not isinstance(request["instances"], list):
        raise JsonError(
            f"JSON Value: {excerpt(request)} Excepting 'instances' to be an "
            "list/array"
        )
    if not request["instances"]:
        raise JsonError(
            f"JSON Value: {excerpt(request)} No values in 'instances' array"
        )
    return True


def excerpt(value: Any) -> str:
    """Returns a value as JSON for a message, not the whole of a large one."""
    parts = islice(_PRETTY.iterencode(value), MAX_MESSAGE_CHARS)
    return "".join(parts)[:MAX_MESSAGE_CHARS]

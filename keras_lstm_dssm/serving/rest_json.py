"""Converts the inputs of a request, JSON by row or by name, to arrays.

Source: https://www.tensorflow.org/tfx/serving/api_rest and
`tensorflow_serving/util/json_tensor.cc`.

Parses the JSON of requests to TF Serving's REST API.
Converts single JSON values of a request to the dtype of an input.
Writes output arrays as the JSON of a reply.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

MAX_MESSAGE_CHARS = 1024
"""Values in error messages are cut after this number of characters."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_PRETTY = json.JSONEncoder(ensure_ascii=False, indent=4)


class JsonError(ValueError):
    """Raised if a request's JSON does not fit; INVALID_ARGUMENT, HTTP 400."""


def parse_object(body: bytes) -> dict[str, Any]:
    """Parses the body of a request, a JSON object in UTF-8.

    Half of a surrogate pair, which no text in UTF-8 can have, is refused, so
    that all strings of the value can be encoded.

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
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise JsonError(
            "JSON Parse error: The surrogate pair in string is invalid."
        ) from error
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


def row_count(request: Mapping[str, Any]) -> int:
    """Returns the largest number of rows that a request states.

    It looks at the lengths of lists only, so that a request of too many rows
    costs nothing.

    Raises:
        JsonError: See `is_row_format`.

    Example:
    >>> row_count({"inputs": {"text": ["bolt", "nut"], "k": [1, 1]}})
    2
    """
    if is_row_format(request):
        return len(request["instances"])
    value = request["inputs"]
    columns = value.values() if isinstance(value, dict) else [value]
    return max((len(c) for c in columns if isinstance(c, list)), default=0)


def excerpt(value: Any) -> str:
    """Returns a value as JSON for a message, not the whole of a large one."""
    parts = islice(_PRETTY.iterencode(value), MAX_MESSAGE_CHARS)
    return "".join(parts)[:MAX_MESSAGE_CHARS]


NUMPY_DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
    "string": object,
}
"""NumPy's dtypes by TensorFlow's names; strings are objects, bytes."""


def converter(dtype: str) -> Callable[[Any], Any]:
    """Returns the function from a JSON value to one of the dtype.

    Args:
        dtype: TensorFlow's name of the dtype, a key of `NUMPY_DTYPES`.

    Returns:
        A function that raises `JsonError` for a value of another type, or one
        that the dtype cannot represent.

    Raises:
        JsonError: The dtype is no key of `NUMPY_DTYPES`.

    Example:
    >>> converter("string")({"b64": "YQ"})
    b'a'
    """
    if dtype == "string":
        return _bytes
    if dtype == "bool":
        return _bool
    if dtype in ("float", "double"):
        return lambda value: _decimal(value, dtype)
    if dtype not in NUMPY_DTYPES:
        raise JsonError(f"Conversion of JSON Value to type: {dtype}")
    limits = np.iinfo(NUMPY_DTYPES[dtype])
    least, most = int(limits.min), int(limits.max)

    def integer(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise _type_error(value, dtype)
        return value

    return integer


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict):
        raise _type_error(value, "string")
    if not is_base64(value):
        raise JsonError(
            f"JSON Value: {excerpt(value)} not formatted correctly for base64 "
            "data"
        )
    digits = re.sub(r"\s+", "", value["b64"]).rstrip("=")
    try:
        return b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except ValueError as error:
        raise JsonError("Unable to base64 decode") from error


def is_base64(value: Any) -> bool:
    """Returns whether a value stands for bytes, as `{"b64": "YQ=="}` does."""
    return (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(value.get("b64"), str)
    )


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _type_error(value, "bool")
    return value


def _decimal(value: Any, dtype: str) -> float:
    if type(value) is not int and type(value) is not float:
        raise _type_error(value, dtype)
    if isinstance(value, float) and not math.isfinite(value):
        return value
    limits = np.finfo(NUMPY_DTYPES[dtype])
    # Integers below 2^64 must be exact, others are decimals.
    exact = isinstance(value, int) and abs(value) < 2**64
    most: float = 2 ** (limits.nmant + 1) - 1
    if not exact:
        # The largest float32 is above itself when nine digits are written.
        most = float(limits.max) * (1 + 2.0 ** -(limits.nmant + 2))
    if abs(value) > most:
        raise JsonError(
            f"Cannot convert JSON value: {excerpt(value)} to {dtype} without "
            "loss of precision."
        )
    return float(value)


def _type_error(value: Any, dtype: str) -> JsonError:
    kind = {
        type(None): "Null",
        bool: str(value),
        dict: "Object",
        list: "Array",
        str: "String",
    }.get(type(value), "Number")
    return JsonError(
        f"JSON Value: {excerpt(value)} Type: {kind} is not of expected type: "
        f"{dtype}"
    )


_MAX_RANK = 32  # of NumPy 1


def inputs_from_json(
    request: Mapping[str, Any], dtypes: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Converts a request's `instances` or `inputs` to arrays.

    Args:
        request: The request, from `parse_object`.
        dtypes: The signature's inputs, name -> TensorFlow's name of the dtype,
            such as `string`, `int32` or `float`.

    Returns:
        An array for each input; strings are object arrays of bytes.

    Raises:
        JsonError: The values do not fit the names and dtypes, lists have
            unequal lengths, or base64 is wrong.

    Example:
    >>> inputs_from_json({"instances": ["bolt"]}, {"text": "string"})
    {'text': array([b'bolt'], dtype=object)}
    """
    if is_row_format(request):
        return _arrays_from_rows(request["instances"], dtypes)
    return _arrays_from_columns(request["inputs"], dtypes)


def _arrays_from_columns(
    value: Any, dtypes: Mapping[str, str]
) -> dict[str, np.ndarray]:
    if isinstance(value, dict) and not is_base64(value):
        for name in dtypes:
            if name not in value:
                raise JsonError(
                    f"Missing named input: {name} in 'inputs' object."
                )
        return {
            name: _Column(dtype).add(value[name]).array()
            for name, dtype in dtypes.items()
        }
    if len(dtypes) > 1:
        raise JsonError(
            "inputs is a plain value/list, but expecting an object as multiple "
            "input tensors required as per tensorinfo_map"
        )
    ((name, dtype),) = dtypes.items()
    return {name: _Column(dtype).add(value).array()}


def _arrays_from_rows(
    rows: list[Any], dtypes: Mapping[str, str]
) -> dict[str, np.ndarray]:
    if not _is_named(rows[0]) and len(dtypes) > 1:
        raise JsonError(
            "instances is a plain list, but expecting list of objects as "
            "multiple input tensors required as per tensorinfo_map"
        )
    columns = {name: _Column(dtype) for name, dtype in dtypes.items()}
    named = _is_named(rows[0])
    for number, row in enumerate(rows):
        if _is_named(row) != named:
            expected, found = (
                ("object", "list") if named else ("value/list", "object")
            )
            raise JsonError(
                f"Expecting {expected} but got {found} at item {number} of "
                "input list"
            )
        if not named:
            ((_, column),) = columns.items()
            _add(column, row, f"element: {number}")
            continue
        for name, value in row.items():
            element = f"element: {number} key: {name}"
            if name not in columns:
                raise _in_element(
                    element,
                    f"JSON object: does not have named input: {name}",
                )
            _add(columns[name], value, element)
        if row.keys() != dtypes.keys():
            raise JsonError(
                f"Failed to process element: {number} of 'instances' list. "
                f"JSON object: {excerpt(row)} keys must be equal to: "
                f"{','.join(sorted(dtypes))}"
            )
    return {name: column.array(len(rows)) for name, column in columns.items()}


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and not is_base64(row)


def _add(column: "_Column", value: Any, element: str) -> None:
    try:
        column.add(value)
    except JsonError as error:
        raise _in_element(element, str(error)) from None


def _in_element(element: str, problem: str) -> JsonError:
    return JsonError(
        f"Failed to process {element} of 'instances' list. Error: "
        f"INVALID_ARGUMENT: {problem}"
    )


class _Column:
    """Collects values of one input, which must have equal shapes."""

    def __init__(self, dtype: str) -> None:
        self._convert = converter(dtype)
        self._dtype = NUMPY_DTYPES[dtype]
        self._values: list[Any] = []
        self._shape: list[int] | None = None

    def add(self, value: Any) -> "_Column":
        shape = _shape(value)
        before = len(self._values)
        self._fill(value, 0, shape)
        if self._shape is None:
            self._shape = shape
        elif self._shape != shape:
            size, expected = len(self._values) - before, math.prod(self._shape)
            if size != expected:
                raise JsonError(
                    f"Expecting tensor size: {expected} but got: {size}"
                )
            raise JsonError(
                f"Expecting shape {_brackets(self._shape)} but got: "
                f"{_brackets(shape)}"
            )
        return self

    def _fill(self, value: Any, level: int, shape: list[int]) -> None:
        if not isinstance(value, list):
            if level != len(shape):
                raise JsonError(
                    f"JSON Value: {excerpt(value)} found at incorrect level: "
                    f"{level + 1} in the JSON DOM. Expected at level: "
                    f"{len(shape)}"
                )
            self._values.append(self._convert(value))
            return
        if level >= len(shape):
            raise JsonError(
                f"Encountered list at unexpected level: {level} expected < "
                f"{len(shape)}"
            )
        if len(value) != shape[level]:
            raise JsonError(
                f"Encountered list at unexpected size: {len(value)} at level: "
                f"{level} expected size: {shape[level]}"
            )
        for each in value:
            self._fill(each, level + 1, shape)

    def array(self, rows: int | None = None) -> np.ndarray:
        """Returns the values; `rows` is the size of a new first dimension."""
        shape = [] if rows is None else [rows]
        values = np.empty(len(self._values), self._dtype)
        values[:] = self._values
        return values.reshape(shape + (self._shape or []))


def _shape(value: Any) -> list[int]:
    """Returns the sizes of a list, of its first element, of the first's..."""
    shape: list[int] = []
    while isinstance(value, list):
        shape.append(len(value))
        if len(shape) > _MAX_RANK:
            raise JsonError(f"lists are nested over {_MAX_RANK} levels deep")
        if not value:
            break
        value = value[0]
    return shape


def _brackets(shape: list[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


_BYTES_SUFFIX = "_bytes"
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def json_from_outputs(outputs: Mapping[str, np.ndarray], row: bool) -> str:
    """Returns the body of a reply.

    With one output its values stand alone, with several they are named.
    Strings of an output whose name ends in `_bytes` are in base64; others must
    be UTF-8, wrong bytes are replaced. Numbers that are not finite are NaN,
    Infinity and -Infinity, as in TF Serving: no JSON, but most parsers read
    them.

    Args:
        outputs: Name to array; strings are object arrays of bytes.
        row: Whether the request had `instances`: then the reply has
            `predictions` by row, otherwise `outputs` by name.

    Raises:
        JsonError: Outputs have different numbers of rows, or a dtype that
            JSON has no counterpart of.

    Example:
    >>> json_from_outputs({"scores": np.float32([[0.5, 1]])}, row=True)
    '{"predictions": [[0.5, 1.0]]}'
    """
    if not outputs:
        raise JsonError("Cannot convert empty tensor map to JSON")
    named = len(outputs) > 1
    if not row:
        values = {
            name: _nested(_tokens(name, array), array.shape)[0]
            for name, array in sorted(outputs.items())
        }
        body = _object(values) if named else next(iter(values.values()))
        return f'{{"outputs": {body}}}'
    batch = -1
    columns = {}
    for name, array in sorted(outputs.items()):
        if array.ndim == 0:
            raise JsonError(f"Tensor name: {name} has no shape information ")
        if batch not in (-1, len(array)):
            raise JsonError(
                f"Tensor name: {name} has inconsistent batch size: "
                f"{len(array)} expecting: {batch}"
            )
        batch = len(array)
        columns[name] = _nested(_tokens(name, array), array.shape, keep=1)
    if named:
        rows = [
            _object(dict(zip(columns, values, strict=True)))
            for values in zip(*columns.values(), strict=True)
        ]
    else:
        (rows,) = columns.values()
    return f'{{"predictions": [{", ".join(rows)}]}}'


def _object(values: Mapping[str, str]) -> str:
    pairs = (f"{_ENCODER.encode(name)}: {v}" for name, v in values.items())
    return f"{{{', '.join(pairs)}}}"


def _nested(
    tokens: list[str], shape: tuple[int, ...], keep: int = 0
) -> list[str]:
    """Joins values to lists, from the last dimension to dimension `keep`."""
    for axis in range(len(shape) - 1, keep - 1, -1):
        size, count = shape[axis], math.prod(shape[:axis])
        tokens = [
            f"[{', '.join(tokens[i * size : (i + 1) * size])}]"
            for i in range(count)
        ]
    return tokens


def _tokens(name: str, array: np.ndarray) -> list[str]:
    """Returns the JSON of each value of an array, in row-major order."""
    flat = array.ravel()
    kind, dtype = flat.dtype.kind, flat.dtype.name
    if kind == "f" or dtype == "bfloat16":
        return _decimals(flat)
    if kind in "iu":
        return list(map(str, flat.tolist()))
    if kind == "b":
        return ["true" if value else "false" for value in flat]
    if kind == "O":
        if name.endswith(_BYTES_SUFFIX):
            return [f'{{"b64": "{b64encode(v).decode()}"}}' for v in flat]
        encode = _ENCODER.encode
        return [encode(value.decode(errors="replace")) for value in flat]
    raise JsonError(f"Failed to write JSON value for tensor type: {dtype}")


def _decimals(flat: np.ndarray) -> list[str]:
    """Writes floats with 6 digits where these are exact, otherwise with all.

    A float32 of 0.2 is 0.2, and not 0.20000000298023224.
    """
    if flat.dtype != np.float64:
        flat = flat.astype(np.float32)
    digits = 17 if flat.dtype == np.float64 else 9
    # One format of all numbers is five times as fast as one of each.
    tokens = (f"%.{digits}g " * len(flat) % tuple(flat.tolist())).split()
    for index in np.flatnonzero(_may_be_short(flat)):
        short = f"{flat[index]:.6g}"
        if not np.isfinite(flat[index]):
            tokens[index] = _SPECIAL[short]
        elif flat.dtype.type(short) == flat[index]:
            tokens[index] = _with_point(short)
        else:
            tokens[index] = _with_point(tokens[index])
    return tokens


def _may_be_short(flat: np.ndarray) -> np.ndarray:
    """Returns which numbers may be exact in 6 digits, whole, or not finite."""
    wide = flat.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = 10.0 ** (5 - np.floor(np.log10(np.abs(wide))))
        error = np.abs(np.rint(wide * scale) / scale - wide)
        near = error <= _ROUNDING[flat.dtype.name] * np.abs(wide)
    return near | (np.rint(wide) == wide) | ~np.isfinite(wide)


_ROUNDING = {
    # Half a unit in the last place, and the error of `scale`.
    name: 0.51 * float(np.finfo(name).eps) + 4 * float(np.finfo(float).eps)
    for name in ("float32", "float64")
}
_SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _with_point(digits: str) -> str:
    return digits if "." in digits or "e" in digits else f"{digits}.0"

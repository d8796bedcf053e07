"""Converts JSON of TF Serving's REST API to arrays, and arrays to JSON.

Conversions and messages follow `util/json_tensor.cc` in TF Serving. The API is
described at https://www.tensorflow.org/tfx/serving/api_rest.
"""

import functools
import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
import orjson

from keras_lstm_dssm.serving.servable import InvalidError

MAX_MESSAGE_CHARS = 1024
"""Values in error messages are cut after this number of characters."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_PRETTY = json.JSONEncoder(ensure_ascii=False, indent=4)


def parse_object(body: bytes) -> dict[str, Any]:
    """Parses the body of a request, a JSON object in UTF-8."""
    if not body.strip():
        raise InvalidError("JSON Parse error: The document is empty")
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_float=_finite)
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidError(
            "JSON Parse error: The surrogate pair in string is invalid."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidError(
            "JSON Parse error: Invalid encoding in string. at offset: "
            f"{error.start}"
        ) from error
    except json.JSONDecodeError as error:
        raise InvalidError(
            f"JSON Parse error: Invalid value. {error.msg} at offset: "
            f"{error.pos}"
        ) from error
    except (ValueError, RecursionError) as error:  # long numbers, deep lists
        raise InvalidError(f"JSON Parse error: {error}") from error
    if not isinstance(value, dict):
        raise InvalidError(f"JSON Value: {excerpt(value)} Is not object")
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("Number too big to be stored in double.")
    return number


def signature_name(request: Mapping[str, Any]) -> str:
    """Returns the name of the requested signature, "" for the default."""
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise InvalidError(
            f"JSON Value: {excerpt(request)} not formatted correctly. "
            "'signature_name' key must be a string value."
        )
    return name


def string_of(request: Mapping[str, Any], key: str) -> str:
    """Returns the string under a key of a request."""
    value = request.get(key)
    if not isinstance(value, str):
        raise InvalidError(f"{key!r} must be a string")
    return value


def whole_number_of(
    request: Mapping[str, Any], key: str, minimum: int, maximum: int
) -> int:
    """Returns the whole number under a key of a request, within bounds."""
    value = request.get(key)
    if type(value) is not int or not minimum <= value <= maximum:
        raise InvalidError(
            f"{key!r} must be a whole number, {minimum} to {maximum}"
        )
    return value


def text_array(texts: Iterable[str]) -> np.ndarray:
    """Converts texts to an object array of bytes, for an input of a model."""
    return np.array([text.encode() for text in texts], object)


def is_row_format(request: Mapping[str, Any]) -> bool:
    """Returns whether a request has `instances` (rows) instead of `inputs`."""
    if "instances" in request and "inputs" in request:
        raise InvalidError(
            f"JSON Value: {excerpt(request)} Not formatted correctly expecting "
            "only one of 'inputs' or 'instances' keys to exist "
        )
    if "instances" not in request:
        if "inputs" not in request:
            raise InvalidError("Missing 'inputs' or 'instances' key")
        return False
    if not isinstance(request["instances"], list):
        raise InvalidError(
            f"JSON Value: {excerpt(request)} Excepting 'instances' to be an "
            "list/array"
        )
    if not request["instances"]:
        raise InvalidError(
            f"JSON Value: {excerpt(request)} No values in 'instances' array"
        )
    return True


def row_count(request: Mapping[str, Any]) -> int:
    """Returns the number of rows of the longest input in a JSON request."""
    if is_row_format(request):
        return len(request["instances"])
    value = request["inputs"]
    columns = value.values() if isinstance(value, dict) else [value]
    return max((len(c) for c in columns if isinstance(c, list)), default=0)


def excerpt(value: Any) -> str:
    """Returns the start of a value's JSON, for an error message."""
    strings = islice(_PRETTY.iterencode(value), MAX_MESSAGE_CHARS)
    return "".join(strings)[:MAX_MESSAGE_CHARS]


_NUMPY_DTYPES: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "bool": np.bool_,
    "string": object, "int8": np.int8, "int16": np.int16, "int32": np.int32,
    "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
    "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip
"""TensorFlow's name of a dtype -> NumPy's dtype; strings are bytes objects."""

_MAX_RANK = 32  # maximum number of dimensions in NumPy 1


def inputs_from_json(
    request: Mapping[str, Any], dtypes: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Converts `instances` or `inputs` to arrays of TensorFlow's `dtypes`."""
    if is_row_format(request):
        return _arrays_of_rows(request["instances"], dtypes)
    value = request["inputs"]
    if _is_named(value):
        for name in dtypes:
            if name not in value:
                raise InvalidError(
                    f"Missing named input: {name} in 'inputs' object."
                )
    elif len(dtypes) > 1:
        raise InvalidError(
            "inputs is a plain value/list, but expecting an object as multiple "
            "input tensors required as per tensorinfo_map"
        )
    else:
        value = dict.fromkeys(dtypes, value)
    return {name: _array(value[name], dtype) for name, dtype in dtypes.items()}


def _arrays_of_rows(
    rows: list[Any], dtypes: Mapping[str, str]
) -> dict[str, np.ndarray]:
    named = _is_named(rows[0])
    if not named and len(dtypes) > 1:
        raise InvalidError(
            "instances is a plain list, but expecting list of objects as "
            "multiple input tensors required as per tensorinfo_map"
        )
    for number, row in enumerate(rows):
        if _is_named(row) != named:
            expected, got = (
                ("object", "list") if named else ("value/list", "object")
            )
            raise InvalidError(
                f"Expecting {expected} but got {got} at item {number} of "
                "input list"
            )
        if named and row.keys() != dtypes.keys():
            for name in row:
                if name not in dtypes:
                    raise _in_element(
                        f"{number} key: {name}",
                        f"JSON object: does not have named input: {name}",
                    )
            raise InvalidError(
                f"Failed to process element: {number} of 'instances' list. "
                f"JSON object: {excerpt(row)} keys must be equal to: "
                f"{','.join(sorted(dtypes))}"
            )
    arrays = {}
    for name, dtype in dtypes.items():
        try:
            column = [row[name] for row in rows] if named else rows
            arrays[name] = _array(column, dtype)
        except _ElementError as error:
            key = f" key: {name}" if named else ""
            raise _in_element(f"{error.number}{key}", str(error)) from None
    return arrays


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and not is_base64(row)


def _in_element(element: str, problem: str) -> InvalidError:
    return InvalidError(
        f"Failed to process element: {element} of 'instances' list. Error: "
        f"INVALID_ARGUMENT: {problem}"
    )


class _ElementError(InvalidError):
    """Raised for a wrong element of a list; `number` is its index."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(problem)
        self.number = number


def _array(value: Any, dtype: str) -> np.ndarray:
    """Converts a scalar, or nested lists of equal sizes, to an array."""
    convert = _converter(dtype)
    shape: list[int] = []
    items = [value]  # all items of one level of the nested lists
    while items and isinstance(items[0], list):
        size, per_element = len(items[0]), math.prod(shape[1:])
        for index, item in enumerate(items):
            if not isinstance(item, list) or len(item) != size:
                raise _unequal(value, index // per_element)
        shape.append(size)
        if len(shape) > _MAX_RANK:
            raise InvalidError(f"lists are nested over {_MAX_RANK} levels deep")
        items = list(chain.from_iterable(items))
    values: list[Any] = []
    if dtype == "string" and set(map(type, items)) == {str}:
        values, items = [item.encode() for item in items], []  # much quicker
    try:
        for item in items:
            values.append(convert(item))
    except InvalidError as error:
        number = len(values) // math.prod(shape[1:])
        if isinstance(item, list):
            raise _unequal(value, number) from None
        raise _ElementError(number, str(error)) from None
    array = np.empty(len(values), _NUMPY_DTYPES[dtype])
    array[:] = values
    return array.reshape(shape)


def _unequal(value: list[Any], number: int) -> _ElementError:
    """Returns the error for an element that differs in shape from the first."""
    expected, shape = _shape(value[0]), _shape(value[number])
    size, other = math.prod(expected), math.prod(shape)
    problem = f"Expecting tensor size: {size} but got: {other}"
    if size == other:
        got = "unequal sizes" if expected == shape else _brackets(shape)
        problem = f"Expecting shape {_brackets(expected)} but got: {got}"
    return _ElementError(number, problem)


def _shape(value: Any) -> list[int]:
    """Returns the sizes of the first list in each level of nested lists."""
    shape: list[int] = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return shape


def _brackets(shape: list[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


@functools.cache
def _converter(dtype: str) -> Callable[[Any], Any]:
    """Returns a function that checks and converts a JSON value for a dtype."""
    if dtype == "string":
        return _bytes
    if dtype == "bool":
        return _bool
    if dtype in ("float", "double"):
        return lambda value: _decimal(value, dtype)
    if dtype not in _NUMPY_DTYPES:
        raise InvalidError(f"Conversion of JSON Value to type: {dtype}")
    limits = np.iinfo(_NUMPY_DTYPES[dtype])
    minimum, maximum = int(limits.min), int(limits.max)

    def integer(value: Any) -> int:
        if type(value) is not int or not minimum <= value <= maximum:
            raise _type_error(value, dtype)
        return value

    return integer


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict):
        raise _type_error(value, "string")
    if not is_base64(value):
        raise InvalidError(
            f"JSON Value: {excerpt(value)} not formatted correctly for base64 "
            "data"
        )
    digits = re.sub(r"\s+", "", value["b64"]).rstrip("=")
    try:
        return b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except ValueError as error:
        raise InvalidError("Unable to base64 decode") from error


def is_base64(value: Any) -> bool:
    """Returns whether a JSON value has base64, such as `{"b64": "YQ=="}`."""
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
    limits = np.finfo(_NUMPY_DTYPES[dtype])
    if isinstance(value, int) and abs(value) < 2**64:
        # The dtype represents all integers up to `maximum` exactly.
        maximum: float = 2 ** (limits.nmant + 1) - 1
    else:
        # In JSON, the largest float32 may be rounded up, to 3.40282347e38.
        maximum = float(limits.max) * (1 + 2.0 ** -(limits.nmant + 2))
    if abs(value) > maximum:
        raise InvalidError(
            f"Cannot convert JSON value: {excerpt(value)} to {dtype} without "
            "loss of precision."
        )
    return float(value)


def _type_error(value: Any, dtype: str) -> InvalidError:
    kind = {
        type(None): "Null",
        bool: str(value),
        dict: "Object",
        list: "Array",
        str: "String",
    }.get(type(value), "Number")
    return InvalidError(
        f"JSON Value: {excerpt(value)} Type: {kind} is not of expected type: "
        f"{dtype}"
    )


_BYTES_SUFFIX = "_bytes"  # outputs with this suffix are sent in base64


def json_from_outputs(outputs: Mapping[str, np.ndarray], by_row: bool) -> bytes:
    """Returns the JSON of a reply.

    If `by_row`, the reply has `predictions`, with an item for each row.
    Otherwise the reply has `outputs`. A single output is sent without its name.
    """
    if not outputs:
        raise InvalidError("Cannot convert empty tensor map to JSON")
    batch_size = -1
    columns: dict[str, Any] = {}
    for name, array in sorted(outputs.items()):
        if by_row and array.ndim == 0:
            raise InvalidError(f"Tensor name: {name} has no shape information ")
        if by_row and batch_size not in (-1, len(array)):
            raise InvalidError(
                f"Tensor name: {name} has inconsistent batch size: "
                f"{len(array)} expecting: {batch_size}"
            )
        batch_size = len(array) if by_row else batch_size
        columns[name] = _writable(name, array)
    values: Any = columns
    if len(columns) == 1:
        (values,) = columns.values()
    elif by_row:
        rows = zip(*columns.values(), strict=True)
        values = [dict(zip(columns, cells, strict=True)) for cells in rows]
    body = {"predictions" if by_row else "outputs": values}
    arrays = [a for a in columns.values() if hasattr(a, "dtype")]
    if all(np.isfinite(array).all() for array in arrays):
        return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
    # TF Serving writes NaN and Infinity, but orjson would write null.
    return json.dumps(
        body, ensure_ascii=False, separators=(",", ":"), default=_plain
    ).encode()


def _writable(name: str, array: np.ndarray) -> Any:
    """Converts texts to lists, and numbers to a dtype that orjson writes."""
    kind, dtype = array.dtype.kind, array.dtype.name
    if kind == "O":
        return _texts(array.tolist(), name.endswith(_BYTES_SUFFIX))
    if dtype in ("float16", "bfloat16"):
        array = array.astype(np.float32)
    elif kind not in "biuf":
        raise InvalidError(
            f"Failed to write JSON value for tensor type: {dtype}"
        )
    # orjson supports scalars, but no arrays of rank 0.
    return np.ascontiguousarray(array) if array.ndim else array[()]


def _texts(value: Any, in_base64: bool) -> Any:
    if isinstance(value, list):
        return [_texts(item, in_base64) for item in value]
    if in_base64:
        return {"b64": b64encode(value).decode()}
    return value.decode(errors="replace")


def _plain(values: np.ndarray | np.generic) -> Any:
    """Converts NumPy's numbers to Python numbers that print the same digits."""
    if values.dtype.kind == "f":
        values = values.astype("U32").astype(float)
    return values.tolist()

"""Converts the inputs of a request, JSON by row or by name, to arrays.

Source: https://www.tensorflow.org/tfx/serving/api_rest and
`tensorflow_serving/util/json_tensor.cc`.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_lstm_dssm.serving.http.json_request import (
    JsonError,
    excerpt,
    is_row_format,
)
from keras_lstm_dssm.serving.http.json_values import (
    NUMPY_DTYPES,
    converter,
    is_base64,
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

"""Writes output arrays as the JSON of a reply.

Source: https://www.tensorflow.org/tfx/serving/api_rest and
`tensorflow_serving/util/json_tensor.cc`.
"""

import json
import math
from base64 import b64encode
from collections.abc import Mapping

import numpy as np

from keras_lstm_dssm.serving.http.json_request import JsonError

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

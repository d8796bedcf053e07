"""The file of a portable model: arrays as safetensors, a header as JSON.

Nothing in it is run as code.
"""

import json
import math
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from lstm_dssm_client.errors import DAMAGE, InputError
from lstm_dssm_client.signatures import TensorInfo, as_bytes
from lstm_dssm_client.words import TRIGRAMS, Shift

Arrays = dict[str, np.ndarray]

QUERY, DOCUMENT, RETRIEVER = "query_encoder", "document_encoder", "retriever"
"""Names of the models, those of an export for a server."""

PORTABLE_PART = Path("assets.extra", "portable.safetensors")
"""Path of a portable model beside a SavedModel, in the folder of a version."""

VARIABLES = Path("variables", "variables.data-00000-of-00001")
"""Path of the variables of a SavedModel: their bytes, one after the other."""

FORMAT = 3
"""Number of the format. Files of others cannot be read."""

_PAGE = 4096  # bytes: smaller arrays are not looked for among variables

_HEADER, _CHECKSUM = "lstm_dssm", "crc32"  # keys of safetensors' metadata


def write_portable(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Writes a file, without a temporary name.

    A file at `PORTABLE_PART` has no arrays that the variables of the SavedModel
    beside it contain, byte for byte: it says where they are.
    """
    arrays = {
        name: values
        for name, values in arrays.items()
        # What both encoders have is stored once.
        if not name.startswith(DOCUMENT)
        or not np.array_equal(
            arrays.get(name.replace(DOCUMENT, QUERY, 1), ()), values
        )
    }
    found = _found_in(_variables_of(path), arrays)
    text = json.dumps({"format": FORMAT, **header, "variables": found})
    metadata = {_HEADER: text, _CHECKSUM: _checksum(text, arrays)}
    stored = {n: values for n, values in arrays.items() if n not in found}
    # Its own function for files would change their permissions.
    Path(path).write_bytes(save(stored, metadata))


def _variables_of(path: str | os.PathLike[str]) -> Path:
    return Path(path).absolute().parent.parent / VARIABLES


def _found_in(
    variables: Path, arrays: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, str, tuple[int, ...]]]:
    """Finds arrays in a file: name -> offset, dtype and shape."""
    found: dict[str, tuple[int, str, tuple[int, ...]]] = {}
    if not variables.is_file():
        return found
    with (
        open(variables, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        for name, values in arrays.items():
            if values.nbytes < _PAGE:
                continue
            content = np.ascontiguousarray(values).data.cast("B")
            start = data.find(content[:_PAGE])
            with memoryview(data) as view:
                end = start + len(content)
                if start >= 0 and view[start:end] == content:
                    found[name] = start, values.dtype.str, values.shape
    return found


def stored_table(
    name: str,
    table: np.ndarray,
    rows: np.ndarray,
    start: tuple[int, float],
    kind: str,
) -> Arrays:
    """Returns the arrays that a file holds for some rows of a table.

    The rows are float32 or float16, or int8 with one scale a row; `start` are
    seed and limit of the other rows, see `start_rows`.
    """
    values = table[rows].astype(np.float32)
    arrays: Arrays = {
        f"{name}.rows": rows.astype(np.int32),
        f"{name}.start": np.array([len(table), *start], np.float64),
    }
    if kind != "int8":
        return arrays | {name: values.astype(kind)}
    scales = np.abs(values).max(axis=1) / np.float32(127)
    scales[scales == 0] = 1
    codes = np.rint(values / scales[:, np.newaxis]).astype(np.int8)
    return arrays | {name: codes, f"{name}.scales": scales}


def stored_texts(name: str, texts: Sequence[str]) -> Arrays:
    """Returns the arrays that a file holds for texts.

    They are all bytes, one text after the other, and where each text ends.
    """
    encoded = as_bytes(texts)
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {
        name: np.frombuffer(b"".join(encoded), np.uint8),
        f"{name}.ends": ends,
    }


def _checksum(header: str, arrays: Mapping[str, np.ndarray]) -> str:
    crc = zlib.crc32(header.encode())
    for name, values in sorted(arrays.items()):
        crc = zlib.crc32(f"{name} {values.dtype} {values.shape}".encode(), crc)
        crc = zlib.crc32(np.ascontiguousarray(values).data, crc)
    return str(crc)


class Table(NamedTuple):
    """A table of trigrams: stored rows, and how all others are computed."""

    places: np.ndarray  # int32: the place of each row in `values`, or -1
    values: np.ndarray  # float32 or float16, or int8
    scales: np.ndarray | None  # of int8 rows
    start: tuple[int, float]  # seed and limit of the rows that are not stored

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Returns rows, float32 `[n, width]`."""
        places = self.places[numbers]
        rows = self.values[places]  # the last one, where there is none
        if self.scales is not None:
            rows = rows * self.scales[places, np.newaxis]
        rows = rows.astype(np.float32, copy=False)
        if places.min() < 0:
            new = np.flatnonzero(places < 0)
            width = rows.shape[1]
            rows[new] = start_rows(numbers[new], width, *self.start)
        return rows


class PortableFile:
    """The content of a file; each array is checked when it is asked for.

    To be read within `reading`: where something is wrong, Python, NumPy or
    safetensors raise their own errors.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            self._arrays = {key: file.get_tensor(key) for key in file.keys()}
        text = metadata[_HEADER]
        self.header: dict[str, Any] = json.loads(text)
        for name, place in self.header.get("variables", {}).items():
            self._arrays[name] = _mapped(_variables_of(path), *place)
        if _checksum(text, self._arrays) != metadata[_CHECKSUM]:
            raise ValueError("it is damaged: its checksum is another")
        if self.header["format"] != FORMAT:
            raise ValueError(
                f"found format {self.header['format']!r:.20}, expected"
                f" {FORMAT}: train again if it is an earlier one"
            )
        for name in [*self._arrays]:  # what both encoders have is stored once
            if name.startswith(QUERY):
                other = name.replace(QUERY, DOCUMENT, 1)
                self._arrays.setdefault(other, self._arrays[name])

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(
        self, name: str, *shape: int | None, dtype: Any = np.float32
    ) -> Any:
        """Returns an array; None in its shape stands for any size."""
        values = self._arrays[name]
        if not TensorInfo(np.dtype(dtype).name, shape).fits(values):
            raise ValueError(f"{name} is {values.dtype} {values.shape}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} has numbers that are not finite")
        return values

    def scaled(
        self, name: str, rows: int | None, width: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns an array of the file, and the scales of its rows.

        Rows of int8 numbers are to be multiplied with their scales; those of
        float32 and float16 have none, which is `None`.
        """
        if f"{name}.scales" not in self:
            half = self._arrays[name].dtype == np.float16
            dtype = np.float16 if half else np.float32
            return self.array(name, rows, width, dtype=dtype), None
        codes = self.array(name, rows, width, dtype=np.int8)
        return codes, self.array(f"{name}.scales", len(codes))

    def table(self, name: str, size: int, width: int) -> Table:
        """Returns a table from the arrays that `stored_table` makes."""
        rows = self.array(f"{name}.rows", None, dtype=np.int32)
        start = self.array(f"{name}.start", 3, dtype=np.float64).tolist()
        stored_size, seed, limit = start
        inside = len(rows) and 0 <= rows.min() <= rows.max() < size
        if not inside or stored_size != size:
            raise ValueError(f"{name} has rows of another table")
        if not (0 <= seed < 2**32 and 0 <= limit < 2**32):
            raise ValueError(f"{name} starts with {seed}, {limit}")
        places = np.full(size, -1, np.int32)
        places[rows] = np.arange(len(rows))
        stored = self.scaled(name, len(rows), width)
        return Table(places, *stored, (int(seed), limit))

    def texts(self, name: str, count: int | None = None) -> list[bytes]:
        """Returns the texts from the arrays that `stored_texts` makes."""
        joined = self.array(name, None, dtype=np.uint8).tobytes()
        ends = self.array(f"{name}.ends", count, dtype=np.int64)
        starts = np.append(0, ends)
        if (np.diff(starts) < 0).any() or starts[-1] != len(joined):
            raise ValueError(f"{name} end elsewhere than their texts")
        spans = zip(starts[:-1].tolist(), ends.tolist(), strict=True)
        return [joined[start:end] for start, end in spans]


def _mapped(
    path: Path, start: int, dtype: str, shape: Sequence[int]
) -> np.ndarray:
    """Reads an array of numbers from a place in a file."""
    if np.dtype(dtype).kind not in "iuf":
        raise ValueError(f"found an array of {dtype!r:.20} among variables")
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    values = np.frombuffer(data, dtype, math.prod(shape), start)
    # Products of numbers that are not aligned would copy them each time.
    return np.require(values.reshape(shape), requirements="A")


class Weights:
    """The weights of one encoder of a file."""

    def __init__(self, file: PortableFile, name: str, oov_buckets: int) -> None:
        self._file = file
        self._name = name
        self._size = TRIGRAMS + oov_buckets

    def array(
        self, name: str, *shape: int | None, dtype: Any = np.float32
    ) -> Any:
        """Returns an array of this shape."""
        return self._file.array(f"{self._name}/{name}", *shape, dtype=dtype)

    def table(self, name: str, width: int) -> Table:
        """Returns the table of an embedding."""
        return self._file.table(f"{self._name}/{name}/table", self._size, width)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raises `InputError`, of one line, for all that is wrong with a file."""
    target = os.fspath(path)
    try:
        yield
    except OSError as error:
        raise InputError(f"{target}: {error.strerror or error}") from error
    except (SafetensorError, *DAMAGE) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{target}: not a file that this version can read ({reason:.200});"
            " write it again with lstm-dssm-export"
        ) from error


START_BITS = 23
"""Initial values are k / 2^23 times the limit, with k an integer: all of them
are exact in float32."""

_BLOCK = 1 << 17
"""Numbers that are hashed at once: few enough for a processor's cache."""


def start_rows(numbers: Any, width: int, seed: int, limit: float) -> np.ndarray:
    """Computes initial values of rows, `[n, width]`, in [-limit, limit)."""
    numbers = np.asarray(numbers).astype(np.uint32)
    rows = np.empty((len(numbers), width), np.float32)
    step = max(1, _BLOCK // width)
    for first in range(0, len(numbers), step):
        block = numbers[first : first + step]
        keys = start_keys(block, width, seed, np.right_shift)
        hashed = mix(keys, np.right_shift) >> 8
        centred = hashed.astype(np.int32) - (1 << START_BITS)
        rows[first : first + step] = centred * start_unit(limit)
    return rows


def start_unit(limit: float) -> np.float32:
    """Returns the smallest difference of two initial values."""
    return np.float32(limit / (1 << START_BITS))


def start_keys(numbers: Any, width: int, seed: int, shift: Shift) -> Any:
    """Returns uint32 `[n, width]`, of which `mix` makes the rows' numbers.

    `numbers` are those of the rows, uint32 `[n]`.
    """
    mixed_seed = mix(np.array([seed], np.uint32), np.right_shift)
    columns = mix(np.arange(1, width + 1, dtype=np.uint32), np.right_shift)
    return mix(numbers ^ mixed_seed, shift)[:, np.newaxis] ^ columns


def mix(x: Any, shift: Shift) -> Any:
    """Hashes uint32 one to one ("lowbias32", C. Wellons 2018)."""
    x = x ^ shift(x, np.uint32(16))
    x = x * np.uint32(0x21F0AAAD)
    x = x ^ shift(x, np.uint32(15))
    x = x * np.uint32(0x735A2D97)
    return x ^ shift(x, np.uint32(15))

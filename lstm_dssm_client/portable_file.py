"""Writes and reads portable models: safetensors with a header in JSON.

Reading a file runs no code from the file.
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
"""Names of the models in a portable file; a server uses the same names."""

PORTABLE_PART = Path("assets.extra", "portable.safetensors")
"""Path of the portable model in the folder of a SavedModel."""

VARIABLES = Path("variables", "variables.data-00000-of-00001")
"""Path of a SavedModel's file with the raw bytes of all variables."""

FORMAT = 3
"""Number of the format. Files with other numbers cannot be read."""

_LEAST_SHARED = 4096  # bytes; smaller arrays are not shared with a SavedModel

_HEADER, _CHECKSUM = "lstm_dssm", "crc32"  # keys of safetensors' metadata


def write_portable(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Writes a portable model to `path`, without a temporary file."""
    arrays = {
        name: values
        for name, values in arrays.items()
        # Equal weights of both encoders are stored once.
        if not name.startswith(DOCUMENT)
        or not np.array_equal(
            arrays.get(name.replace(DOCUMENT, QUERY, 1), ()), values
        )
    }
    # If `path` is in the folder of a SavedModel, the portable file does not
    # repeat the large arrays of the SavedModel's file `VARIABLES`. For these
    # arrays, the portable file has the offset, dtype and shape.
    shared = _shared_arrays(_variables_of(path), arrays)
    text = json.dumps({"format": FORMAT, **header, "variables": shared})
    metadata = {_HEADER: text, _CHECKSUM: _checksum(text, arrays)}
    stored = {n: values for n, values in arrays.items() if n not in shared}
    # `save_file` of safetensors would change the file's permissions.
    Path(path).write_bytes(save(stored, metadata))


def _variables_of(path: str | os.PathLike[str]) -> Path:
    return Path(path).absolute().parent.parent / VARIABLES


def _shared_arrays(
    variables: Path, arrays: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, str, tuple[int, ...]]]:
    """Finds arrays in `variables`; returns name -> offset, dtype and shape."""
    shared: dict[str, tuple[int, str, tuple[int, ...]]] = {}
    if not variables.is_file():
        return shared
    with (
        open(variables, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        for name, values in arrays.items():
            if values.nbytes < _LEAST_SHARED:
                continue
            content = np.ascontiguousarray(values).data.cast("B")
            start = data.find(content[:_LEAST_SHARED])
            with memoryview(data) as view:
                end = start + len(content)
                if start >= 0 and view[start:end] == content:
                    shared[name] = start, values.dtype.str, values.shape
    return shared


def stored_table(
    name: str,
    table: np.ndarray,
    rows: np.ndarray,
    start: tuple[int, float],  # seed and limit of the rows' initial values
    kind: str,  # float32, float16, or int8 with a scale for each row
) -> Arrays:
    """Returns the arrays that store the rows `rows` of a trigram table.

    All other rows must have their initial values, which are not stored.
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
    """Returns two arrays that store texts: all bytes, and each text's end."""
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
    """A trigram table; rows that are not stored have their initial values."""

    indices: np.ndarray  # each row's index in `values`, -1 if not stored; int32
    values: np.ndarray  # the stored rows, float32, float16 or int8
    scales: np.ndarray | None  # scale of each int8 row, otherwise None
    start: tuple[int, float]  # seed and limit of the initial values

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the rows with these numbers, float32 `[n, width]`."""
        indices = self.indices[numbers]
        rows = self.values[indices]
        if self.scales is not None:
            rows = rows * self.scales[indices, np.newaxis]
        rows = rows.astype(np.float32, copy=False)
        if indices.min() < 0:
            computed = np.flatnonzero(indices < 0)
            width = rows.shape[1]
            rows[computed] = start_rows(numbers[computed], width, *self.start)
        return rows


class PortableFile:
    """Reads and checks a portable model; see `reading` for errors."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            self._arrays = {key: file.get_tensor(key) for key in file.keys()}
        text = metadata[_HEADER]
        self.header: dict[str, Any] = json.loads(text)
        for name, location in self.header.get("variables", {}).items():
            self._arrays[name] = _mapped(_variables_of(path), *location)
        if _checksum(text, self._arrays) != metadata[_CHECKSUM]:
            raise ValueError("it is damaged: the checksum differs")
        if self.header["format"] != FORMAT:
            raise ValueError(
                f"found format {self.header['format']!r:.20}, expected"
                f" {FORMAT}; a model of an older format must be trained again"
            )
        for name in [*self._arrays]:  # equal weights are stored once
            if name.startswith(QUERY):
                document_name = name.replace(QUERY, DOCUMENT, 1)
                self._arrays.setdefault(document_name, self._arrays[name])

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(
        self, name: str, *shape: int | None, dtype: Any = np.float32
    ) -> Any:
        """Returns a checked array; None in `shape` stands for any size."""
        values = self._arrays[name]
        if not TensorInfo(np.dtype(dtype).name, shape).fits(values):
            raise ValueError(f"{name} is {values.dtype} {values.shape}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} has numbers that are not finite")
        return values

    def scaled(
        self, name: str, rows: int | None, width: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns an array, and the scales of its rows (None if not int8)."""
        if f"{name}.scales" not in self:
            half = self._arrays[name].dtype == np.float16
            dtype = np.float16 if half else np.float32
            return self.array(name, rows, width, dtype=dtype), None
        codes = self.array(name, rows, width, dtype=np.int8)
        return codes, self.array(f"{name}.scales", len(codes))

    def table(self, name: str, size: int, width: int) -> Table:
        """Returns the table that `stored_table` has converted to arrays."""
        rows = self.array(f"{name}.rows", None, dtype=np.int32)
        start = self.array(f"{name}.start", 3, dtype=np.float64).tolist()
        stored_size, seed, limit = start
        inside = len(rows) and 0 <= rows.min() <= rows.max() < size
        if not inside or stored_size != size:
            raise ValueError(f"{name} has rows of another table")
        if not (0 <= seed < 2**32 and 0 <= limit < 2**32):
            raise ValueError(f"{name} has the seed {seed}, the limit {limit}")
        indices = np.full(size, -1, np.int32)
        indices[rows] = np.arange(len(rows))
        stored = self.scaled(name, len(rows), width)
        return Table(indices, *stored, (int(seed), limit))

    def texts(self, name: str, count: int | None = None) -> list[bytes]:
        """Returns the texts that `stored_texts` has converted to arrays."""
        joined = self.array(name, None, dtype=np.uint8).tobytes()
        ends = self.array(f"{name}.ends", count, dtype=np.int64)
        starts = np.append(0, ends)
        if (np.diff(starts) < 0).any() or starts[-1] != len(joined):
            raise ValueError(f"{name}.ends does not fit {name}")
        spans = zip(starts[:-1].tolist(), ends.tolist(), strict=True)
        return [joined[start:end] for start, end in spans]


def _mapped(
    path: Path, start: int, dtype: str, shape: Sequence[int]
) -> np.ndarray:
    """Maps an array of numbers at an offset of a file into memory."""
    if np.dtype(dtype).kind not in "iuf":
        raise ValueError(f"found an array of {dtype!r:.20} among variables")
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    values = np.frombuffer(data, dtype, math.prod(shape), start)
    # Matrix products would copy an unaligned array at each call.
    return np.require(values.reshape(shape), requirements="A")


class Weights:
    """Reads and checks the weights of one encoder in a portable model."""

    def __init__(self, file: PortableFile, name: str, oov_buckets: int) -> None:
        self._file = file
        self._name = name
        self._size = TRIGRAMS + oov_buckets

    def array(
        self, name: str, *shape: int | None, dtype: Any = np.float32
    ) -> Any:
        """Returns an array, see `PortableFile.array`."""
        return self._file.array(f"{self._name}/{name}", *shape, dtype=dtype)

    def table(self, name: str, width: int) -> Table:
        """Returns the trigram table of an embedding layer."""
        return self._file.table(f"{self._name}/{name}/table", self._size, width)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raises `InputError` if the `with` block cannot read a portable file."""
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
"""An initial value is limit * k / 2^23, with an integer k."""

_BLOCK = 1 << 17
"""Number of initial values to compute at once: as many as fit into the cache of
the processor."""


def start_rows(numbers: Any, width: int, seed: int, limit: float) -> np.ndarray:
    """Computes initial values of table rows, float32 `[n, width]`."""
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
    """Returns limit / 2^23, the unit of initial values."""
    return np.float32(limit / (1 << START_BITS))


def start_keys(numbers: Any, width: int, seed: int, shift: Shift) -> Any:
    """Returns uint32 keys of initial values, `[n, width]`, to hash by `mix`."""
    mixed_seed = mix(np.array([seed], np.uint32), np.right_shift)
    columns = mix(np.arange(1, width + 1, dtype=np.uint32), np.right_shift)
    return mix(numbers ^ mixed_seed, shift)[:, np.newaxis] ^ columns


def mix(x: Any, shift: Shift) -> Any:
    """Hashes uint32 numbers bijectively, like "lowbias32" (C. Wellons 2018)."""
    x = x ^ shift(x, np.uint32(16))
    x = x * np.uint32(0x21F0AAAD)
    x = x ^ shift(x, np.uint32(15))
    x = x * np.uint32(0x735A2D97)
    return x ^ shift(x, np.uint32(15))

"""The file of a portable model: arrays as safetensors, a header as JSON.

Nothing in it is run as code.
"""

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.signatures import TensorInfo
from lstm_dssm_client.texts import as_bytes
from lstm_dssm_client.words import TRIGRAMS

Arrays = dict[str, np.ndarray]

FORMAT = 1
"""Number of the format. Files of others cannot be read."""

_HEADER, _CHECKSUM = "lstm_dssm", "crc32"  # keys of safetensors' metadata


def write_portable(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Writes a file, without a temporary name.

    Args:
        path: The file.
        header: What JSON can hold.
        arrays: The arrays by name.
    """
    text = json.dumps({"format": FORMAT, **header})
    metadata = {_HEADER: text, _CHECKSUM: _checksum(text, arrays)}
    # Its own function for files would change their permissions.
    Path(path).write_bytes(save(dict(arrays), metadata))


def stored_table(name: str, values: np.ndarray, kind: str) -> Arrays:
    """Returns rows as float32; or as int8, with one scale a row."""
    values = values.astype(np.float32)
    if kind == "float32":
        return {name: values}
    scales = np.abs(values).max(axis=1) / np.float32(127)
    scales[scales == 0] = 1
    codes = np.rint(values / scales[:, np.newaxis]).astype(np.int8)
    return {name: codes, f"{name}.scales": scales}


def stored_texts(name: str, texts: Sequence[str]) -> Arrays:
    """Returns texts one after the other, and where each of them ends."""
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
    """Rows of numbers: float32, or int8 with a scale for each row."""

    values: np.ndarray
    scales: np.ndarray | None

    def rows(self, numbers: Any = slice(None)) -> np.ndarray:
        """Returns rows, float32 `[n, width]`; by default all."""
        values = self.values[numbers]
        if self.scales is None:
            return values
        return values * self.scales[numbers, np.newaxis]


class PortableFile:
    """The content of a file; each array is checked when it is asked for.

    To be read within `reading`: where something is wrong, Python, NumPy or
    safetensors raise their own errors.

    Args:
        path: The file. It is closed when all of it was read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            self._arrays = {key: file.get_tensor(key) for key in file.keys()}
        text = metadata[_HEADER]
        if _checksum(text, self._arrays) != metadata[_CHECKSUM]:
            raise ValueError("it is damaged: its checksum is another")
        self.header: dict[str, Any] = json.loads(text)
        if self.header["format"] != FORMAT:
            raise ValueError(f"found format {self.header['format']!r:.20}")

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(
        self, name: str, *shape: int | None, dtype: Any = np.float32
    ) -> Any:
        """Returns an array; None in its shape stands for any size."""
        values = self._arrays[name]
        if not TensorInfo(np.dtype(dtype).name, shape).fits(values):
            raise ValueError(f"{name} is {values.dtype} {values.shape}")
        if values.dtype == np.float32 and not np.isfinite(values).all():
            raise ValueError(f"{name} has numbers that are not finite")
        return values

    def table(self, name: str, rows: int | None, width: int) -> Table:
        """Returns what `stored_table` stores."""
        if f"{name}.scales" not in self:
            return Table(self.array(name, rows, width), None)
        codes = self.array(name, rows, width, dtype=np.int8)
        return Table(codes, self.array(f"{name}.scales", len(codes)))

    def texts(self, name: str, count: int | None = None) -> list[bytes]:
        """Returns what `stored_texts` stores."""
        joined = self.array(name, None, dtype=np.uint8).tobytes()
        ends = self.array(f"{name}.ends", count, dtype=np.int64)
        starts = np.append(0, ends)
        if (np.diff(starts) < 0).any() or starts[-1] != len(joined):
            raise ValueError(f"{name} end elsewhere than their texts")
        spans = zip(starts[:-1].tolist(), ends.tolist(), strict=True)
        return [joined[start:end] for start, end in spans]


class Weights:
    """The weights of one encoder of a file.

    What the document encoder shares with the query encoder is stored once.

    Args:
        file: The file.
        names: The encoder's name, and that of the query encoder.
        oov_buckets: The encoder's argument.
    """

    def __init__(
        self, file: PortableFile, names: Sequence[str], oov_buckets: int
    ) -> None:
        self._file = file
        self._names = names
        self._rows = TRIGRAMS + oov_buckets

    def array(
        self, name: str, *shape: int | None, dtype: Any = np.float32
    ) -> Any:
        """Returns an array of this shape."""
        return self._file.array(self._owner(name), *shape, dtype=dtype)

    def table(self, name: str, width: int) -> Table:
        """Returns the table of an embedding."""
        return self._file.table(self._owner(f"{name}/table"), self._rows, width)

    def _owner(self, name: str) -> str:
        own, shared = (f"{encoder}/{name}" for encoder in self._names)
        return own if own in self._file else shared


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raises `InputError`, of one line, for all that may be wrong with a file.

    Args:
        path: The file, for the message.
    """
    target = os.fspath(path)
    try:
        yield
    except OSError as error:
        raise InputError(f"{target}: {error.strerror or error}") from error
    except (
        SafetensorError, ValueError, LookupError, TypeError, AttributeError,
        ArithmeticError, RecursionError, MemoryError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{target}: not a file that this version can read ({reason:.200});"
            " write it with lstm-dssm-export --portable"
        ) from error

"""EncodedParts: all parts of encoded titles in a folder, read as one."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.part_files import (
    PartInfo,
    PartRows,
    part_name,
    read_info,
    read_part,
)
from keras_lstm_dssm.fingerprints import HASH_BYTES


def has_parts(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder of encoded parts."""
    return any(Path(path).glob("part-*.json"))


class EncodedParts:
    """Reads the parts that `lstm-dssm-encode --shard` has written.

    Iterating yields the `PartRows` of each part, in the order of the input;
    one part is in memory at a time.

    Args:
        folder: The folder of the parts.

    Attributes:
        rows: Number of titles.
        dimension: Width of a vector.
        encoder_sha256: Fingerprint of the encoder.

    Raises:
        InputError: A part is missing or damaged, or parts are of different
            encoders or inputs.

    Example:
    >>> parts = EncodedParts("PARTS")
    >>> parts.rows, parts.dimension
    (10000000, 96)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._infos: dict[str, PartInfo] = {}
        for path in sorted(self.folder.glob("part-*.json")):
            info = read_info(self.folder, path.stem)
            assert info
            self._infos[path.stem] = info
        if not self._infos:
            raise InputError(
                f"{folder}: found no part, expected those that "
                "lstm-dssm-encode --shard has written"
            )
        self._check_complete()
        infos = self._infos.values()
        self.rows = sum(info.rows for info in infos)
        self.dimension = next(iter(infos)).dimension
        self.encoder_sha256 = next(iter(infos)).encoder_sha256
        if not self.rows:
            raise InputError(f"{folder}: found no title in all of its parts")

    def __iter__(self) -> Iterator[PartRows]:
        for name, info in self._infos.items():
            yield read_part(self.folder, name, info)

    def read(self) -> PartRows:
        """Reads all parts, each row once.

        A title that is repeated with its id is read once.

        Raises:
            InputError: An id has two titles, or is empty.
        """
        ids: list[str] = []
        vectors = np.empty((self.rows, self.dimension), np.float32)
        hashes = np.empty((self.rows, HASH_BYTES), np.uint8)
        known: dict[str, int] = {}
        for part in self:
            kept: list[int] = []
            for row, key in enumerate(part.ids):
                old = known.setdefault(key, len(ids) + len(kept))
                if old == len(ids) + len(kept):
                    kept.append(row)
                    continue
                first = (
                    hashes[old]
                    if old < len(ids)
                    else part.hashes[kept[old - len(ids)]]
                )
                if (first != part.hashes[row]).any():
                    raise InputError(
                        f"{self.folder}: id {key!r:.60} has two different "
                        "titles; give each document its own id"
                    )
            place = slice(len(ids), len(ids) + len(kept))
            vectors[place] = part.vectors[kept]
            hashes[place] = part.hashes[kept]
            ids += [part.ids[row] for row in kept]
        return PartRows(ids, vectors[: len(ids)], hashes[: len(ids)])

    def sample(self, rows: int) -> np.ndarray:
        """Reads vectors from all parts, evenly, about as many as `rows`."""
        step = max(1, self.rows // rows)
        return np.concatenate([part.vectors[::step] for part in self])

    def _check_complete(self) -> None:
        first = next(iter(self._infos.values()))
        by_file: dict[int, list[PartInfo]] = {}
        for name, info in self._infos.items():
            for field in ("files", "lines", "dimension", "encoder_sha256"):
                found, expected = getattr(info, field), getattr(first, field)
                if found != expected:
                    raise InputError(
                        f"{self.folder}/{name}.json: found {field}={found}, "
                        f"expected {expected} as in the first part: encode "
                        "one input, with one encoder, into a folder"
                    )
            by_file.setdefault(info.file_number, []).append(info)
        for number in range(first.files):
            infos = by_file.get(number, [])
            numbers = [info.part for info in infos]
            complete = numbers == list(range(len(numbers))) and numbers
            if not complete or not infos[-1].last:
                missing = next(
                    (i for i in range(len(numbers)) if numbers[i] != i),
                    len(numbers),
                )
                raise InputError(
                    f"{self.folder}: {part_name(number, missing)} is missing; "
                    "expected all parts: start lstm-dssm-encode again for the "
                    "shards that are not finished"
                )

"""EncodedParts: all parts of encoded titles in a folder, read as one."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.part_files import (
    PartInfo,
    PartRows,
    part_name,
    read_info,
    read_part,
    tag_lines,
)
from keras_lstm_dssm.files import replacing
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
        tagged: Number of titles that have tags.

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
        self.tagged = sum(info.tagged for info in infos)
        if not self.rows:
            raise InputError(f"{folder}: found no title in all of its parts")

    def __iter__(self) -> Iterator[PartRows]:
        for name, info in self._infos.items():
            yield read_part(self.folder, name, info)

    def read(self) -> PartRows:
        """Reads all parts, each row once.

        A title that is repeated with its id and tags is read once.

        Raises:
            InputError: An id has two titles, or two sets of tags.
        """
        ids: list[str] = []
        tags: list[tuple[str, ...]] = []
        vectors = np.empty((self.rows, self.dimension), np.float32)
        hashes = np.empty((self.rows, HASH_BYTES), np.uint8)
        known: dict[str, int] = {}
        for part in self:
            start, kept = len(ids), []
            for row, (key, title_hash, of_one) in enumerate(
                zip(part.ids, part.hashes, part.tags_of_each, strict=True)
            ):
                old = known.setdefault(key, len(ids))
                if old == len(ids):
                    kept.append(row)
                    ids.append(key)
                    hashes[old] = title_hash
                    tags.append(tuple(of_one))
                    continue
                other_title = (hashes[old] != title_hash).any()
                if other_title or tags[old] != tuple(of_one):
                    what = "titles" if other_title else "sets of tags"
                    raise InputError(
                        f"{self.folder}: id {key!r:.60} has two different "
                        f"{what}; give each document its own id"
                    )
            vectors[start : len(ids)] = part.vectors[kept]
        count = len(ids)
        return PartRows(
            ids, vectors[:count], hashes[:count], tags if self.tagged else ()
        )

    def sample(self, rows: int) -> np.ndarray:
        """Reads vectors from all parts, evenly, about as many as `rows`."""
        step = max(1, self.rows // rows)
        return np.concatenate([part.vectors[::step] for part in self])

    def write_lines(self, output: str | os.PathLike[str]) -> None:
        """Writes the ids to `OUTPUT.ids`, and tags, if any, to `OUTPUT.tags`.

        Line i belongs to row i of an index of the vectors; the tags of a
        title have commas between.

        Args:
            output: The file of the index.

        Raises:
            OSError: A file cannot be written.
        """
        with ExitStack() as files:
            ids = files.enter_context(_text_file(f"{output}.ids"))
            tags = None
            if self.tagged:
                tags = files.enter_context(_text_file(f"{output}.tags"))
            for part in self:
                ids.writelines(f"{key}\n" for key in part.ids)
                if tags:
                    tags.writelines(tag_lines(part.tags_of_each))
        if not self.tagged:  # perhaps of an older index
            Path(f"{output}.tags").unlink(missing_ok=True)

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


@contextmanager
def _text_file(path: str) -> Iterator[IO[str]]:
    with replacing(path) as partial:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file

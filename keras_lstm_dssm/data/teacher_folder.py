"""Reads a teacher's folder: texts, and vectors from a sentence encoder."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.plain_files import (
    check_version,
    damage_named,
    one_line,
    open_gzip,
    read_array,
    read_json,
    write_lines,
)
from keras_lstm_dssm.text.word_hashing import clean_texts
from lstm_dssm_client.signatures import as_bytes

_COUNTS = "texts", "queries", "titles", "spans", "words"
"""Entries of teacher.json that count texts; see `teach` for spans and words."""

_MOST_TEXTS = 2**31

BLOCK = 1024
"""Number of texts in a block; the last block may have fewer texts."""


class TeacherFolder:
    """Gives access to the files of a folder that `teach` writes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.settings = self.path / "teacher.json"
        self.texts = self.path / "texts.jsonl.gz"  # a JSON string on each line

    def block(self, number: int) -> Path:
        """Returns the path of the file with the vectors of a block."""
        return self.path / "vectors" / f"{number:06}.npy"

    def read_settings(self) -> dict[str, Any]:
        """Reads and checks `teacher.json`."""
        if not self.settings.exists():
            raise InputError(
                f"{self.path}: found no teacher's vectors (no teacher.json);"
                " make them with lstm-dssm-teach --data=DATA --encoder=NAME"
                f" --output={self.path}"
            )
        settings = read_json(self.settings)
        numbers = (settings.get(name, 0) for name in _COUNTS)
        if not (
            {"texts", "encoder", "sha256", "queries", "titles"} <= set(settings)
            and all(type(n) is int and 0 <= n < _MOST_TEXTS for n in numbers)
        ):
            raise InputError(
                f"{self.settings}: found the entries {sorted(settings)},"
                " expected the settings of a teacher: restore the file, or name"
                " another folder"
            )
        check_version(self.settings, settings, "make the vectors again")
        return settings

    def write_texts(self, texts: Sequence[str]) -> None:
        """Writes the texts."""
        with replacing(self.texts) as partial:
            write_lines(partial, (json.dumps(text) + "\n" for text in texts))

    def read_texts(self) -> list[str]:
        """Reads the texts."""
        remedy = "restore the file, or make the vectors again in another folder"
        with (
            damage_named(self.texts, remedy),
            open_gzip(self.texts, self.path) as file,
        ):
            texts = [json.loads(line) for line in file]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("found a line that is no text")
        return texts

    def read_block(self, number: int, rows: int) -> np.ndarray:
        """Reads a block of vectors, float32 `[rows, d]`."""
        path = self.block(number)
        remedy = (
            "remove the file and run lstm-dssm-teach again, to compute these"
            " vectors again"
        )
        vectors = read_array(path, remedy, self.path)
        shape = vectors.shape
        if (len(shape), shape[:1], vectors.dtype) != (2, (rows,), np.float32):
            raise InputError(
                f"{path}: found {vectors.dtype} {list(shape)}, expected"
                f" float32 [{rows}, d]: {remedy}"
            )
        return np.array(vectors)


class TeacherVectors:
    """Holds a sentence encoder's vectors for the texts of a training.

    Texts that differ only in white space count as equal.

    Args:
        texts: Distinct texts.
        vectors: Float `[texts, d]`, a vector of d numbers for each text.
        folder: The folder that the vectors were read from. Default `None`.

    Attributes:
        vectors: float32 `[texts, d]`, rows of unit length or of zeros.
        folder: The folder, as a string, or `None`.

    Raises:
        InputError: The numbers of texts and vectors differ, two texts are
            equal, or a vector is not finite.

    Example:
    >>> teacher = TeacherVectors(["hex bolt", "wood glue"], np.eye(2))
    >>> teacher.rows(["wood  glue", "lamp"])
    array([ 1, -1], dtype=int32)
    """

    def __init__(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        folder: str | None = None,
    ) -> None:
        self.vectors = unit_vectors(vectors, "text")
        self.folder = folder
        self._row = {one_line(text): row for row, text in enumerate(texts)}
        if not len(texts) == len(self._row) == len(self.vectors):
            raise InputError(
                f"found {len(self.vectors)} vectors and {len(texts)} texts,"
                f" {len(self._row)} of them distinct: give distinct texts, and"
                " one vector for each"
            )

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "TeacherVectors":
        """Reads a folder that `teach` has written.

        Raises:
            InputError: Vectors are missing, or a file is damaged.

        Example:
        >>> teacher = TeacherVectors.open("TEACH")
        """
        files = TeacherFolder(folder)
        settings = files.read_settings()
        texts = files.read_texts()
        if fingerprint(texts) != settings["sha256"]:
            raise InputError(
                f"{files.texts}: found other texts than {files.settings.name}"
                " was written for: restore the file, or make the vectors again"
                " in another folder"
            )
        blocks = text_blocks(texts)
        missing = sum(not files.block(n).exists() for n in range(len(blocks)))
        if missing:
            raise InputError(
                f"{folder}: {missing} of {len(blocks)} blocks of vectors are"
                " missing: run lstm-dssm-teach again, which continues"
            )
        vectors = [
            files.read_block(number, len(block))
            for number, block in enumerate(blocks)
        ]
        if len(widths := sorted({block.shape[1] for block in vectors})) > 1:
            raise InputError(
                f"{folder}: found vectors of {widths[0]} and of {widths[1]}"
                " numbers, expected one width: make the vectors again in"
                " another folder"
            )
        return cls(texts, np.concatenate(vectors), os.path.abspath(folder))

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, texts: Iterable[str]) -> np.ndarray:
        """Returns each text's row in `vectors`, -1 if unknown: int32 `[n]`."""
        return np.array(
            [self._row.get(one_line(text), -1) for text in texts], np.int32
        )

    def __getitem__(self, texts: Sequence[str]) -> np.ndarray:
        """Looks up the vectors of n texts, float32 `[n, d]`.

        Raises:
            InputError: A text has no vector.
        """
        rows = self.rows(texts)
        if (rows < 0).any():
            text = texts[int(np.argmin(rows))]
            raise InputError(
                f"{self.folder or 'teacher'}: found no vector of {text!r:.80},"
                " expected texts that the teacher has encoded: run"
                " lstm-dssm-teach on these data, in another folder"
            )
        return self.vectors[rows]

    def completed(
        self,
        texts: Sequence[str | bytes],
        encode: Callable[[Sequence[str]], np.ndarray],
    ) -> np.ndarray:
        """Returns vectors of n texts, float32 `[n, d]`.

        `encode` computes float `[m, d]` for the m texts that have no vector.
        """
        clean = clean_texts(texts)
        rows = self.rows(clean)
        vectors = self.vectors[np.maximum(rows, 0)]
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            vectors[unknown] = encode([clean[i] for i in unknown])
        return vectors

    @property
    def sha256(self) -> str:
        """Hash of the texts and vectors."""
        digest = hashlib.sha256(fingerprint(self._row).encode())
        digest.update(np.ascontiguousarray(self.vectors).tobytes())
        return digest.hexdigest()


def text_blocks(texts: list[str]) -> list[list[str]]:
    """Splits texts into blocks; each block has a file of vectors."""
    starts = range(0, len(texts), BLOCK)
    return [texts[start : start + BLOCK] for start in starts]


def fingerprint(texts: Iterable[str]) -> str:
    """Returns a hash of texts in their order, as hexadecimal digits."""
    digest = hashlib.sha256()
    for text in as_bytes(texts):
        digest.update(text + b"\0")
    return digest.hexdigest()

"""TeacherVectors: the vectors of an outside encoder, looked up by text."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.files import open_gzip, read_json, replacing
from keras_lstm_dssm.text.strings import as_bytes

BLOCK = 1024
"""Texts whose vectors one file of a teacher folder holds."""


class TeacherFolder:
    """Names and reads the files of a folder that `teach` writes.

    The files are `teacher.json` (the settings), `texts.jsonl.gz` (a text a
    line) and `vectors/000000.npy`, ..., float32 of 1,024 rows each.

    Args:
        path: The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.settings = self.path / "teacher.json"
        self.texts = self.path / "texts.jsonl.gz"
        self.clicks = self.path / "clicks.train.tsv"

    def block(self, number: int) -> Path:
        """Returns the file of a block of vectors."""
        return self.path / "vectors" / f"{number:06}.npy"

    def read_settings(self) -> dict[str, Any]:
        """Reads `teacher.json`.

        Raises:
            InputError: There is none, or it is damaged.
        """
        if not self.settings.exists():
            raise InputError(
                f"{self.path}: found no teacher's vectors (no teacher.json);"
                " make them with lstm-dssm-teach --data=DATA --encoder=NAME"
                f" --output={self.path}"
            )
        settings = read_json(self.settings)
        if not {"texts", "encoder", "sha256"} <= set(settings):
            raise InputError(
                f"{self.settings}: found {sorted(settings)}, expected the"
                " settings of a teacher: restore the file, or name another"
                " folder"
            )
        return settings

    def write_texts(self, texts: Sequence[str]) -> None:
        """Writes the texts, from which `read_texts` reads them."""
        with (
            replacing(self.texts) as partial,
            gzip.open(partial, "wt", encoding="utf-8") as file,
        ):
            file.writelines(json.dumps(text) + "\n" for text in texts)

    def read_texts(self) -> list[str]:
        """Reads the texts.

        Raises:
            InputError: The file is missing or damaged.
        """
        try:
            with open_gzip(self.texts) as file:
                return [json.loads(line) for line in file]
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise InputError(
                f"{self.texts}: cannot be read ({error}); restore the file, or"
                " make the vectors anew in another folder"
            ) from error

    def read_block(self, number: int, rows: int) -> np.ndarray:
        """Reads a block of vectors, float32 `[rows, d]`.

        Raises:
            InputError: The file is damaged, or has another shape.
        """
        path = self.block(number)
        try:
            vectors = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(
                f"{path}: cannot be read ({error}); remove the file and run"
                " lstm-dssm-teach again, which computes it anew"
            ) from error
        if vectors.shape[:1] != (rows,) or vectors.dtype != np.float32:
            raise InputError(
                f"{path}: found {vectors.dtype} {list(vectors.shape)}, expected"
                f" float32 [{rows}, d]: remove the file and run lstm-dssm-teach"
                " again, which computes it anew"
            )
        return vectors

    def digest(self) -> str:
        """Hashes texts and vectors, so that a change of either is noticed.

        Returns the SHA-256 in hexadecimal. Unlike `TeacherVectors.sha256`, it
        does not depend on how a machine rounds when it scales the vectors.

        Raises:
            InputError: `teacher.json` is missing or damaged.
            OSError: A file of vectors cannot be read.
        """
        settings = self.read_settings()
        digest = hashlib.sha256(settings["sha256"].encode())
        for number in range(-(-settings["texts"] // BLOCK)):
            digest.update(self.block(number).read_bytes())
        return digest.hexdigest()


class TeacherVectors:
    """Holds the vectors of an outside encoder for the texts of a training.

    Texts that differ in white space only are one text, as click files do not
    distinguish them.

    Args:
        texts: Distinct texts.
        vectors: Float `[texts, d]`, one row for each text; they are scaled to
            unit length.
        folder: The folder that they were read from; by default `None`.

    Attributes:
        vectors: float32 `[texts, d]`, rows of unit length.
        folder: The folder, as a string, or `None`.

    Raises:
        InputError: The numbers of texts and vectors differ, or a vector is
            not finite.

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
        self._row = {one_space(text): row for row, text in enumerate(texts)}
        if not len(texts) == len(self._row) == len(self.vectors):
            raise InputError(
                f"found {len(self.vectors)} vectors for {len(self._row)}"
                f" distinct ones of {len(texts)} texts: expected one for each"
            )

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "TeacherVectors":
        """Reads a folder that `teach` has written.

        Raises:
            InputError: There are no vectors in the folder, not all of them
                are computed, or a file is damaged.

        Example:
        >>> teacher = TeacherVectors.open("TEACH")
        """
        files = TeacherFolder(folder)
        settings = files.read_settings()
        texts = files.read_texts()
        if fingerprint(texts) != settings["sha256"]:
            raise InputError(
                f"{files.texts}: found other texts than {files.settings.name}"
                " names: restore the file, or make the vectors anew in another"
                " folder"
            )
        starts = range(0, len(texts), BLOCK)
        missing = sum(
            not files.block(number).exists() for number in range(len(starts))
        )
        if missing:
            raise InputError(
                f"{folder}: {missing} of {len(starts)} blocks of vectors are"
                " missing: run lstm-dssm-teach again, which continues"
            )
        blocks = [
            files.read_block(number, len(texts[start : start + BLOCK]))
            for number, start in enumerate(starts)
        ]
        return cls(texts, np.concatenate(blocks), os.path.abspath(folder))

    def __len__(self) -> int:
        """Returns the number of texts."""
        return len(self.vectors)

    def rows(self, texts: Iterable[str]) -> np.ndarray:
        """Looks up the rows of texts, int32 `[n]`; -1 for unknown texts."""
        return np.array(
            [self._row.get(one_space(text), -1) for text in texts], np.int32
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
                f"{self.folder or 'teacher'}: found no vector of {text!r:.80};"
                " expected the data that the teacher has encoded: run"
                " lstm-dssm-teach on these data, in another folder"
            )
        return self.vectors[rows]

    @property
    def sha256(self) -> str:
        """Hash of texts and vectors: equal for equal teachers only."""
        digest = hashlib.sha256(fingerprint(self._row).encode())
        digest.update(np.ascontiguousarray(self.vectors).tobytes())
        return digest.hexdigest()


def one_space(text: str) -> str:
    """Makes white space single spaces, as in a click file."""
    return " ".join(text.split())


def fingerprint(texts: Iterable[str]) -> str:
    """Returns a hash of texts in their order, as hexadecimal digits."""
    digest = hashlib.sha256()
    for text in as_bytes(texts):
        digest.update(text + b"\0")
    return digest.hexdigest()

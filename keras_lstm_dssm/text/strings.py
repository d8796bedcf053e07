"""What users hand over as texts, as a tensor of strings."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError


def as_strings(texts: Any) -> tf.Tensor:
    """Converts a tensor, or any iterable of strings or bytes, to a tensor.

    Args:
        texts: String tensor `(batch,)`, array, list, tuple, generator.

    Returns:
        String tensor `(batch,)`.

    Raises:
        InputError: It is something else, or an element is.
    """
    if tf.is_tensor(texts):
        if texts.dtype != tf.string or texts.shape.rank not in (1, None):
            raise InputError(
                "expected a tensor of strings [batch], got "
                f"{texts.dtype.name} {texts.shape}"
            )
        return texts
    encoded = as_bytes(texts)
    return tf.constant(encoded, tf.string, shape=[len(encoded)])


def as_bytes(texts: Any) -> list[bytes]:
    """Converts any iterable of strings or bytes to a list of UTF-8.

    What Python read from bytes that are not UTF-8, such as a command line,
    becomes those bytes again; any other lone surrogate becomes "?".

    Raises:
        InputError: It is no such iterable.
    """
    if isinstance(texts, str | bytes):
        raise InputError(
            f"expected a list of texts, got one text, {texts!r:.60}; "
            "write [text]"
        )
    if not isinstance(texts, Iterable):
        raise InputError(
            f"expected a list of texts, got {texts!r:.60} "
            f"({type(texts).__name__})"
        )
    return [_encoded(place, text) for place, text in enumerate(texts)]


def _encoded(place: int, text: Any) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(
            f"text {place} is {text!r:.60} ({type(text).__name__}), "
            "expected str or bytes"
        )
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")

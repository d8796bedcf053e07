"""What users hand over as texts."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import as_bytes, as_strings

TEXTS = ["hex bolt", "", "glue"]


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        tuple(TEXTS),
        (text for text in TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        [text.encode() for text in TEXTS],
        dict.fromkeys(TEXTS),
        tf.constant(TEXTS),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_any_iterable(texts: object) -> None:
    found = as_strings(texts).numpy().tolist()
    assert found == [b"hex bolt", b"", b"glue"]


def test_lone_surrogates() -> None:
    """A command line's raw bytes come back; others have no bytes."""
    assert as_bytes(["caf\udce9", "a\ud800"]) == [b"caf\xe9", b"a?"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (None, "got None"),
        (7, "got 7"),
        (tf.constant([1]), r"got int32 \(1,\)"),
        (tf.constant("one"), r"got string \(\)"),
        (tf.constant([["a"]]), r"got string \(1, 1\)"),
    ],
)
def test_what_is_no_batch_of_texts(texts: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_strings(texts)

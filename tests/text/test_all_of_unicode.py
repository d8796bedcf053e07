"""Every code point has the ids of a transcription, in all versions."""

import hashlib
import sys
import unicodedata
from itertools import chain

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import LetterTrigrams
from tests import reference

POINTS = [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]
AT_ONCE = 1 << 16

CJK_EXTENSION_I = range(0x2EBF0, 0x2EE5E)
"""Characters of Unicode 15.1, which Python 3.13 knows, and TF.Text 2.21 not."""

ALONE, AND_BETWEEN_LETTERS = "{0}", "{0} A{0}b"
DIGESTS = {
    ("space", 0, ALONE): "ea06746bdfc51ff4",
    ("space", 8192, AND_BETWEEN_LETTERS): "c9eba56f392ca547",
    ("alphanumeric", 8192, AND_BETWEEN_LETTERS): "8d9786fed166f27e",
}
"""SHA-256 of all ids.

A later TF.Text may know a later Unicode: then they change, as does
`lstm_dssm_client/unicode_tables.py`."""


def ragged_arrays(layer: LetterTrigrams, texts: list[str]) -> list[np.ndarray]:
    """All ids, the number of words of each text, and of ids of each word."""
    ids = layer(tf.constant(texts))
    counts = ids.row_lengths(), ids.values.row_lengths()
    return [array.numpy() for array in (ids.flat_values, *counts)]


@pytest.mark.parametrize(("rule", "oov_buckets", "context"), DIGESTS)
def test_ids_of_every_code_point(rule, oov_buckets, context):
    layer = LetterTrigrams(oov_buckets=oov_buckets, max_words=None, split=rule)
    digest = hashlib.sha256()
    for start in range(0, len(POINTS), AT_ONCE):
        chars = map(chr, POINTS[start : start + AT_ONCE])
        texts = [context.format(char) for char in chars]
        for array in ragged_arrays(layer, texts):
            digest.update(array.tobytes())
    assert digest.hexdigest().startswith(DIGESTS[rule, oov_buckets, context])
    # Python may know fewer characters; private ones have no properties.
    known = [
        char for char in map(chr, POINTS)
        if unicodedata.category(char) not in ("Cn", "Co")
        and ord(char) not in CJK_EXTENSION_I
    ]  # fmt: skip
    assert len(known) > 140_000
    words = [reference.split(context.format(char), rule) for char in known]
    ids = [reference.trigrams(x, oov_buckets) for row in words for x in row]
    for found, expected in zip(
        ragged_arrays(layer, [context.format(char) for char in known]),
        ([*chain.from_iterable(ids)], [*map(len, words)], [*map(len, ids)]),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)

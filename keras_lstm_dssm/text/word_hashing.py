"""Word hashing, W_h of the paper: text -> words -> letter trigrams."""

import string

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

EMPTY_TEXT = "#"
"""The one word of a text without words; its only trigram is `###`."""


SPLITS = ("space", "alphanumeric")
"""Where words end; see `split_words`."""


def split_words(
    texts: tf.Tensor, max_words: int | None = None, split: str = "space"
) -> tf.Tensor:
    """Splits texts into normalised words.

    Invalid UTF-8 becomes U+FFFD, compatible forms are unified (NFKC), case
    is folded, invisible code points (soft hyphens, zero-width joiners) are
    dropped, and words are what stands between Unicode white space: the
    paper's treatment (section V: "whitespace tokenized and lower-cased,
    numbers are retained, and no stemming"). A text without words gets the
    one word `#`, so that every text has a vector.

    Args:
        texts: String tensor `[batch]`, any bytes.
        max_words: Words kept of each text, the first ones; `None` for all.
        split: `"space"`, the paper's; or `"alphanumeric"`, where words are
            runs of letters, digits and marks, and all else is a space.

    Returns:
        `tf.RaggedTensor` of strings, `[batch, (words)]`, at least one word
        a row.

    Example:
    >>> split_words(tf.constant(["Hotels in  Shanghai", ""])).to_list()
    [[b'hotels', b'in', b'shanghai'], [b'#']]
    """
    valid = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace"
    )
    folded = tf_text.case_fold_utf8(tf_text.normalize_utf8(valid, "NFKC"))
    # The tokenizer cuts the bytes of these four in two; NFKC has made plain
    # spaces of all other white space.
    spaced = tf.strings.regex_replace(folded, "[\u0085\u1680\u2028\u2029]", " ")
    if split == "alphanumeric":
        spaced = tf.strings.regex_replace(spaced, r"[^\pL\pN\pM]+", " ")
    words = tf_text.WhitespaceTokenizer().tokenize(spaced)
    if max_words is not None:
        words = words[:, :max_words]
    blank = tf.cast(tf.equal(words.row_lengths(), 0), tf.int64)
    filler = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(blank)], EMPTY_TEXT), blank, validate=False
    )
    return tf.concat([words, filler], axis=1)


LETTERS = "#" + string.ascii_lowercase + string.digits
"""The 37 letters; a letter's code is its place. `#` marks a word's ends."""

TRIGRAMS = len(LETTERS) ** 3
"""Number of exact trigram codes, 50,653: the paper's "50 k"."""

_CODES = np.zeros(128, np.int64)
for _code, _letter in enumerate(LETTERS):
    _CODES[ord(_letter)] = _code

# Universal hashing of three code points (21 bits each): the products stay
# below 2**63 in sum, and the modulus is the Mersenne prime 2**31 - 1.
_FACTORS = (815_730_721_573, 678_223_072_849, 1_004_195_369_209)
_PRIME = 2**31 - 1


def trigram_ids(
    words: tf.Tensor, oov_buckets: int = 0
) -> tuple[tf.Tensor, tf.Tensor]:
    """Lists the letter trigrams of each word.

    A word of m letters, wrapped in `#`, has m trigrams, one centred on each
    letter: `good` -> `#go goo ood od#`. Trigram (c1, c2, c3) has the exact
    code (c1 * 37 + c2) * 37 + c3, without collisions.

    Code points outside the alphabet count as `#` when `oov_buckets` is 0,
    as in the paper's presets. Otherwise every trigram that holds one is
    hashed, from its three code points, into a row from 50,653 on, so that
    words of other scripts keep distinct vectors.

    Args:
        words: String tensor `[n]` of valid UTF-8, none of them empty.
        oov_buckets: Rows for trigrams with a letter outside the alphabet.

    Returns:
        `(ids, word)`, two int32 tensors `[m]` over all trigrams of all
        words: the trigram's id, and the ascending place of its word.

    Example:
    >>> ids, word = trigram_ids(tf.constant(["a", "go"]))
    >>> ids.numpy().tolist(), word.numpy().tolist()
    ([37, 274, 10138], [0, 1, 1])
    """
    letters = tf.strings.unicode_decode(words, "UTF-8")
    word = letters.value_rowids()
    points = tf.cast(letters.flat_values, tf.int64)
    known = points < len(_CODES)
    code = tf.gather(_CODES, tf.where(known, points, 0))
    if not oov_buckets:
        exact = _join(_neighbours(tf.where(known, code, 0), word))
        return tf.cast(exact, tf.int32), tf.cast(word, tf.int32)
    inside = known & ((code > 0) | tf.equal(points, ord("#")))
    triple = _neighbours(tf.where(inside, code, 0), word)
    outside = tf.add_n(
        _neighbours(tf.cast(~inside, tf.int64), word)
    )  # how many of the three letters are outside the alphabet
    mixed = tf.add_n(
        [
            factor * point
            for factor, point in zip(
                _FACTORS, _neighbours(points, word), strict=True
            )
        ]
    )
    bucket = TRIGRAMS + tf.math.floormod(
        tf.math.floormod(mixed, _PRIME), oov_buckets
    )
    ids = tf.where(outside > 0, bucket, _join(triple))
    return tf.cast(ids, tf.int32), tf.cast(word, tf.int32)


def _neighbours(values: tf.Tensor, word: tf.Tensor) -> list[tf.Tensor]:
    """Values before, at and after each place, 0 beyond the word's ends."""
    zero = tf.zeros([1], values.dtype)
    inner = tf.cast(tf.equal(word[1:], word[:-1]), values.dtype)
    before = tf.concat([zero, values[:-1] * inner], axis=0)
    after = tf.concat([values[1:] * inner, zero], axis=0)
    size = tf.size(values)  # an empty batch has no neighbours
    return [before[:size], values, after[:size]]


def _join(triple: list[tf.Tensor]) -> tf.Tensor:
    first, second, third = triple
    return (first * len(LETTERS) + second) * len(LETTERS) + third

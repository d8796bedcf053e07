"""Word hashing of Huang et al. 2013: texts, words, stems, letter trigrams."""

from collections.abc import Iterable

import tensorflow as tf
import tensorflow_text as tf_text

from keras_lstm_dssm.errors import check_at_least, check_choice
from keras_lstm_dssm.text.strings import as_strings
from lstm_dssm_client.words import (
    EMPTY_TEXT,
    LETTER_CODES,
    LETTERS,
    MAX_BYTES_PER_WORD,
    MAX_LETTERS,
    OTHER_SPACES,
    PRIME,
    TRIGRAM_FACTORS,
    TRIGRAMS,
)

# A word of a text ends with a space or with the text.
_ENDINGS = (
    (r"([^ea ])ies( |$)", r"\1y\2"),
    (r"(x|ch|sh|ss|z)es( |$)", r"\1\2"),
    (r"([^us ])s( |$)", r"\1\2"),
    (r"(\pL{4})(?:ing|ed)( |$)", r"\1\2"),
)


def stem_words(texts: tf.Tensor) -> tf.Tensor:
    """Removes English endings of plurals and of verbs from normalised words.

    The rules are those of the S stemmer (Harman 1991, "How effective is
    suffixing?"), and -es, -ing and -ed. They are few, so that a graph can
    apply them; the result need not be a word, only the same for the forms of
    a word.
    """
    for ending, replacement in _ENDINGS:
        texts = tf.strings.regex_replace(texts, ending, replacement)
    return texts


WORD_SPLITS = ("space", "alphanumeric", "stems")
"""The rules by which a text is split into words; see `normalize_texts`."""

_SPACES = {
    # Single plain spaces are not matched: that would take a tenth longer.
    "space": f"[ {OTHER_SPACES}]{{2,}}|[{OTHER_SPACES}]",
    "alphanumeric": r"[^\pL\pN\pM]+",
}


def split_without_stems(split: str) -> str:
    """Returns the rule that gives the same words with their endings."""
    return "alphanumeric" if split == "stems" else split


def normalize_texts(
    texts: tf.Tensor, max_words: int | None = None, split: str = "space"
) -> tf.Tensor:
    """Normalises texts to the words that an encoder reads.

    An encoder gives texts with equal results the same vector.

    Invalid UTF-8 becomes U+FFFD, compatible forms are unified (NFKC), case
    is folded, invisible code points (soft hyphens, zero-width joiners) are
    dropped, and words are separated by Unicode white space, as in the paper
    (section V: "whitespace tokenized and lower-cased, numbers are retained,
    and no stemming"). A text without words becomes the one word `#`, so that
    every text has a vector.

    Args:
        texts: String tensor `[batch]`, any bytes.
        max_words: If set, a text is first cut to
            `max_words * MAX_BYTES_PER_WORD` bytes, which bounds time and
            memory. `None`, the default, reads all of it.
        split: `"space"`, the paper's rule; or `"alphanumeric"`, where words
            are runs of letters, digits and marks, and every other character
            counts as a space; or `"stems"`, where these words lose their
            English endings, see `stem_words`.

    Returns:
        String tensor `[batch]`: the words, single spaces between them.

    Example:
    >>> normalize_texts(tf.constant(["ANGLE  bracket", ""])).numpy().tolist()
    [b'angle bracket', b'#']

    Raises:
        InputError: `split` is unknown, or `max_words` is below 1.
    """
    check_split(max_words, split)
    if max_words is not None:
        texts = tf.strings.substr(texts, 0, max_words * MAX_BYTES_PER_WORD)
    valid = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace"
    )
    folded = tf_text.case_fold_utf8(tf_text.normalize_utf8(valid, "NFKC"))
    joined = tf.strings.strip(
        tf.strings.regex_replace(
            folded, _SPACES[split_without_stems(split)], " "
        )
    )
    if split == "stems":
        joined = stem_words(joined)
    return tf.where(tf.equal(joined, ""), EMPTY_TEXT, joined)


def check_split(max_words: int | None, split: str) -> None:
    """Raises `InputError` if `split` is unknown, or `max_words` is below 1."""
    check_at_least(1, optional=True, max_words=max_words)
    check_choice(WORD_SPLITS, split=split)


def normalize(texts: Iterable[str | bytes], split: str = "space") -> list[str]:
    """Normalises texts as `normalize_texts` does, from and to Python strings.

    Args:
        texts: Iterable of `str` or `bytes`.
        split: The rule that separates words; see `normalize_texts`.

    Example:
    >>> normalize(["ANGLE  bracket", "angle-bracket"], "alphanumeric")
    ['angle bracket', 'angle bracket']
    """
    normal = normalize_texts(as_strings(texts), None, split)
    return [text.decode() for text in normal.numpy().tolist()]


def split_words(
    texts: tf.Tensor, max_words: int | None = None, split: str = "space"
) -> tf.Tensor:
    """Splits strings `[batch]` into normalised words, `[batch, (words)]`.

    A row has at least one word, and at most `max_words`, which bounds the bytes
    that are read, too (see `normalize_texts`).
    """
    return separate_words(normalize_texts(texts, max_words, split), max_words)


def separate_words(texts: tf.Tensor, max_words: int | None = None) -> tf.Tensor:
    """Separates the words of texts that `normalize_texts` has normalised."""
    words = tf.strings.split(texts, " ")
    return words if max_words is None else words[:, :max_words]


def trigram_ids(
    words: tf.Tensor, oov_buckets: int = 0
) -> tuple[tf.Tensor, tf.Tensor]:
    """Lists the letter trigrams of each word.

    A word of m letters, wrapped in `#`, has m trigrams, one centred on each
    letter: `good` -> `#go goo ood od#`. Trigram (c1, c2, c3) has the exact
    code (c1 * 37 + c2) * 37 + c3, without collisions.

    Code points outside the alphabet count as `#` when `oov_buckets` is 0,
    as in the paper's presets. Otherwise every trigram that holds one is
    hashed, from its three code points, into a row from 50,653 on. Of a word of
    more than `MAX_LETTERS` letters only the first are used.
    """
    words = tf.strings.substr(words, 0, MAX_LETTERS, unit="UTF8_CHAR")
    letters = tf.strings.unicode_decode(words, "UTF-8")
    # As `value_rowids`, by a third of the operations.
    word = tf.where(tf.sequence_mask(letters.row_lengths()))[:, 0]
    ids = trigrams_of_letters(letters.flat_values, word, oov_buckets)
    return ids, tf.cast(word, tf.int32)


def trigrams_of_letters(
    points: tf.Tensor, word: tf.Tensor, oov_buckets: int = 0
) -> tf.Tensor:
    """Lists the trigram centred on each letter, int32 `[m]`; see `trigram_ids`.

    Takes the code point of each letter, int32 `[m]`, and the index of its word,
    ascending.
    """
    points = tf.cast(points, tf.int64)
    known = points < len(LETTER_CODES)
    code = tf.gather(LETTER_CODES, tf.where(known, points, 0))
    if not oov_buckets:
        exact = _trigram_code(_neighbours(tf.where(known, code, 0), word))
        return tf.cast(exact, tf.int32)
    inside = known & ((code > 0) | tf.equal(points, ord("#")))
    triple = _neighbours(tf.where(inside, code, 0), word)
    outside = tf.add_n(
        _neighbours(tf.cast(~inside, tf.int64), word)
    )  # how many of the three letters are outside the alphabet
    mixed = tf.add_n(
        [
            factor * point
            for factor, point in zip(
                TRIGRAM_FACTORS, _neighbours(points, word), strict=True
            )
        ]
    )
    bucket = TRIGRAMS + tf.math.floormod(
        tf.math.floormod(mixed, PRIME), oov_buckets
    )
    ids = tf.where(outside > 0, bucket, _trigram_code(triple))
    return tf.cast(ids, tf.int32)


def _neighbours(values: tf.Tensor, word: tf.Tensor) -> list[tf.Tensor]:
    """Returns the values before, at and after each letter, 0 past the ends."""
    zero = tf.zeros([1], values.dtype)
    inner = tf.cast(tf.equal(word[1:], word[:-1]), values.dtype)
    before = tf.concat([zero, values[:-1] * inner], axis=0)
    after = tf.concat([values[1:] * inner, zero], axis=0)
    size = tf.size(values)  # an empty batch has no neighbours
    return [before[:size], values, after[:size]]


def _trigram_code(triple: list[tf.Tensor]) -> tf.Tensor:
    first, second, third = triple
    return (first * len(LETTERS) + second) * len(LETTERS) + third

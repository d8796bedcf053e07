"""Word hashing of Huang et al. 2013: texts, words, stems, letter trigrams."""

from collections.abc import Iterable

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from keras_lstm_dssm.errors import check_at_least, check_choice
from keras_lstm_dssm.text.strings import as_strings
from lstm_dssm_client.signs import PLAIN, Rule
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
    normalizer,
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

    Invalid UTF-8 becomes U+FFFD, signs such as trademarks, fractions and
    thousands separators get one form (`lstm_dssm_client.signs`), compatible
    forms are unified (NFKC), case is folded, invisible code points (soft
    hyphens, zero-width joiners) are dropped, and words are separated by
    Unicode white space, as in the paper
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
    >>> normalize_texts(tf.constant(["ANGLE  bracket™", ""])).numpy().tolist()
    [b'angle bracket', b'#']

    Raises:
        InputError: `split` is unknown, or `max_words` is below 1.
    """
    check_split(max_words, split)
    if max_words is not None:
        texts = tf.strings.substr(texts, 0, max_words * MAX_BYTES_PER_WORD)
    return _separated(_folded(texts), split)


def normalize_single_text(text: tf.Tensor, split: str) -> tf.Tensor:
    """Does as `normalize_texts` for one text `[1]`, with fewer operations."""
    folded = tf.cond(
        tf.reduce_all(tf.strings.regex_full_match(text, PLAIN)),
        lambda: tf.strings.lower(text),
        lambda: _with_signs_folded(text),
    )
    return _separated(folded, split)


def _separated(folded: tf.Tensor, split: str) -> tf.Tensor:
    joined = tf.strings.strip(
        tf.strings.regex_replace(
            folded, _SPACES[split_without_stems(split)], " "
        )
    )
    if split == "stems":
        joined = stem_words(joined)
    return tf.where(tf.equal(joined, ""), EMPTY_TEXT, joined)


def _folded(texts: tf.Tensor) -> tf.Tensor:
    """Unifies signs, compatible forms and the case of strings `[batch]`.

    Most texts are ASCII without signs, and take a fifth of the time; texts of
    other scripts without signs half.
    """
    is_plain = tf.strings.regex_full_match(texts, PLAIN)
    has_no_sign = tf.strings.regex_full_match(texts, normalizer().signs.none)
    kind = 2 - tf.cast(is_plain, tf.int32) - tf.cast(has_no_sign, tf.int32)
    rows = tf.dynamic_partition(tf.range(tf.size(texts)), kind, 3)
    plain, without_signs, others = tf.dynamic_partition(texts, kind, 3)
    parts = [
        tf.strings.lower(plain),
        _compatible_folded(_valid(without_signs)),
        _with_signs_folded(others),
    ]
    return tf.dynamic_stitch(rows, parts)


def _with_signs_folded(texts: tf.Tensor) -> tf.Tensor:
    signs = normalizer().signs
    unified = _replaced(_valid(texts), signs.before)
    return _replaced(_compatible_folded(unified), signs.after)


def _compatible_folded(texts: tf.Tensor) -> tf.Tensor:
    return tf_text.case_fold_utf8(tf_text.normalize_utf8(texts, "NFKC"))


def _valid(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace"
    )


def _replaced(texts: tf.Tensor, rules: Iterable[Rule]) -> tf.Tensor:
    for pattern, replacement in rules:
        texts = tf.strings.regex_replace(texts, pattern, replacement)
    return texts


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
) -> tf.RaggedTensor:
    """Splits strings `[batch]` into normalised words, `[batch, (words)]`.

    A row has at least one word, and at most `max_words`, which bounds the bytes
    that are read, too (see `normalize_texts`).
    """
    words = separate_words(normalize_texts(texts, max_words, split))
    return words if max_words is None else words[:, :max_words]


_TOKENIZER = tf_text.WhitespaceTokenizer()


def separate_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Separates the words of texts that `normalize_texts` has normalised."""
    return _TOKENIZER.tokenize(texts)


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

    Returns:
        `(ids, word)`, both int32 `[m]`: the trigrams of all words, and for
        each the index of its word, ascending.
    """
    words = tf.strings.substr(words, 0, MAX_LETTERS, unit="UTF8_CHAR")
    letters = tf.strings.unicode_decode(words, "UTF-8")
    # As `value_rowids`, by a third of the operations.
    word = tf.where(tf.sequence_mask(letters.row_lengths()))[:, 0]
    word = tf.cast(word, tf.int32)
    return trigrams_of_letters(letters.flat_values, word, oov_buckets), word


_OUTSIDE = len(LETTERS)
_CODES = LETTER_CODES.astype(np.int32)
_CODES_OR_OUTSIDE = np.where(
    (_CODES > 0) | (np.arange(128) == ord("#")), _CODES, _OUTSIDE
)


def trigrams_of_letters(
    points: tf.Tensor, word: tf.Tensor, oov_buckets: int = 0
) -> tf.Tensor:
    """Lists the trigram centred on each letter, int32 `[m]`; see `trigram_ids`.

    Takes the code point of each letter, int32 `[m]`, and the index of its word,
    int32 `[m]`, ascending.
    """
    is_inner = tf.pad(tf.equal(word[1:], word[:-1]), [[1, 1]])

    # Windows of numbers: `tf_text.ngrams` of the letters takes three times as
    # long, and ids from a hash of its strings would collide.
    def neighbours(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the values before, at and after each letter, or 0."""
        windows = tf_text.sliding_window(tf.pad(values, [[1, 1]]), 3, axis=0)
        before, at, after = tf.unstack(windows, axis=1)
        inner = tf.cast(is_inner, values.dtype)
        return before * inner[:-1], at, after * inner[1:]

    table = _CODES_OR_OUTSIDE if oov_buckets else _CODES
    codes = tf.gather(table, tf.minimum(points, len(table) - 1))
    first, second, third = neighbours(codes)
    ids = (first * len(LETTERS) + second) * len(LETTERS) + third
    if not oov_buckets:
        return ids
    mixed = tf.add_n(
        [
            factor * point
            for factor, point in zip(
                TRIGRAM_FACTORS,
                neighbours(tf.cast(points, tf.int64)),
                strict=True,
            )
        ]
    )
    buckets = tf.math.floormod(tf.math.floormod(mixed, PRIME), oov_buckets)
    return tf.where(
        tf.maximum(tf.maximum(first, second), third) < _OUTSIDE,
        ids,
        TRIGRAMS + tf.cast(buckets, tf.int32),
    )

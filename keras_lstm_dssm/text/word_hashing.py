"""Word hashing (Huang et al. 2013): from texts to words and letter trigrams."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from keras_lstm_dssm.errors import InputError, check_at_least, check_choice
from lstm_dssm_client.signatures import as_bytes
from lstm_dssm_client.words import (
    EMPTY_TEXT,
    LETTER_CODES,
    LETTERS,
    MAX_BYTES_PER_WORD,
    MAX_LETTERS,
    OTHER_SPACES,
    PLAIN,
    PRIME,
    TRIGRAM_FACTORS,
    TRIGRAMS,
    Rule,
    normalizer,
)


def as_strings(texts: Any) -> tf.Tensor:
    """Returns texts as a tensor of strings `[batch]`.

    `texts` is an iterable of texts, or a tensor of strings `[batch]`. Raises
    `InputError` if `texts` is neither.
    """
    if tf.is_tensor(texts):
        if texts.dtype != tf.string or texts.shape.rank not in (1, None):
            raise InputError(
                "expected a tensor of strings [batch], got "
                f"{texts.dtype.name} {texts.shape}"
            )
        # An unknown rank is checked when the graph runs: TF Serving does not
        # check ranks, and some kernels of TF.Text crash on scalars.
        return tf.ensure_shape(texts, [None])
    encoded = as_bytes(texts)
    return tf.constant(encoded, tf.string, shape=[len(encoded)])


def clean_texts(texts: Sequence[str | bytes]) -> list[str]:
    """Decodes texts; replaces lone surrogates and invalid UTF-8."""
    return [text.decode("utf-8", "replace") for text in as_bytes(texts)]


def check_string_input(reader: str, inputs: Any) -> None:
    """Raises `InputError` unless a symbolic input is a batch of strings."""
    if inputs.dtype != "string" or len(inputs.shape) != 1:
        raise InputError(
            f"{reader} reads strings (batch,), got "
            f"{inputs.dtype} {tuple(inputs.shape)}; write "
            "keras.Input((), dtype='string')"
        )


# Each rule is (pattern, replacement). `( |$)` matches the end of a word.
_ENDINGS = (
    (r"([^ea ])ies( |$)", r"\1y\2"),
    (r"(x|ch|sh|ss|z)es( |$)", r"\1\2"),
    (r"([^us ])s( |$)", r"\1\2"),
    (r"(\pL{4})(?:ing|ed)( |$)", r"\1\2"),
)


def stem_words(texts: tf.Tensor) -> tf.Tensor:
    """Removes English endings of plurals and verbs from normalised words.

    The rules are the S stemmer of Harman 1991, "How effective is suffixing?",
    and rules for -es, -ing and -ed.
    """
    for ending, replacement in _ENDINGS:
        texts = tf.strings.regex_replace(texts, ending, replacement)
    return texts


WORD_SPLITS = ("space", "alphanumeric", "stems")
"""The rules by which a text is split into words; see `normalize_texts`."""

_SPACES = {
    # A pattern that also matched single spaces would take a tenth more time.
    "space": f"[ {OTHER_SPACES}]{{2,}}|[{OTHER_SPACES}]",
    "alphanumeric": r"[^\pL\pN\pM]+",
}


def split_without_stems(split: str) -> str:
    """Returns a rule that splits like `split`, but does not stem words."""
    return "alphanumeric" if split == "stems" else split


def normalize_texts(
    texts: tf.Tensor, max_words: int | None = None, split: str = "space"
) -> tf.Tensor:
    """Normalises texts to the words that an encoder reads.

    Invalid UTF-8 becomes U+FFFD. Trademark signs and thousands separators are
    removed, and fractions get one form (`lstm_dssm_client.words`). Then NFKC
    unifies compatible forms, case is folded, and invisible code points (soft
    hyphens, zero-width joiners) are removed. By default, Unicode white space
    separates words, as in section V of Palangi et al. 2016: "whitespace
    tokenized and lower-cased, numbers are retained, and no stemming". A text
    without words becomes the word `#`, so every text has a vector.

    Args:
        texts: String tensor `[batch]`, any bytes.
        max_words: If set, only the first `64 * max_words` bytes of a text are
            read. Default `None`: all bytes.
        split: `"space"`: the paper's rule, the default. `"alphanumeric"`: words
            are runs of letters, digits and marks. `"stems"`: alphanumeric words
            without English endings, see `stem_words`.

    Returns:
        String tensor `[batch]`: words, separated by single spaces.

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
    """Normalises one text `[1]` as `normalize_texts` does, but faster."""
    folded = tf.cond(
        tf.reduce_all(tf.strings.regex_full_match(text, PLAIN)),
        lambda: tf.strings.lower(text),
        lambda: _with_signs_folded(text),
    )
    return _separated(folded, split)


def _separated(folded: tf.Tensor, split: str) -> tf.Tensor:
    spaces = _SPACES[split_without_stems(split)]
    joined = tf.strings.strip(tf.strings.regex_replace(folded, spaces, " "))
    if split == "stems":
        joined = stem_words(joined)
    return tf.where(tf.equal(joined, ""), EMPTY_TEXT, joined)


def _folded(texts: tf.Tensor) -> tf.Tensor:
    """Unifies signs, compatible forms and the case of strings `[batch]`."""
    # A sign is a character that a rule of `lstm_dssm_client.words` may change.
    # `kind` is 0 for ASCII texts without signs, 1 for other texts without signs
    # and 2 for texts with signs. Texts of the kinds 0 and 1 skip steps, and
    # take at most half of the time.
    is_plain = tf.strings.regex_full_match(texts, PLAIN)
    has_no_sign = tf.strings.regex_full_match(texts, normalizer().signs.none)
    kind = 2 - tf.cast(is_plain, tf.int32) - tf.cast(has_no_sign, tf.int32)
    rows = tf.dynamic_partition(tf.range(tf.size(texts)), kind, 3)
    plain, without_signs, others = tf.dynamic_partition(texts, kind, 3)
    folded = [
        tf.strings.lower(plain),
        _compatible_folded(_valid(without_signs)),
        _with_signs_folded(others),
    ]
    return tf.dynamic_stitch(rows, folded)


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
    """Raises `InputError` for an unknown `split`, or `max_words` below 1."""
    check_at_least(1, optional=True, max_words=max_words)
    check_choice(WORD_SPLITS, split=split)


def normalize(texts: Iterable[str | bytes], split: str = "space") -> list[str]:
    """Normalises texts as `normalize_texts` does; returns Python strings.

    Example:
    >>> normalize(["ANGLE  bracket", "angle-bracket"], "alphanumeric")
    ['angle bracket', 'angle bracket']
    """
    normal = normalize_texts(as_strings(texts), None, split)
    return [text.decode() for text in normal.numpy().tolist()]


def normalize_and_split(
    texts: tf.Tensor, max_words: int | None = None, split: str = "space"
) -> tf.RaggedTensor:
    """Splits strings `[batch]` into normalised words, `[batch, (words)]`."""
    words = split_normalized(normalize_texts(texts, max_words, split))
    return words if max_words is None else words[:, :max_words]


_TOKENIZER = tf_text.WhitespaceTokenizer()


def split_normalized(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits normalised texts at their single spaces, `[batch, (words)]`."""
    return _TOKENIZER.tokenize(texts)


def trigram_ids(
    words: tf.Tensor, oov_buckets: int = 0
) -> tuple[tf.Tensor, tf.Tensor]:
    """Hashes words to letter trigrams, such as `good` to `#go goo ood od#`.

    Returns the trigram ids of all words, and for each id the index of its word
    (ascending). Both are int32 `[m]`.
    """
    words = tf.strings.substr(words, 0, MAX_LETTERS, unit="UTF8_CHAR")
    letters = tf.strings.unicode_decode(words, "UTF-8")
    # `word` equals `letters.value_rowids()`, with a third of the operations.
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
    """Computes the id of the trigram centred on each letter, int32 `[m]`.

    `points` has the code point of each letter, and `word` the index of each
    letter's word, ascending. With `oov_buckets=0`, as in the paper, letters
    outside of `LETTERS` count as `#`.
    """
    # Item i says whether letters i - 1 and i are in the same word, `[m + 1]`.
    is_inner = tf.pad(tf.equal(word[1:], word[:-1]), [[1, 1]])

    # `tf_text.ngrams` would take three times as long. It also makes strings,
    # whose hashes would collide.
    def neighbours(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns values before, at and after letters; 0 outside words."""
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
    # A trigram with a letter outside of `LETTERS` is hashed to an id that is
    # `TRIGRAMS` or larger.
    windows = neighbours(tf.cast(points, tf.int64))
    mixed = tf.add_n(
        [f * p for f, p in zip(TRIGRAM_FACTORS, windows, strict=True)]
    )
    buckets = tf.math.floormod(tf.math.floormod(mixed, PRIME), oov_buckets)
    return tf.where(
        tf.maximum(tf.maximum(first, second), third) < _OUTSIDE,
        ids,
        TRIGRAMS + tf.cast(buckets, tf.int32),
    )


F = TypeVar("F", bound=Callable[..., Any])


def traced_once(function: F) -> F:
    """Decorates a function of texts `[batch]`: all graphs share one trace.

    The other arguments of the function must be hashable.
    """

    # Each dataset and each model has its own graph. Without this decorator,
    # `function` would be traced for each graph. Tracing takes longer than
    # hashing a small batch.
    @functools.cache
    def traced(*arguments: Any, **named: Any) -> Any:
        return tf.function(
            lambda texts: function(texts, *arguments, **named),
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    @functools.wraps(function)
    def call(texts: tf.Tensor, *arguments: Any, **named: Any) -> Any:
        if tf.executing_eagerly():
            return function(texts, *arguments, **named)
        return traced(*arguments, **named)(texts)

    return cast(F, call)


class WordBatch(NamedTuple):
    """Holds a batch as ids; each distinct text, word and trigram occurs once.

    Two texts are distinct if their normalised words differ (see
    `normalize_texts`). All fields but `untrained` are int32.

    Attributes:
        trigrams: `[r]`, the ids of the distinct trigrams. Batches of
            `VocabularyVectors` have the ids of distinct words here.
        trigram_index: `[m]`, the trigrams of all distinct words, as indices in
            `trigrams`.
        word_index: `[m]`, for each item of `trigram_index` the index of its
            distinct word, ascending.
        words: `[u, time]`, the indices of the words of each distinct text,
            padded with 0. The longest text is first.
        lengths: `[u]`, number of words of each distinct text, descending, at
            least 1.
        text_index: `[batch]`, for each text of the batch the index of its
            distinct text.
        trigram_order: `[m]`, the indices that sort `trigram_index`, for the
            gradient; with `None`, the gradient computes them.
        untrained: Float `[u, width]`, the untrained columns of the vectors of
            the distinct texts (see `UntrainedColumnCache`); with `None`, the
            encoder computes these columns.

    Example:
    >>> batch = dssm.LetterTrigrams().distinct(["bolt", "hex bolt", "Bolt"])
    >>> batch.lengths.numpy().tolist(), batch.text_index.numpy().tolist()
    ([2, 1], [1, 0, 1])
    """

    trigrams: tf.Tensor
    trigram_index: tf.Tensor
    word_index: tf.Tensor
    words: tf.Tensor
    lengths: tf.Tensor
    text_index: tf.Tensor
    trigram_order: tf.Tensor | None = None
    untrained: tf.Tensor | None = None

    @property
    def text_count(self) -> tf.Tensor:
        """Number of distinct texts."""
        return tf.size(self.lengths)

    def flat(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns `words` without padding, and the index of each word's text.

        Both are int32 `[w]`; the indices of texts are ascending.
        """
        is_word = tf.sequence_mask(self.lengths, tf.shape(self.words)[1])
        positions = tf.where(is_word)
        texts, _ = tf.unstack(tf.cast(positions, tf.int32), axis=1)
        return tf.gather_nd(self.words, positions), texts


@traced_once
def distinct_words(
    texts: tf.Tensor,
    oov_buckets: int = 0,
    max_words: int | None = None,
    split: str = "space",
) -> WordBatch:
    """Hashes strings `[batch]` into a `WordBatch`, eagerly or in a graph."""
    text_words, text_index = distinct_texts(texts, max_words, split)
    distinct, word_indices = tf.unique(text_words.flat_values)
    ids, word_index = trigram_ids(distinct, oov_buckets)
    trigrams, trigram_index = tf.unique(ids)
    return WordBatch(
        trigrams,
        trigram_index,
        word_index,
        pad_rows(text_words.with_flat_values(word_indices)),
        tf.cast(text_words.row_lengths(), tf.int32),
        text_index,
    )


@traced_once
def distinct_texts(
    texts: tf.Tensor, max_words: int | None, split: str
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Splits each distinct text into normalised words, the longest text first.

    Returns the words of the distinct texts, `[texts, (words)]`, and for each
    string of `texts` the index of its distinct text.
    """
    # Equal strings are removed first, so that fewer strings are normalised.
    distinct_bytes, bytes_index = tf.unique(texts)
    normal = normalize_texts(distinct_bytes, max_words, split)
    distinct, normal_index = tf.unique(normal)
    words = split_normalized(distinct)
    lengths = words.row_lengths()
    if max_words is not None:
        lengths = tf.minimum(lengths, max_words)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    text_index = tf.gather(
        tf.math.invert_permutation(order), tf.gather(normal_index, bytes_index)
    )
    # A single gather both cuts the texts to `max_words` words and sorts them.
    starts = tf.gather(words.row_starts(), order)
    positions = tf.ragged.range(starts, starts + tf.gather(lengths, order))
    text_words = tf.gather(words.values, positions.values)
    return positions.with_values(text_words), text_index


@traced_once
def text_fingerprints(
    texts: tf.Tensor, max_words: int | None, split: str
) -> tf.Tensor:
    """Hashes texts by their normalised words, int64 `[batch]`.

    Hashes are equal in all processes. A text collides with one of a million
    other texts with probability 1e-13.
    """
    distinct_bytes, index = tf.unique(texts)
    normal = normalize_texts(distinct_bytes, max_words, split)
    return tf.gather(tf.strings.to_hash_bucket_fast(normal, 2**63 - 1), index)


def pad_rows(rows: tf.RaggedTensor) -> tf.Tensor:
    """Pads rows of numbers or of vectors with 0 to one length, at least 1."""
    padded = rows.to_tensor()
    missing = tf.maximum(1 - tf.shape(padded)[1], 0)
    inner = [[0, 0]] * (padded.shape.rank - 2)
    return tf.pad(padded, [[0, 0], [0, missing], *inner])


_SPACE = ord(" ")

_MOST_BYTES = 127
"""Maximum size in bytes of a text for `hash_single_text`. `hash_single_text`
does not cut words. Normalising turns three bytes into at most 18 letters
(U+FDFA), so no word of a text of 127 bytes exceeds `MAX_LETTERS`."""


def is_single_short_text(texts: tf.Tensor, max_words: int | None) -> tf.Tensor:
    """Returns whether a batch is one text that `hash_single_text` can hash."""
    limit = _MOST_BYTES
    if max_words is not None:
        # U+FDFA becomes 4 words, so n bytes become at most 4 n / 3 + 1 words.
        limit = min(limit, 3 * (max_words - 1) // 4)
    lengths = tf.strings.length(texts)
    return tf.equal(tf.size(texts), 1) & tf.reduce_all(lengths <= limit)


def hash_single_text(
    text: tf.Tensor, oov_buckets: int = 0, split: str = "space"
) -> WordBatch:
    """Hashes one short text, with fewer operations than `distinct_words`.

    A repeated word is also repeated in the `WordBatch`. This changes no vector.
    """
    normal = normalize_single_text(text, split)
    points = tf.strings.unicode_decode(normal, "UTF-8").flat_values
    is_space = tf.equal(points, _SPACE)
    letters = tf.where(~is_space)[:, 0]
    word = tf.gather(tf.cumsum(tf.cast(is_space, tf.int32)), letters)
    ids = trigrams_of_letters(tf.gather(points, letters), word, oov_buckets)
    trigrams, trigram_index = tf.unique(ids)
    count = word[-1] + 1
    return WordBatch(
        trigrams,
        trigram_index,
        word,
        # The static shape [1, None] tells layers that there is no padding.
        tf.range(count)[tf.newaxis],
        count[tf.newaxis],
        tf.constant([0]),
    )

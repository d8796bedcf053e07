"""Words of texts and ids of their letter trigrams, without TensorFlow.

`split_words` is the one splitter of BM25, baselines, statistics and the page.
Its words are those of the exported graphs, where TF.Text and RE2 normalise.
`unicode_tables` holds what these do with each code point, so that the version
of Unicode that Python comes with does not matter; release/unicode_tables.py
writes it.
"""

import functools
import json
import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client.signs import SignRules
from lstm_dssm_client.start_rows import Shift
from lstm_dssm_client.texts import query_as_bytes

EMPTY_TEXT = "#"
"""The one word of a text without words; its only trigram is `###`."""

MAX_BYTES_PER_WORD = 64
"""With `max_words`, only the first 64 * max_words bytes of a text are read.

The mean word of a European language takes 6 bytes with its space. For the
default of 128 words the limit is 8 KiB, or 2,700 Chinese characters.
"""

MAX_LETTERS = 1024
"""Maximum number of letters of a word that are hashed, from its start.

Words of a language are shorter; a URL of several lines may be longer.
"""

LETTERS = "#" + string.ascii_lowercase + string.digits
"""The 37 letters; a letter's code is its index. `#` delimits a word."""

TRIGRAMS = len(LETTERS) ** 3
"""Number of different trigrams of the 37 letters, 50,653: the "50 k" of Palangi
et al. 2016."""

LETTER_CODES = np.zeros(128, np.int64)
"""The code of each ASCII character; 0 for those that are no letters."""
for _code, _letter in enumerate(LETTERS):
    LETTER_CODES[ord(_letter)] = _code

# Universal hashing of three code points (21 bits each): the sum of products
# stays below 2**63, and the modulus is the Mersenne prime 2**31 - 1.
TRIGRAM_FACTORS = (815_730_721_573, 678_223_072_849, 1_004_195_369_209)
PRIME = 2**31 - 1

SKETCH_ROWS, SKETCH_BUCKETS, SKETCH_START = 2048, 2**17, 3
"""Of the layer `WordSketch`: the number of rows of each of its two tables of
signs, of counters of document frequencies, and of the trigrams from which the
key of a word's start is computed."""

SKETCH_FACTORS = (
    1_557_985_959, 2_028_178_513, 48_271, 742_938_285, 950_706_376,
)  # fmt: skip

SKETCH_START_OFFSET = 1_343_714_438
"""Number that is added to the key of a word's start, its first letters. Without
it the word `cat` would have the same key as the start of the word `cats`."""


def sketch_mix(numbers: Any, shift: Shift) -> Any:
    """Hashes int64 numbers to values below `PRIME` whose sums rarely collide.

    `shift` shifts them to the right, in NumPy or in a graph of TensorFlow.
    """
    numbers = (numbers + 1) * SKETCH_FACTORS[0] % PRIME
    numbers = numbers ^ shift(numbers, 15)
    return numbers * SKETCH_FACTORS[1] % PRIME


OTHER_SPACES = "\t-\r\u0085\u1680\u2028\u2029"
"""What NFKC leaves of Unicode's white space beside the plain space, as the
ranges of a regular expression."""

_SPACE = re.compile(f"[ {OTHER_SPACES}]")

# A separator of words becomes a space, and a capital a small letter.
_ASCII = {
    split: bytes(
        ord(chr(byte).lower()) if keep(chr(byte)) else ord(" ")
        for byte in range(256)
    )
    for split, keep in (
        ("space", lambda char: not _SPACE.match(char)),
        ("alphanumeric", str.isalnum),
    )
}


class _Tables(NamedTuple):
    """The content of `unicode_tables`, read for texts beyond ASCII."""

    compatible: dict[str, str]  # character -> full compatibility decomposition
    folded: dict[str, str]  # -> decomposition of its folded case, if another
    ignored: list[int]  # bounds of ranges that folding removes
    order: list[str]  # marks by ascending combining class
    composed: dict[str, str]  # two characters -> the composed one
    letters: list[int]  # bounds of ranges of letters: start, end, start, ...
    alphanumeric: list[int]  # bounds of letters, numbers and marks
    signs: dict[str, list[int]]  # arguments of `SignRules`


class Normalizer:
    """Normalises texts as the graphs do: signs, NFKC, capitals made small."""

    def __init__(self, tables: _Tables) -> None:
        self._tables = tables
        self._rank = {
            mark: rank
            for rank, marks in enumerate(tables.order, 1)
            for mark in marks
        }
        self._compatible = _Filled(_decomposed, tables.compatible)
        self._folded = _Filled(_decomposed, tables.compatible | tables.folded)
        for start, end in zip(
            tables.ignored[::2], tables.ignored[1::2], strict=True
        ):
            self._folded.update(dict.fromkeys(range(start, end), ""))
        # Where none of these occurs, characters do not change one another.
        self._joining = {*self._rank, *(pair[1] for pair in tables.composed)}
        self._joining |= set(map(chr, range(0x1161, 0x11C3)))  # of Hangul
        self._joining |= {
            char
            for char, text in tables.compatible.items()
            if text[0] in self._joining
        }
        self._single = _Filled(self._both)
        self.signs = SignRules(**tables.signs)
        self._split = {
            "space": _Filled(lambda char: " " if _SPACE.match(char) else char),
            "alphanumeric": _Filled(
                lambda char: char if _inside(tables.alphanumeric, char) else " "
            ),
        }

    def normalize(self, text: str, split: str) -> str:
        """Normalises a text, with a space for each separator of words.

        `split` is `"space"` or `"alphanumeric"`.
        """
        has_signs = self.signs.are_in(text)
        if has_signs:
            text = self.signs.apply_before(text)
        if self._joining.isdisjoint(text):
            text = text.translate(self._single)
        else:
            text = self._both(text)
        if has_signs:
            text = self.signs.apply_after(text)
        return text.translate(self._split[split])

    def is_letter(self, char: str) -> bool:
        """Returns whether RE2 takes a character for a letter."""
        return _inside(self._tables.letters, char)

    def _both(self, text: str) -> str:
        compatible = self._compose(text.translate(self._compatible))
        return self._compose(compatible.translate(self._folded))

    def _compose(self, text: str) -> str:
        """Joins letters and their accents into single characters (NFC).

        The text is decomposed: each accent is a character of its own.
        """
        result: list[str] = []
        starter, before = -1, 0  # `before` is the rank of the last mark kept
        for char in self._ordered(text):
            rank = self._rank.get(char, 0)
            if starter >= 0 and before < rank + (before == 0):
                pair = result[starter] + char
                if composed := self._composed(pair):
                    result[starter] = composed
                    continue
            if rank:
                before = rank
            else:
                starter, before = len(result), 0
            result.append(char)
        return "".join(result)

    def _ordered(self, text: str) -> Iterable[str]:
        """Sorts accents that follow one another by their combining class.

        Accents of the same class keep their order.
        """
        for _, chars in groupby(text, self._rank.__contains__):
            yield from sorted(chars, key=lambda char: self._rank.get(char, 0))

    def _composed(self, pair: str) -> str | None:
        if "\u1161" <= pair[1] <= "\u11c2":  # Hangul is the same in all Pythons
            syllable = unicodedata.normalize("NFC", pair)
            return syllable if len(syllable) == 1 else None
        return self._tables.composed.get(pair)


class _Filled(dict[int, str]):
    """Dictionary from code points to texts, each computed when first read.

    It begins with the texts of some characters.
    """

    def __init__(
        self,
        function: Callable[[str], str],
        texts: dict[str, str] | None = None,
    ) -> None:
        super().__init__(str.maketrans(texts or {}))
        self._function = function

    def __missing__(self, point: int) -> str:
        return self.setdefault(point, self._function(chr(point)))


def _decomposed(char: str) -> str:
    """Decomposes a syllable of Hangul; others stand for themselves."""
    is_syllable = "\uac00" <= char <= "\ud7a3"
    return unicodedata.normalize("NFD", char) if is_syllable else char


def _inside(bounds: list[int], char: str) -> bool:
    """Returns whether a code point is in ranges `[start, end, start, ...]`."""
    return bisect_right(bounds, ord(char)) % 2 == 1


@functools.cache
def normalizer() -> Normalizer:
    """Reads the tables, when the first text is not ASCII."""
    # A module, because programs that freeze others collect no other files.
    from lstm_dssm_client.unicode_tables import TABLES

    return Normalizer(_Tables(**json.loads(TABLES)))


def split_words(
    text: str | bytes, split: str, max_words: int | None = None
) -> list[str]:
    """Splits a text into normalised words, as an exported graph does.

    See `keras_lstm_dssm.text.normalize_texts` for the rules and the arguments.
    A text without words gives an empty list, which encoders read as
    `EMPTY_TEXT`. Invalid UTF-8 becomes U+FFFD.

    Example:
    >>> split_words("Quikrete™ mix, 3½ lb.", "alphanumeric")
    ['quikrete', 'mix', '3', '1', '2', 'lb']
    """
    encoded = text if isinstance(text, bytes) else query_as_bytes(text)
    if max_words is not None:
        encoded = encoded[: max_words * MAX_BYTES_PER_WORD]
    rule = "alphanumeric" if split == "stems" else split
    if _is_plain(encoded):
        separated = encoded.translate(_ASCII[rule]).decode()
    else:
        valid = encoded.decode("utf-8", "replace")
        separated = normalizer().normalize(valid, rule)
    words = [word for word in separated.split(" ") if word]
    if split == "stems":
        words = [*map(_stem, words)]
    return words[:max_words]


_IN_WORD = re.compile(rb"`|,[^ A-Za-z]")


def _is_plain(text: bytes) -> bool:
    """Returns whether a text is ASCII and no rule of `signs` changes it."""
    has_signs = (b"," in text or b"`" in text) and _IN_WORD.search(text)
    return text.isascii() and not has_signs


_ENDINGS = (
    (re.compile(r"([^ea])ies\Z"), r"\1y"),
    (re.compile(r"(x|ch|sh|ss|z)es\Z"), r"\1"),
    (re.compile(r"([^us])s\Z"), r"\1"),
)
_VERB_ENDING = re.compile(r"(.{4})(?:ing|ed)\Z", re.DOTALL)


@functools.lru_cache(1 << 16)
def _stem(word: str) -> str:
    """Removes the endings that `keras_lstm_dssm.text.stem_words` removes."""
    for ending, replacement in _ENDINGS:
        word = ending.sub(replacement, word)
    match = _VERB_ENDING.search(word)
    if match and all(map(normalizer().is_letter, match[1])):
        word = word[: match.end(1)]
    return word


def trigram_ids(
    words: list[str], oov_buckets: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lists the ids of the letter trigrams of each word, one after the other.

    The ids are those of `keras_lstm_dssm.text.word_hashing.trigram_ids`; with
    them come the bounds of each word's, `[words + 1]`.
    """
    if max(map(len, words)) > MAX_LETTERS:
        words = [word[:MAX_LETTERS] for word in words]
    text = " ".join(["", *words, ""])
    if text.isascii():
        points = np.frombuffer(text.encode(), np.uint8)
        codes = LETTER_CODES[points]
    else:
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        codes = LETTER_CODES[np.minimum(points, 127)]
    between = points == ord(" ")
    first, second, third = codes[:-2], codes[1:-1], codes[2:]
    ids = (first * len(LETTERS) + second) * len(LETTERS) + third
    if oov_buckets:
        known = (codes > 0) | (points == ord("#")) | between
        numbers = np.where(between, 0, points).astype(np.int64)
        mixed = sum(
            factor * numbers[shift : len(ids) + shift]
            for shift, factor in enumerate(TRIGRAM_FACTORS)
        )
        bucket = TRIGRAMS + mixed % PRIME % oov_buckets
        ids = np.where(known[:-2] & known[1:-1] & known[2:], ids, bucket)
    spaces = np.flatnonzero(between)
    return ids[~between[1:-1]], spaces - np.arange(len(spaces))

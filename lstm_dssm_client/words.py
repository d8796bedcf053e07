"""Splits texts into words and letter trigrams, without TensorFlow.

`split_words` returns the same words as exported graphs, which normalise texts
with TF.Text and RE2. `unicode_tables` records how TF.Text and RE2 treat each
code point, because the versions of Python have different versions of Unicode.

Unicode's form NFKC replaces many signs (trademarks, fractions, superscripts) by
letters and digits, without a space: `Quikrete™` would become `quikretetm`, and
`3½` would become `31` and `2`. `SignRules` prevents such results, with regular
expressions that Python and RE2 interpret in the same way. docs/words.md
explains each rule.
"""

import functools
import json
import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client.signatures import query_as_bytes

IGNORED_MARKS = (
    "\u00a9\u00ae\u2117\u2120\u2122\u212e"
    "\U0001f12e\U0001f12f\U0001f16a-\U0001f16c\U0001f1ad"
)
"""Copyright and trademark signs, and the estimated sign on packages."""

QUOTES = "\u02ba\u02dd\u02ee\u05f4\u201c-\u201f\u2033\u2034\u2036\u2037\u2057"
"""Double quotation marks, double primes and the like, which become `"`."""

APOSTROPHES = "\u00b4\u0384\u055a\u05f3\u1fbd\u1ffd\u2018-\u201b\u2032\u2035"
"""Apostrophes, primes and acute accents without a letter, which become `'`."""

ORDINALS = "\u00aa\u00ba"

SUPERSCRIPTS = "\u00b2\u00b3\u00b9\u2070\u2074-\u2079"

SUBSCRIPTS = "\u2080-\u2089"

NAMED = (
    IGNORED_MARKS + QUOTES + APOSTROPHES + ORDINALS + SUPERSCRIPTS + SUBSCRIPTS
)
"""Of these characters, only `ORDINALS` are also in the ranges `signs` of
`unicode_tables`."""

# Modifier letters that look like an apostrophe.
_MODIFIERS = "\u02b9\u02bb-\u02bf\u02c8\u02ca\u02cb"
# Characters whose NFKC form contains a modifier letter or a grave accent.
_WITH_MODIFIERS = "\u0149\u0374\u1e9a\u1fef\uff40"

_TIMES = "\u00d7\u2a2f"
_DEGREE = "\u00b0"
_RAISED_O = ORDINALS[1] + "\u1d52"
_SLASHES = "\u2044\u2215"
_ZERO_WIDTH_SPACE = "\u200b"
_ONE_OVER = "\u215f"

_DIGITS = "0-9\u0660-\u0669\u06f0-\u06f9\uff10-\uff19"
_FIRST_DIGITS = "1-9\u0661-\u0669\u06f1-\u06f9\uff11-\uff19"
_COMMAS = ",\u066c"
_ALL_COMMAS = _COMMAS + "\ufe10\ufe50\uff0c"
# The most frequent characters after a comma outside of numbers.
_AFTER_COMMAS = " A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff"
_FIXED_SPACES = "\u00a0\u2007\u2009\u202f"
_IN_NUMBERS = f".{_COMMAS}{_FIXED_SPACES}"

# Ranges of letters and marks, which exclude `_DIGITS` and `_COMMAS`.
_LETTERS = (
    "A-Z_a-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6"
    "\u00f8-\u065f\u066d-\u06ef\u06fa-\u1fff\u2c00-\u2dff\u3040-\ud7ff"
    "\uf900-\ufdff\ufe70-\ufefc\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U00010000-\U0001efff\U00020000-\U0010ffff"
)
_NO_WORD_BEFORE = f"(^|[^{_DIGITS}{_LETTERS}])"

# ASCII signs. The rules insert no space between a fraction and an ASCII sign,
# because a space would divide the word: `½-inch` becomes `1/2-inch`.
_TYPED_SIGNS = re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^{|}~")


class Rule(NamedTuple):
    """A regular expression and the replacement of each match."""

    pattern: str
    replacement: str


# Some repetitions have a maximum, such as {0,3}. Without a maximum, Python
# would retry a failed match from each repeated character, in quadratic time.
def _number(digits: str, others: str) -> str:
    return f"[{others}]{{0,3}}[{digits}][{digits}{others}]*"


_RAISED = SUPERSCRIPTS + "\u207a-\u207e"
_SUPERSCRIPT = _number(SUPERSCRIPTS, "\u207a-\u207e")
_SUBSCRIPT = _number(SUBSCRIPTS, "\u208a-\u208e")
_FRACTION = f"(?:{_SUPERSCRIPT}\u2044|{_ONE_OVER}){_SUBSCRIPT}"
# Units of area and volume, such as `m²`: people type `10m²` as `10m2`. The
# characters U+339F to U+33A6 are such units, from `mm²` to `km³`.
_AREA = (
    "\\b[0-9]*(?:(?:[CDKMcdkm]?[Mm]|[Ii][Nn]|[Ff][Tt]|[Yy][Dd])[\u00b2\u00b3]"
    "|[\u339f-\u33a6])"
)


def _without_thousands(
    separators: str,  # characters that separate thousands
    decimal: str,  # decimal separators
    end: str,  # pattern of the text after a number with separators
    prefix: str = "",  # pattern of the text before an unchanged number
) -> Rule:
    """Returns the rule that removes separators from numbers below 10^15."""
    group = f"[{separators}]([{_DIGITS}]{{3}})"
    return Rule(
        f"([{_FIRST_DIGITS}][{_DIGITS}]{{0,2}}){group}"
        f"(?:{group})?(?:{group})?(?:{group})?"
        f"((?:[{decimal}][{_DIGITS}]*)?(?:{end}))"
        # The second alternative matches all characters of an unchanged number.
        # Therefore no match begins inside of an unchanged number.
        f"|({prefix}[{_DIGITS}][{_DIGITS}.]{{0,20}}"
        f"[{_IN_NUMBERS[1:]}][{_DIGITS}{_IN_NUMBERS}]*)",
        r"\1\2\3\4\5\6\7",
    )


_WITHOUT_COMMAS = _without_thousands(
    _COMMAS, ".", f"[{_IN_NUMBERS}]*(?:[^{_DIGITS}{_IN_NUMBERS}]|$)"
)
# A no-break space may also stand between two different numbers: `12 330ml`,
# `iPhone 5 128 GB`. The space is therefore kept in two cases: a letter directly
# follows the last number; or a letter precedes the first number, directly or
# with a no-break space between the letter and the number.
_WITHOUT_FIXED_SPACES = _without_thousands(
    _FIXED_SPACES,
    ".,",
    f"[^{_DIGITS}{_IN_NUMBERS}{_LETTERS}]|$"
    f"|[{_IN_NUMBERS}]+(?:[^{_DIGITS}{_IN_NUMBERS}{_LETTERS}]|$"
    # The match includes a number after the letter. Therefore no later match
    # changes the number.
    f"|[{_LETTERS}](?:[{_FIXED_SPACES}]?[{_DIGITS}][{_DIGITS}{_IN_NUMBERS}]*)?)",
    f"(?:[{_LETTERS}][{_FIXED_SPACES}]?)?",
)


class SignRules:
    """Replaces signs in texts; the arguments are ranges of code points."""

    after = (
        Rule(f"[{_SLASHES}]", "/"),  # fractions contain U+2044 after NFKC
        Rule(rf"`|\b[{_MODIFIERS}]+|[{_MODIFIERS}]{{1,3}}\b", "'"),
        Rule(rf"{_NO_WORD_BEFORE}n\.?{_DEGREE}(\.?)", r"\1no\2 "),
        _WITHOUT_COMMAS,
    )
    """Rules that are applied in turn after NFKC and case folding."""

    def __init__(
        self,
        accents: Sequence[int],  # accents without a letter
        apart: Sequence[int],  # each sign becomes one or more words
        letters_apart: Sequence[int],  # adjacent signs become one word
    ) -> None:
        classes = [*map(_characters, (accents, apart, letters_apart))]
        signs = (
            _AREA,
            _FRACTION,
            _SUPERSCRIPT,
            f"[{classes[1]}]",
            f"[{classes[2]}]+",
        )
        self.before = (
            _WITHOUT_FIXED_SPACES,
            Rule(f"[{QUOTES}]", '"'),
            Rule(f"[{APOSTROPHES}]", "'"),
            Rule(f"[{_TIMES}]", "x"),
            Rule(
                rf"{_NO_WORD_BEFORE}([Nn]\.?)[{_RAISED_O}]", rf"\1\2{_DEGREE}"
            ),
            Rule(
                f"[{IGNORED_MARKS}{_ZERO_WIDTH_SPACE}]"
                # A decomposed Greek accent has marks after its first character.
                f"|[{classes[0]}][\u0300\u0301\u0342]*",
                " ",
            ),
            # Surrounds signs, and subscripts after a digit, by zero-width
            # spaces. The last rule turns zero-width spaces into spaces. A
            # subscript after a letter belongs to the word, as in CO₂.
            Rule(
                f"({'|'.join(signs)})|([0-9])({_SUBSCRIPT})",
                rf"\2{_ZERO_WIDTH_SPACE}\1\3{_ZERO_WIDTH_SPACE}",
            ),
            Rule(f"{_ZERO_WIDTH_SPACE}([{_TYPED_SIGNS}])", r"\1"),
            # Removes zero-width spaces after ASCII signs, except before a
            # superscript outside of fractions, such as a footnote's number.
            Rule(
                f"([{_TYPED_SIGNS}]){_ZERO_WIDTH_SPACE}"
                f"([^{_RAISED}]|[{_RAISED}]+\u2044)",
                r"\1\2",
            ),
            Rule(_ZERO_WIDTH_SPACE, " "),
        )
        """Rules that are applied in turn before NFKC."""
        all_signs = "".join(
            [
                *("`", NAMED, _MODIFIERS, _WITH_MODIFIERS, _TIMES, _DEGREE),
                *(_RAISED_O, _SLASHES, _ZERO_WIDTH_SPACE, _FIXED_SPACES),
                *classes,
            ]
        )
        self.none = (
            f"(?:[^{all_signs}{_ALL_COMMAS}]|[{_ALL_COMMAS}]+[{_AFTER_COMMAS}])*"
            f"[{_ALL_COMMAS}]?"
        )
        """Regular expression of valid UTF-8 texts that no rule changes."""
        self._sign = re.compile(
            f"[{all_signs}]|[{_ALL_COMMAS}][^{_AFTER_COMMAS}]"
        )
        self._before = _compiled(self.before)
        self._after = _compiled(self.after)

    def apply_before(self, text: str) -> str:
        """Applies the rules that precede NFKC."""
        return _applied(self._before, text)

    def apply_after(self, text: str) -> str:
        """Applies the rules that follow NFKC and case folding."""
        return _applied(self._after, text)

    def are_in(self, text: str) -> bool:
        """Returns whether a rule may change a text."""
        return bool(self._sign.search(text))


PLAIN = r"(?:[\x00-+\--_a-\x7f]|,+[ A-Za-z])*,?"
"""Regular expression of ASCII texts that no rule changes. Most texts match."""


def _characters(bounds: Sequence[int]) -> str:
    """Converts ranges `[start, end, ...]` to part of a character class."""
    return "".join(
        f"{chr(start)}-{chr(end - 1)}"
        for start, end in zip(bounds[::2], bounds[1::2], strict=True)
    )


def _compiled(rules: Iterable[Rule]) -> list[tuple[re.Pattern[str], str]]:
    # The flag is ASCII, because RE2's \b knows only ASCII letters.
    return [(re.compile(rule.pattern, re.ASCII), rule[1]) for rule in rules]


def _applied(rules: list[tuple[re.Pattern[str], str]], text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


EMPTY_TEXT = "#"
"""The single word of a text without words. Its only trigram is `###`."""

MAX_BYTES_PER_WORD = 64
"""With `max_words`, only the first 64 * max_words bytes of a text are read. The
encoders' default, 128 words, reads 8 KiB, about 2,700 Chinese characters."""

MAX_LETTERS = 1024
"""Of a word, only the first `MAX_LETTERS` letters are hashed."""

LETTERS = "#" + string.ascii_lowercase + string.digits
"""The 37 letters. The code of a letter is its index. `#` delimits a word."""

TRIGRAMS = len(LETTERS) ** 3
"""Number of trigrams of 37 letters, 50,653; "50 k" in Palangi et al. 2016."""

LETTER_CODES = np.zeros(128, np.int64)
"""Code of each ASCII character; 0 for a character outside of `LETTERS`."""
for _code, _letter in enumerate(LETTERS):
    LETTER_CODES[ord(_letter)] = _code

# To hash a trigram, each code point (21 bits) is multiplied by one of the three
# factors. The hash is the sum of the products, modulo the Mersenne prime
# 2**31 - 1. The sum stays below 2**63.
TRIGRAM_FACTORS = (815_730_721_573, 678_223_072_849, 1_004_195_369_209)
PRIME = 2**31 - 1

SKETCH_ROWS, SKETCH_BUCKETS, SKETCH_START = 2048, 2**17, 3
"""The layer `WordSketch` has two tables of 2,048 rows. The tables' entries are
+1 or -1. The layer also has 2^17 counters of document frequencies. For this
layer, the start of a word is the first 3 trigrams of the word."""

SKETCH_FACTORS = (
    1_557_985_959, 2_028_178_513, 48_271, 742_938_285, 950_706_376,
)  # fmt: skip

SKETCH_START_OFFSET = 1_343_714_438
"""Added to the key of a word's start. A word of three trigrams, such as `cat`,
has the same trigrams as its start, but word and start need different keys."""

Shift = Callable[[Any, Any], Any]
"""Shifts numbers to the right: `np.right_shift` or TensorFlow's equivalent."""


def sketch_mix(numbers: Any, shift: Shift) -> Any:
    """Hashes int64 numbers to [0, PRIME); sums of hashes rarely collide."""
    numbers = (numbers + 1) * SKETCH_FACTORS[0] % PRIME
    numbers = numbers ^ shift(numbers, 15)
    return numbers * SKETCH_FACTORS[1] % PRIME


OTHER_SPACES = "\t-\r\u0085\u1680\u2028\u2029"
"""Part of a character class: white space that NFKC keeps, except U+0020."""

_SPACE = re.compile(f"[ {OTHER_SPACES}]")

# Tables of `bytes.translate`: separators become spaces, letters lower case.
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
    """Content of `unicode_tables`. Ranges are `[start, end, start, ...]`."""

    compatible: dict[str, str]  # character -> full compatibility decomposition
    # character that case folding changes -> decomposition after case folding
    folded: dict[str, str]
    ignored: list[int]  # ranges that case folding removes
    order: list[str]  # marks of each combining class, the lowest class first
    composed: dict[str, str]  # two characters -> the composed character
    letters: list[int]  # ranges of letters
    alphanumeric: list[int]  # ranges of letters, numbers and marks
    signs: dict[str, list[int]]  # arguments of `SignRules`


class Normalizer:
    """Normalises texts as exported graphs do: signs, NFKC, case folding."""

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
        # Characters that may change together with the character before them.
        self._joining = {*self._rank, *(pair[1] for pair in tables.composed)}
        self._joining |= set(map(chr, range(0x1161, 0x11C3)))  # Hangul
        self._joining |= {
            char
            for char, text in tables.compatible.items()
            if text[0] in self._joining
        }
        self._single = _Filled(self._nfkc_folded)
        self.signs = SignRules(**tables.signs)
        self._split = {
            "space": _Filled(lambda char: " " if _SPACE.match(char) else char),
            "alphanumeric": _Filled(
                lambda char: char if _inside(tables.alphanumeric, char) else " "
            ),
        }

    def normalize(self, text: str, split: str) -> str:
        """Normalises a text, and replaces separators of words by spaces."""
        has_signs = self.signs.are_in(text)
        if has_signs:
            text = self.signs.apply_before(text)
        if self._joining.isdisjoint(text):
            text = text.translate(self._single)
        else:
            text = self._nfkc_folded(text)
        if has_signs:
            text = self.signs.apply_after(text)
        return text.translate(self._split[split])

    def is_letter(self, char: str) -> bool:
        """Returns whether a character is a letter for RE2."""
        return _inside(self._tables.letters, char)

    def _nfkc_folded(self, text: str) -> str:
        compatible = self._compose(text.translate(self._compatible))
        return self._compose(compatible.translate(self._folded))

    def _compose(self, text: str) -> str:
        """Converts a decomposed text to Unicode's form NFC."""
        result: list[str] = []
        # `starter` is the index in `result` of the last letter. `last_rank` is
        # the rank of the last mark after the letter, or 0 without a mark.
        starter, last_rank = -1, 0
        for char in self._ordered(text):
            rank = self._rank.get(char, 0)
            if starter >= 0 and last_rank < rank + (last_rank == 0):
                pair = result[starter] + char
                if composed := self._composed(pair):
                    result[starter] = composed
                    continue
            if rank:
                last_rank = rank
            else:
                starter, last_rank = len(result), 0
            result.append(char)
        return "".join(result)

    def _ordered(self, text: str) -> Iterable[str]:
        """Sorts each run of adjacent marks by combining class."""
        for _, chars in groupby(text, self._rank.__contains__):
            yield from sorted(chars, key=lambda char: self._rank.get(char, 0))

    def _composed(self, pair: str) -> str | None:
        # Hangul needs no table: all versions of Python compose it equally.
        if "\u1161" <= pair[1] <= "\u11c2":
            syllable = unicodedata.normalize("NFC", pair)
            return syllable if len(syllable) == 1 else None
        return self._tables.composed.get(pair)


class _Filled(dict[int, str]):
    """Maps code points to texts; `function` computes missing texts."""

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
    """Decomposes a Hangul syllable; returns other characters unchanged."""
    is_syllable = "\uac00" <= char <= "\ud7a3"
    return unicodedata.normalize("NFD", char) if is_syllable else char


def _inside(bounds: list[int], char: str) -> bool:
    """Returns whether a character is in ranges `[start, end, start, ...]`."""
    return bisect_right(bounds, ord(char)) % 2 == 1


@functools.cache
def normalizer() -> Normalizer:
    """Reads the Unicode tables at the first call."""
    # The tables are a module and no data file, because tools that freeze
    # programs leave out data files.
    from lstm_dssm_client.unicode_tables import TABLES

    return Normalizer(_Tables(**json.loads(TABLES)))


def split_words(
    text: str | bytes, split: str, max_words: int | None = None
) -> list[str]:
    """Splits a text into normalised words; returns [] if there are none.

    `keras_lstm_dssm.text.normalize_texts` explains `split` and `max_words`.

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


_ASCII_SIGN = re.compile(rb"`|,[^ A-Za-z]")


def _is_plain(text: bytes) -> bool:
    """Returns whether a text is ASCII and no rule for signs can change it."""
    has_signs = (b"," in text or b"`" in text) and _ASCII_SIGN.search(text)
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
    """Returns the ids of the words' letter trigrams, word after word.

    Also returns the index of each word's first id, and at the end the number of
    ids, `[words + 1]`.
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
    is_space = points == ord(" ")
    first, second, third = codes[:-2], codes[1:-1], codes[2:]
    ids = (first * len(LETTERS) + second) * len(LETTERS) + third
    if oov_buckets:
        known = (codes > 0) | (points == ord("#")) | is_space
        numbers = np.where(is_space, 0, points).astype(np.int64)
        mixed = sum(
            factor * numbers[shift : len(ids) + shift]
            for shift, factor in enumerate(TRIGRAM_FACTORS)
        )
        bucket = TRIGRAMS + mixed % PRIME % oov_buckets
        ids = np.where(known[:-2] & known[1:-1] & known[2:], ids, bucket)
    spaces = np.flatnonzero(is_space)
    return ids[~is_space[1:-1]], spaces - np.arange(len(spaces))

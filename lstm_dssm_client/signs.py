"""Signs in texts: trademarks, fractions, primes, thousands separators.

Unicode's form NFKC writes many signs as letters and digits, glued to their
neighbours: without these rules `Quikrete™` would be the word `quikretetm`, and
`3½` the numbers `31` and `2`. The rules are regular expressions that Python and
RE2, in the exported graphs, read alike. docs/train.md lists them, with a reason
for each.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

IGNORED_MARKS = (
    "\u00a9\u00ae\u2117\u2120\u2122\u212e"
    "\U0001f12e\U0001f12f\U0001f16a-\U0001f16c\U0001f1ad"
)
"""Signs of rights and registration, and the estimated sign of packages."""

QUOTES = "\u02ba\u02dd\u02ee\u05f4\u201c-\u201f\u2033\u2034\u2036\u2037\u2057"
"""Double quotation marks, double primes, and modifier letters that look like
them; keyboards have `"`."""

APOSTROPHES = "\u00b4\u0384\u055a\u05f3\u1fbd\u1ffd\u2018-\u201b\u2032\u2035"
"""Apostrophes, primes, and acute accents that stand alone; keyboards have '."""

ORDINALS = "\u00aa\u00ba"

SUPERSCRIPTS = "\u00b2\u00b3\u00b9\u2070\u2074-\u2079"

SUBSCRIPTS = "\u2080-\u2089"

NAMED = (
    IGNORED_MARKS + QUOTES + APOSTROPHES + ORDINALS + SUPERSCRIPTS + SUBSCRIPTS
)
"""Characters with a rule of their own. The tables of classes leave them out."""

# Letters, which look like an apostrophe.
_MODIFIERS = "\u02b9\u02bb-\u02bf\u02c8\u02ca\u02cb"
# What NFKC writes with one of these, or with a grave accent.
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
# The most frequent characters after a comma that is in no number.
_AFTER_COMMAS = " A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff"
_FIXED_SPACES = "\u00a0\u2007\u2009\u202f"
_IN_NUMBERS = f".{_COMMAS}{_FIXED_SPACES}"

# Blocks of letters and marks, without `_DIGITS` and `_COMMAS`.
_LETTERS = (
    "A-Z_a-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6"
    "\u00f8-\u065f\u066d-\u06ef\u06fa-\u1fff\u2c00-\u2dff\u3040-\ud7ff"
    "\uf900-\ufdff\ufe70-\ufefc\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U00010000-\U0001efff\U00020000-\U0010ffff"
)
_NO_WORD_BEFORE = f"(^|[^{_DIGITS}{_LETTERS}])"

# Signs beside which an inserted space would part what is typed as one word.
_TYPED_SIGNS = re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^{|}~")


class Rule(NamedTuple):
    """A regular expression, and what replaces each match of it."""

    pattern: str
    replacement: str


# Python tries each start of a match anew, so that a repetition without a bound
# that may fail late, and begin anywhere in a row, would take quadratic time.
def _number(digits: str, others: str) -> str:
    return f"[{others}]{{0,3}}[{digits}][{digits}{others}]*"


_RAISED = SUPERSCRIPTS + "\u207a-\u207e"
_SUPERSCRIPT = _number(SUPERSCRIPTS, "\u207a-\u207e")
_SUBSCRIPT = _number(SUBSCRIPTS, "\u208a-\u208e")
_FRACTION = f"(?:{_SUPERSCRIPT}\u2044|{_ONE_OVER}){_SUBSCRIPT}"
# `10m²` is typed as `10m2`; U+339F to U+33A6 are `mm²` to `km³`.
_AREA = (
    "\\b[0-9]*(?:(?:[CDKMcdkm]?[Mm]|[Ii][Nn]|[Ff][Tt]|[Yy][Dd])[\u00b2\u00b3]"
    "|[\u339f-\u33a6])"
)


def _without_thousands(
    separators: str, decimal: str, end: str, before: str = ""
) -> Rule:
    """Removes separators of three digits each from numbers below 10^15.

    The last alternative matches other numbers as a whole, with what is
    `before`, so that no match begins within a number: RE2 cannot look behind.
    """
    group = f"[{separators}]([{_DIGITS}]{{3}})"
    return Rule(
        f"([{_FIRST_DIGITS}][{_DIGITS}]{{0,2}}){group}"
        f"(?:{group})?(?:{group})?(?:{group})?"
        f"((?:[{decimal}][{_DIGITS}]*)?(?:{end}))"
        # Of a longer number the end: it begins before the first alternative's.
        f"|({before}[{_DIGITS}][{_DIGITS}.]{{0,20}}"
        f"[{_IN_NUMBERS[1:]}][{_DIGITS}{_IN_NUMBERS}]*)",
        r"\1\2\3\4\5\6\7",
    )


_WITHOUT_COMMAS = _without_thousands(
    _COMMAS, ".", f"[{_IN_NUMBERS}]*(?:[^{_DIGITS}{_IN_NUMBERS}]|$)"
)
# A no-break space may stand between two numbers: `iPhone 5 128 GB`, `12 330ml`.
_WITHOUT_FIXED_SPACES = _without_thousands(
    _FIXED_SPACES,
    ".,",
    f"[^{_DIGITS}{_IN_NUMBERS}{_LETTERS}]|$"
    f"|[{_IN_NUMBERS}]+(?:[^{_DIGITS}{_IN_NUMBERS}{_LETTERS}]|$"
    # A number after a letter is the last alternative's.
    f"|[{_LETTERS}](?:[{_FIXED_SPACES}]?[{_DIGITS}][{_DIGITS}{_IN_NUMBERS}]*)?)",
    f"(?:[{_LETTERS}][{_FIXED_SPACES}]?)?",
)


class SignRules:
    """The rules for texts with signs, and how such texts are found.

    Args:
        accents: Accents that stand alone, as bounds of ranges of code points,
            `[start, end, start, ...]`.
        apart: Signs that NFKC writes as letters or digits: each becomes a
            word, or several.
        letters_apart: The same for signs in a row, such as Roman numerals,
            which become one word.
    """

    after = (
        Rule(f"[{_SLASHES}]", "/"),  # NFKC writes fractions with U+2044
        Rule(rf"`|\b[{_MODIFIERS}]+|[{_MODIFIERS}]{{1,3}}\b", "'"),
        Rule(rf"{_NO_WORD_BEFORE}n\.?{_DEGREE}(\.?)", r"\1no\2 "),
        _WITHOUT_COMMAS,
    )
    """Rules that are applied in this order, after NFKC and case folding."""

    def __init__(
        self,
        accents: Sequence[int],
        apart: Sequence[int],
        letters_apart: Sequence[int],
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
                rf"{_NO_WORD_BEFORE}([Nn]\.?)[{_RAISED_O}]",
                rf"\1\2{_DEGREE}",
            ),
            Rule(
                f"[{IGNORED_MARKS}{_ZERO_WIDTH_SPACE}]"
                # Marks in canonical decompositions of Greek accents.
                f"|[{classes[0]}][\u0300\u0301\u0342]*",
                " ",
            ),
            # A subscript after a letter belongs to the word: CO₂.
            Rule(
                f"({'|'.join(signs)})|([0-9])({_SUBSCRIPT})",
                rf"\2{_ZERO_WIDTH_SPACE}\1\3{_ZERO_WIDTH_SPACE}",
            ),
            Rule(f"{_ZERO_WIDTH_SPACE}([{_TYPED_SIGNS}])", r"\1"),
            # A superscript after a sign is a footnote, unless of a fraction.
            Rule(
                f"([{_TYPED_SIGNS}]){_ZERO_WIDTH_SPACE}"
                f"([^{_RAISED}]|[{_RAISED}]+\u2044)",
                r"\1\2",
            ),
            Rule(_ZERO_WIDTH_SPACE, " "),
        )
        """Rules that are applied in this order, before NFKC."""
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
        """Regular expression of texts that no rule changes; it matches a whole
        text. Invalid UTF-8 does not match."""
        self._sign = re.compile(
            f"[{all_signs}]|[{_ALL_COMMAS}][^{_AFTER_COMMAS}]"
        )
        self._before = _compiled(self.before)
        self._after = _compiled(self.after)

    def apply_before(self, text: str) -> str:
        """Applies the rules before NFKC."""
        return _applied(self._before, text)

    def apply_after(self, text: str) -> str:
        """Applies the rules after NFKC and case folding."""
        return _applied(self._after, text)

    def are_in(self, text: str) -> bool:
        """Returns whether a rule may change a text."""
        return bool(self._sign.search(text))


PLAIN = r"(?:[\x00-+\--_a-\x7f]|,+[ A-Za-z])*,?"
"""Regular expression of ASCII texts that no rule changes; it matches a whole
text. Most texts match, and skip all tables of Unicode."""


def _characters(bounds: Sequence[int]) -> str:
    """Writes ranges `[start, end, start, ...]` as a class of characters."""
    return "".join(
        f"{chr(start)}-{chr(end - 1)}"
        for start, end in zip(bounds[::2], bounds[1::2], strict=True)
    )


def _compiled(rules: Iterable[Rule]) -> list[tuple[re.Pattern[str], str]]:
    # RE2's \b knows ASCII only.
    return [(re.compile(rule.pattern, re.ASCII), rule[1]) for rule in rules]


def _applied(rules: list[tuple[re.Pattern[str], str]], text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text

"""Writes the tables of `lstm_dssm_client/unicode_tables.py`.

The tables record how TF.Text changes the characters of Unicode. Run the program
again for a new TF.Text, which may have a newer Unicode.

Example:
  python release/unicode_tables.py lstm_dssm_client/unicode_tables.py
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

from lstm_dssm_client.words import NAMED, ORDINALS

POINTS = [
    chr(point)
    for point in range(sys.maxunicode + 1)
    if not 0xD800 <= point < 0xE000
]
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by `unicodedata`, not by a table


def tables() -> dict[str, Any]:
    """Returns the tables, which `lstm_dssm_client.words` describes."""
    canonical = _normalized(POINTS, "NFD")
    compatible = _normalized(POINTS, "NFKC")
    # Case is folded after NFKC, so only characters that NFKC keeps are folded.
    stable = [c for c, nfkc in compatible.items() if c == nfkc]
    folded = {
        char: text
        for char, text in _normalized(stable, "NFD", fold=True).items()
        if text != canonical[char]
    }
    return {
        "compatible": _changed(_normalized(POINTS, "NFKD")),
        "folded": {char: text for char, text in folded.items() if text},
        "ignored": _bounds(char for char, text in folded.items() if not text),
        "order": _marks_in_order(),
        "composed": _pairs(_changed(canonical)),
        "letters": _bounds(_matching(r"\pL")),
        "alphanumeric": _bounds(_matching(r"[\pL\pN\pM]")),
        "signs": {
            rule: _bounds(sorted(chars))
            for rule, chars in _signs(_changed(compatible)).items()
        },
    }


def _signs(
    compatible: Mapping[str, str],  # character that NFKC changes -> NFKC form
) -> dict[str, set[str]]:
    """Returns name of an argument of `SignRules` -> characters."""
    general = {name: set(_matching(rf"\p{{{name}}}")) for name in "LMNPSZ"}
    decimal = set(_matching(r"\p{Nd}"))
    letter_numbers = set(_matching(r"\p{Nl}"))
    ideographs = set(_matching(r"\p{Han}"))
    named = set(_matching(f"[{NAMED}]"))
    result: dict[str, set[str]] = {
        "accents": set(), "apart": set(ORDINALS), "letters_apart": set(),
    }  # fmt: skip
    for char, text in compatible.items():
        categories = {
            name for name in general if not general[name].isdisjoint(text)
        }
        if char in named:  # `lstm_dssm_client.words` has a rule for it
            continue
        if categories == {"M", "Z"}:
            result["accents"].add(char)
        elif categories.isdisjoint("LN"):
            continue  # the character is never part of a word
        elif char in general["L"]:
            if "Z" in categories:  # NFKC turns it into several words
                result["apart"].add(char)
        elif char in general["N"] | general["S"]:
            is_radical = char in ideographs and char in general["S"]
            if char in decimal or is_radical:
                continue  # texts use the character as a digit or ideograph
            is_letter = char in letter_numbers or (
                len(text) == 1 and text.isascii() and text.isalpha()
            )
            result["letters_apart" if is_letter else "apart"].add(char)
    return result


def _normalized(
    texts: Iterable[str], form: str, fold: bool = False
) -> dict[str, str]:
    """Returns text -> normal form; with `fold`, case is folded first."""
    distinct = list(dict.fromkeys(texts))
    tensor = tf.constant([text.encode() for text in distinct])
    if fold:
        tensor = tf_text.case_fold_utf8(tensor)
    results = tf_text.normalize_utf8(tensor, form).numpy()
    return {
        text: result.decode()
        for text, result in zip(distinct, results, strict=True)
    }


def _changed(results: dict[str, str]) -> dict[str, str]:
    return {
        char: text
        for char, text in results.items()
        if text != char and ord(char) not in HANGUL
    }


def _marks_in_order() -> list[str]:
    """Returns the marks of each combining class, the lowest class first."""

    # NFD swaps two marks if the first has the higher class.
    def swapped(pairs: Sequence[str]) -> list[str]:
        normal = _normalized(pairs, "NFD")
        return [pair for pair in pairs if normal[pair] == pair[::-1] != pair]

    # U+0345 has the highest class, and U+0334 the lowest. So each mark swaps
    # with U+0345 or with U+0334.
    marks = {pair[1] for pair in swapped([f"\u0345{c}" for c in POINTS])}
    marks |= {pair[0] for pair in swapped([f"{c}\u0334" for c in POINTS])}
    classes = defaultdict(str)
    for mark in sorted(marks):
        below = len(swapped([mark + other for other in marks]))
        classes[below] += mark
    return [classes[below] for below in sorted(classes)]


def _pairs(canonical: dict[str, str]) -> dict[str, str]:
    """Returns the character that NFC makes of each pair: pair -> character."""
    composites = [
        char
        for char, text in _normalized(canonical, "NFC").items()
        if text == char and len(canonical[char]) > 1
    ]
    firsts = _normalized([canonical[char][:-1] for char in composites], "NFC")
    pairs = {
        firsts[canonical[char][:-1]] + canonical[char][-1]: char
        for char in composites
    }
    assert _normalized(pairs, "NFC") == pairs
    assert all(len(pair) == 2 for pair in pairs)
    return pairs


def _matching(pattern: str) -> Iterable[str]:
    encoded = tf.constant([char.encode() for char in POINTS])
    matches = tf.strings.regex_full_match(encoded, pattern).numpy()
    return (c for c, match in zip(POINTS, matches, strict=True) if match)


def _bounds(chars: Iterable[str]) -> list[int]:
    """Returns ranges of ascending characters: start, end (exclusive), ..."""
    result: list[int] = []
    for point in map(ord, chars):
        if result and result[-1] == point:
            result[-1] += 1
        else:
            result += [point, point + 1]
    return result


if __name__ == "__main__":
    lines = [
        f'"{name}": {json.dumps(table)}' for name, table in tables().items()
    ]
    head = '"""Unicode tables of TF.Text, by release/unicode_tables.py."""'
    table = "{\n" + ",\n".join(lines) + "\n}"
    text = f'{head}\n\nTABLES = r"""{table}"""\n'
    Path(sys.argv[1]).write_text(text, encoding="utf-8")

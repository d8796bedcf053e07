"""Writes `lstm_dssm_client/unicode.json`: what TF.Text does with Unicode.

TF.Text and RE2, which the graphs run, are asked about every code point. A
later TF.Text may know a later Unicode; then run it again.

Example:
  python release/unicode_tables.py lstm_dssm_client/unicode.json
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

POINTS = [
    chr(point)
    for point in range(sys.maxunicode + 1)
    if not 0xD800 <= point < 0xE000
]
HANGUL = range(0xAC00, 0xD7A4)  # syllables, which all Pythons know


def main(path: Path) -> None:
    """Writes the file."""
    path.write_text(json.dumps(tables(), indent=0) + "\n", encoding="utf-8")


def tables() -> dict[str, Any]:
    """Returns the tables; `lstm_dssm_client.words` says what they are."""
    compatible = changed(_normalized("NFKD"), POINTS)
    canonical = changed(_normalized("NFD"), POINTS)
    composed = dict(zip(POINTS, _normalized("NFKC")(POINTS), strict=True))
    # Folding sees texts in NFKC only.
    stable = [
        char
        for char in POINTS
        if composed[char] == char and ord(char) not in HANGUL
    ]
    folded = {
        char: text
        for char, text in _after(tf_text.case_fold_utf8, "NFD")(stable)
        if text != canonical.get(char, char)
    }
    return {
        "compatible": compatible,
        "folded": {char: text for char, text in folded.items() if text},
        "ignored": bounds(char for char, text in folded.items() if not text),
        "order": marks_in_order(),
        "composed": pairs(canonical),
        "letters": bounds(_matching(r"\pL")),
        "alphanumeric": bounds(_matching(r"[\pL\pN\pM]")),
    }


Texts = Callable[[Sequence[str]], list[str]]


def _apply(function: Callable[[tf.Tensor], tf.Tensor]) -> Texts:
    def apply(texts: Sequence[str]) -> list[str]:
        encoded = tf.constant([text.encode() for text in texts])
        return [text.decode() for text in function(encoded).numpy()]

    return apply


def _normalized(form: str) -> Texts:
    return _apply(lambda texts: tf_text.normalize_utf8(texts, form))


def _after(
    function: Callable[[tf.Tensor], tf.Tensor], form: str
) -> Callable[[Sequence[str]], Iterable[tuple[str, str]]]:
    results = _apply(
        lambda texts: tf_text.normalize_utf8(function(texts), form)
    )
    return lambda texts: zip(texts, results(texts), strict=True)


def changed(function: Texts, texts: Sequence[str]) -> dict[str, str]:
    """Returns what a function changes, but for Hangul's syllables."""
    return {
        text: result
        for text, result in zip(texts, function(texts), strict=True)
        if result != text and ord(text) not in HANGUL
    }


def marks_in_order() -> list[str]:
    """Returns the marks of each combining class, the lowest class first.

    Two marks change places if the class of the first is above that of the
    second. U+0345 has the highest class, and U+0334 the lowest.
    """
    decompose = _normalized("NFD")

    def swapped(pairs: Sequence[str]) -> list[bool]:
        return [
            text == pair[::-1] != pair
            for pair, text in zip(pairs, decompose(pairs), strict=True)
        ]

    def of_points(pair: Callable[[str], str]) -> set[str]:
        moves = swapped([pair(char) for char in POINTS])
        return {c for c, move in zip(POINTS, moves, strict=True) if move}

    marks = of_points("\u0345{}".format) | of_points("{}\u0334".format)
    below = Counter(dict.fromkeys(marks, 0))
    for mark in marks:
        others = [mark + other for other in marks]
        below[mark] = sum(swapped(others))
    classes: dict[int, str] = {}
    for mark in sorted(marks):
        classes[below[mark]] = classes.get(below[mark], "") + mark
    return [classes[count] for count in sorted(classes)]


def pairs(canonical: dict[str, str]) -> dict[str, str]:
    """Returns the two characters that NFC composes -> the composed one."""
    compose = _normalized("NFC")
    chars = [*canonical]
    kept = [
        char
        for char, text in zip(chars, compose(chars), strict=True)
        if text == char and len(canonical[char]) > 1
    ]
    firsts = compose([canonical[char][:-1] for char in kept])
    found = {
        first + canonical[char][-1]: char
        for char, first in zip(kept, firsts, strict=True)
    }
    assert all(len(pair) == 2 for pair in found)
    assert compose([*found]) == [*found.values()]
    return found


def _matching(pattern: str) -> list[str]:
    encoded = tf.constant([char.encode() for char in POINTS])
    matches = tf.strings.regex_full_match(encoded, pattern).numpy()
    return [char for char, found in zip(POINTS, matches, strict=True) if found]


def bounds(chars: Iterable[str]) -> list[int]:
    """Returns the ranges of ascending characters: start, end, start, ..."""
    result: list[int] = []
    for point in map(ord, chars):
        if result and result[-1] == point:
            result[-1] += 1
        else:
            result += [point, point + 1]
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1]))

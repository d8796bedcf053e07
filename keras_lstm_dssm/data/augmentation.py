"""Augmentation: misspelled queries, and synthetic pairs made from titles."""

import random
from collections.abc import Iterable, Iterator, Mapping

from keras_lstm_dssm.data.click_lines import Pair

LEAST_LETTERS = 3
"""Shorter words stay: one edit would leave nothing of them."""

_KEYS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


def misspell(text: str, rate: float, seed: int = 0) -> str:
    """Mistypes words of a text.

    Each word of three and more letters is hit with probability `rate`, and
    then gets one edit, each kind as likely: a letter left out, a neighbouring
    key hit as well, a neighbouring key (US QWERTY) hit instead, or two
    letters exchanged. Where a word has no place for an edit (no letter with
    neighbours, or equal letters only), a letter is left out.

    The errors are a function of seed and text alone, not of other queries or
    their order, and those of a lower rate are among those of a higher one.

    Args:
        text: The query.
        rate: Probability for each word, from 0 to 1.
        seed: Another seed gives other errors.

    Returns:
        The text, its words separated by single spaces.

    Example:
    >>> misspell("interior wood glue", 1.0)
    'inte5ior wo0od gflue'
    """
    words = []
    for place, word in enumerate(text.split()):
        draw = random.Random(f"{seed}\t{place}\t{text}")
        hit = draw.random() < rate and len(word) >= LEAST_LETTERS
        words.append(_edit(word, draw) if hit else word)
    return " ".join(words)


def _edit(word: str, draw: random.Random) -> str:
    near = [i for i, letter in enumerate(word) if letter.lower() in NEIGHBOURS]
    places = {
        "delete": list(range(len(word))),
        "insert": near,
        "substitute": near,
        "transpose": [
            i for i in range(len(word) - 1) if word[i] != word[i + 1]
        ],
    }
    kind = draw.choice(list(places))
    if not places[kind]:
        kind = "delete"
    at = draw.choice(places[kind])
    before, letter, after = word[:at], word[at], word[at + 1 :]
    if kind == "delete":
        return before + after
    if kind == "transpose":
        return before + after[0] + letter + after[1:]
    struck = draw.choice(NEIGHBOURS[letter.lower()])
    return before + (letter if kind == "insert" else "") + struck + after


def _neighbours() -> Mapping[str, str]:
    """Key -> the keys that touch it; each row stands half a key further."""
    place = {
        key: (row, column)
        for row, keys in enumerate(_KEYS)
        for column, key in enumerate(keys)
    }
    steps = {(0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0)}
    return {
        key: "".join(
            other
            for other, (r, c) in place.items()
            if (r - row, c - column) in steps
        )
        for key, (row, column) in place.items()
    }


NEIGHBOURS = _neighbours()
"""Letter or digit -> the keys around it, on a US QWERTY keyboard."""


_LONGEST = 4  # words, as queries have


def title_pairs(
    titles: Iterable[str],
    each: int = 1,
    seed: int = 0,
    misspelled: float = 0.2,
) -> Iterator[Pair]:
    """Yields some words of a title as a query, and the title as its click.

    Trained on beside the clicks, they teach the words of titles that nobody
    has clicked yet: which titles hold them, and which of a title's words stand
    for the others.

    One to four of the words are drawn, never all, and keep their order; some
    are then misspelled, as people do. Titles of a single word are left out.
    What is drawn is a function of the seed and the titles in their order.

    Args:
        titles: The titles.
        each: Pairs for each title.
        seed: Any int.
        misspelled: Probability for each word; see `misspell`.

    Example:
    >>> list(title_pairs(["rubber garden hose"], misspelled=0.0))
    [Pair(query='rubber garden', document='rubber garden hose')]
    """
    draw = random.Random(seed)
    for title in titles:
        words = title.split()
        if len(words) < 2:
            continue
        for _ in range(each):
            count = draw.randint(1, min(_LONGEST, len(words) - 1))
            places = sorted(draw.sample(range(len(words)), count))
            query = " ".join(words[i] for i in places)
            # A seed of its own each time: the same words, other errors.
            errors = draw.getrandbits(32)
            yield Pair(misspell(query, misspelled, errors), title)

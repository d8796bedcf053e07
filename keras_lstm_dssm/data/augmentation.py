"""Augmentation: misspelled queries, and synthetic pairs made from titles."""

import random
from collections.abc import Iterable, Iterator, Mapping

from keras_lstm_dssm.data.click_log import Pair
from keras_lstm_dssm.errors import check_lists

LEAST_LETTERS = 3
"""Words with fewer letters are not misspelled."""

_KEYS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


def misspell(text: str, rate: float, seed: int = 0) -> str:
    """Misspells each word of three or more letters with probability `rate`.

    With the same seed, words that are misspelled at a lower rate are misspelled
    in the same way at a higher rate.
    """
    words = []
    for index, word in enumerate(text.split()):
        draw = random.Random(f"{seed}\t{index}\t{text}")
        misspelled = draw.random() < rate and len(word) >= LEAST_LETTERS
        words.append(_edit(word, draw) if misspelled else word)
    return " ".join(words)


def _edit(word: str, draw: random.Random) -> str:
    with_neighbours = [
        i for i, letter in enumerate(word) if letter.lower() in KEYS_AROUND
    ]
    positions = {
        "delete": list(range(len(word))),
        "insert": with_neighbours,
        "substitute": with_neighbours,
        "transpose": [
            i for i in range(len(word) - 1) if word[i] != word[i + 1]
        ],
    }
    kind = draw.choice(list(positions))
    if not positions[kind]:
        kind = "delete"
    i = draw.choice(positions[kind])
    before, letter, after = word[:i], word[i], word[i + 1 :]
    if kind == "delete":
        return before + after
    if kind == "transpose":
        return before + after[0] + letter + after[1:]
    key = draw.choice(KEYS_AROUND[letter.lower()])
    return before + (letter if kind == "insert" else "") + key + after


def _neighbours() -> Mapping[str, str]:
    """Maps each key to the keys around it on a US QWERTY keyboard."""
    positions = {
        key: (row, column)
        for row, keys in enumerate(_KEYS)
        for column, key in enumerate(keys)
    }
    # Each row of keys is half a key to the right of the row above.
    offsets = {(0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0)}
    return {
        key: "".join(
            other
            for other, (r, c) in positions.items()
            if (r - row, c - column) in offsets
        )
        for key, (row, column) in positions.items()
    }


KEYS_AROUND = _neighbours()
"""Letter or digit -> the keys around it."""


_MOST_WORDS = 4  # largest number of words in a query


def title_pairs(
    titles: Iterable[str], each: int = 1, seed: int = 0, misspelled: float = 0.2
) -> Iterator[Pair]:
    """Yields synthetic pairs, whose queries are made from words of the titles.

    A query has one to four words of the title, in the title's order, but never
    all words of the title. Some words are misspelled. Titles of a single word
    are left out. The pairs depend on the seed and the order of the titles.

    Args:
        titles: Titles of documents.
        each: The number of pairs for each title. Default 1.
        seed: Any int; another seed gives other pairs. Default 0.
        misspelled: Probability of an error in a word of three or more letters.
            Default 0.2.

    Example:
    >>> list(title_pairs(["rubber garden hose"], misspelled=0.0))
    [Pair(query='rubber garden', document='rubber garden hose')]
    """
    check_lists(titles=titles)
    draw = random.Random(seed)
    for title in titles:
        words = title.split()
        if len(words) < 2:
            continue
        for _ in range(each):
            count = draw.randint(1, min(_MOST_WORDS, len(words) - 1))
            positions = sorted(draw.sample(range(len(words)), count))
            query = " ".join(words[i] for i in positions)
            # Each pair has its own seed: equal queries get different errors.
            error_seed = draw.getrandbits(32)
            yield Pair(misspell(query, misspelled, error_seed), title)

"""The overlap features, written again in plain Python, pair by pair."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_lstm_dssm.text import LETTERS, normalize
from tests.reference import stem

K1, B, MAX_WORDS = 1.2, 0.75, 64


def words_of(text: str) -> list[str]:
    cut = text.encode("utf-8", "surrogateescape")[: 64 * MAX_WORDS]
    (normal,) = normalize([cut], "alphanumeric")
    return [] if normal == "#" else normal.split(" ")


def parts_of(text: str) -> list[str]:
    parts = []
    for word in words_of(text):
        part = word[0]
        for before, letter in zip(word, word[1:], strict=False):
            kinds = {unicodedata.category(c)[0] for c in (before, letter)}
            if kinds == {"L", "N"}:
                parts.append(part)
                part = ""
            part += letter
        parts.append(part)
    return [stem(part) for part in parts[:MAX_WORDS]]


def trigrams_of(word: str) -> list[str]:
    """Returns the letter trigrams of a word; punctuation counts as letters."""
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]


class PlainOverlap:
    """Computes the features of one pair after another."""

    def __init__(self, titles: Sequence[str]) -> None:
        titles = list(dict.fromkeys(titles))
        lists = [parts_of(title) for title in titles]
        self.count = Counter(word for words in lists for word in set(words))
        self.titles = len(titles)
        self.mean = sum(map(len, lists)) / len(lists)

    def idf(self, word: str) -> float:
        df = self.count[word]
        return float(np.log1p((self.titles - df + 0.5) / (df + 0.5)))

    def __call__(self, query: str, title: str) -> dict[str, float]:
        asked, have = parts_of(query), parts_of(title)
        words, title_words = words_of(query), words_of(title)
        words, title_words = words[:MAX_WORDS], title_words[:MAX_WORDS]
        idf = [self.idf(word) for word in asked]
        shared = [word in have for word in asked]
        norm = K1 * (1 - B + B * len(have) / self.mean)
        of_words = [trigrams_of(word) for word in words]
        of_title = [t for word in title_words for t in trigrams_of(word)]
        of_query = [t for trigrams in of_words for t in trigrams]
        spelling = [
            share([t in of_title for t in trigrams]) for trigrams in of_words
        ]
        heads = [word[:4] for word in have]
        neighbours = list(zip(have, have[1:], strict=False))
        numbers = [
            (word, hit)
            for word, hit in zip(asked, shared, strict=True)
            if all(unicodedata.category(c)[0] == "N" for c in word)
        ]
        places = [i for i, word in enumerate(have) if word in asked]
        return {
            "bm25": sum(
                w * (f := have.count(word)) / (f + norm)
                for word, w in zip(asked, idf, strict=True)
            ),
            "idf_share": sum(np.array(idf) * shared) / max(sum(idf), 1e-9),
            "stem_share": share(shared),
            "word_share": share([word in title_words for word in words]),
            "prefix_share": share([word[:4] in heads for word in asked]),
            "trigram_share": share([t in of_title for t in of_query]),
            "title_trigram_share": share([t in of_query for t in of_title]),
            "title_stem_share": share([word in asked for word in have]),
            "query_length": len(asked),
            "title_length": len(have),
            "rarest_missing": max(
                (w for w, s in zip(idf, shared, strict=True) if not s),
                default=0,
            ),
            "commonest_shared": min(
                (w for w, s in zip(idf, shared, strict=True) if s), default=0
            ),
            "spelling": share(spelling),
            "worst_spelling": min(spelling, default=0),
            "longest_run": longest_run(asked, have),
            "neighbours": share(
                [
                    pair in neighbours
                    for pair in zip(asked, asked[1:], strict=False)
                ]
            ),
            "numbers_shared": sum(hit for _, hit in numbers),
            "numbers": len(numbers),
            "first_position": min(places, default=-1),
            "last_position": max(places, default=-1),
            "first_shared": float(shared[0]) if shared else 0,
            "last_shared": float(shared[-1]) if shared else 0,
        }


def share(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)


def longest_run(first: list[str], second: list[str]) -> int:
    runs = [
        size
        for size in range(len(first) + 1)
        for start in range(len(first) - size + 1)
        for other in range(len(second) - size + 1)
        if first[start : start + size] == second[other : other + size]
    ]
    return max(runs)


assert set("#0a") < set(LETTERS)

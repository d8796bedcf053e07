"""Writes texts for a teacher, one a line: no query of dev or test.

Titles, training queries, sentences, docstrings of the installed packages,
spans of them, and the same words in another order.

    python corpus.py DATA texts.txt

DATA has the folders bestbuy, homedepot, wikiqa, squad, trecqa and bbc.
"""

import ast
import gzip
import json
import random
import re
import site
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from keras_lstm_dssm.data.sources import open_collection

DRAW = random.Random(7)
SETS = ("wikiqa", "bestbuy", "homedepot", "trecqa", "squad")


def key(text: str) -> str:
    """Letters and digits, by which texts are compared with queries."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def spans(texts: Iterable[str], each: int, most: int = 12) -> Iterator[str]:
    """Draws runs of words of each text, of three words or more."""
    for text in texts:
        words = text.split()
        for _ in range(each if len(words) > 4 else 0):
            length = DRAW.randint(3, min(most, len(words) - 1))
            first = DRAW.randint(0, len(words) - length)
            yield " ".join(words[first : first + length])


def shuffled(texts: Iterable[str]) -> Iterator[str]:
    """Puts the words of each text into another order."""
    for text in texts:
        words = text.split()
        yield " ".join(DRAW.sample(words, len(words)))


def swapped(texts: Iterable[str]) -> Iterator[str]:
    """Lets two neighbouring runs of words of each text change places."""
    for text in texts:
        words = text.split()
        if len(words) > 3:
            a, b, c = sorted(DRAW.sample(range(len(words) + 1), 3))
            moved = words[:a] + words[b:c] + words[a:b] + words[c:]
            yield " ".join(moved)


def docstrings() -> Iterator[str]:
    """The first sentence of each docstring of the installed packages."""
    for folder in site.getsitepackages():
        for path in sorted(Path(folder).rglob("*.py")):
            try:
                tree = ast.parse(path.read_text("utf-8"))
            except (SyntaxError, ValueError, OSError):
                continue
            for node in ast.walk(tree):
                kinds = ast.FunctionDef | ast.ClassDef | ast.Module
                if isinstance(node, kinds) and (
                    text := ast.get_docstring(node)
                ):
                    first = " ".join(text.split("\n\n")[0].split())
                    yield re.split(r"(?<=[.!?])\s", first)[0]


def main(data: Path, output: Path) -> None:
    """Writes the most valuable texts first."""
    banned: set[str] = set()
    queries: list[str] = []
    titles: dict[str, list[str]] = {}
    for name in (*SETS, "api"):
        spec = "api" if name == "api" else str(data / name)
        collection = open_collection(spec)
        for split in ("dev", "test"):
            found = collection.qrels(split)
            banned |= {key(collection.queries[q]) for q in found}
        train = collection.qrels("train")
        queries += [collection.queries[q] for q in train]
        known = set(collection.documents)
        if name in ("squad", "trecqa"):
            known = {d for grades in train.values() for d in grades}
        titles[name] = [collection.documents[d] for d in sorted(known)]
    sentences = titles["wikiqa"] + titles["squad"]
    with gzip.open(data / "bbc" / "documents.jsonl.gz", "rt") as file:
        articles = [json.loads(line) for line in file]
    news = [
        sentence
        for article in articles
        if article["split"] == "train"
        for sentence in article["sentences"]
    ]
    texts = [*queries, *(text for name in titles for text in titles[name])]
    words = Counter(word for text in texts for word in key(text).split())
    texts += [word for word, _ in words.most_common(60_000)]
    texts += [*shuffled(queries), *swapped(queries)]
    texts += [*spans(sentences, 5), *shuffled(spans(sentences, 1, 10))]
    texts += [*shuffled(sentences), *swapped(sentences)]
    texts += [*news, *spans(news, 3), *swapped(news)]
    texts += [*docstrings(), *spans(titles["homedepot"], 4, 8)]
    clean = (" ".join(text.split())[:400] for text in texts)
    kept = {t.lower(): t for t in clean if key(t) and key(t) not in banned}
    output.write_text("\n".join(kept.values()) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

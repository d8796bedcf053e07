"""Statistics of data: digest, size, scripts, lengths of texts, clicks."""

import itertools
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.data.batches import training_batches
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.prepare.folder import LOGS
from keras_lstm_dssm.data.sources import (
    is_collection,
    open_collection,
    open_documents,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.fingerprints import files_hash
from keras_lstm_dssm.plain_files import cleaned
from keras_lstm_dssm.settings.training import API_DOCUMENTS, parts_of
from keras_lstm_dssm.text.word_hashing import LETTERS, normalize
from lstm_dssm_client.words import split_words

_CLICKS, _DOCUMENTS = 10_000, 1_000  # maximum sizes of samples
_PATTERNS = ("*.jsonl", "*.jsonl.gz", "*.tsv", "*.tsv.gz", "qrels/*.tsv*")
"""Names of the files in a BEIR folder or in a folder of documents."""


def data_statistics(spec: str) -> dict[str, Any]:
    """Returns the number of files, the bytes and the hash of a data set."""
    try:
        paths = _files(spec)
        size = sum(path.stat().st_size for path in paths)
        digest = files_hash(paths)
    except (InputError, OSError):  # perhaps the data were moved or deleted
        return {"spec": spec}
    return {"spec": spec, "files": len(paths), "bytes": size, "sha256": digest}


def _files(spec: str) -> list[Path]:
    paths: list[Path] = []
    for part in parts_of(spec):
        if part == API_DOCUMENTS:
            folder = open_documents(part).folder
        elif os.path.isdir(part):
            folder = part
        elif is_collection(part):
            folder = open_collection(part).folder
        else:
            paths += map(Path, ClickLog(part).paths)
            continue
        files = {path for form in _PATTERNS for path in Path(folder).glob(form)}
        paths += sorted(path for path in files if path.is_file())
    return paths


def text_statistics(log: ClickLog | None) -> dict[str, Any]:
    """Returns the scripts and lengths of texts in the first 10,000 clicks.

    Lengths are [median, 99th percentile] of the numbers of words.
    """
    pairs = [] if log is None else list(itertools.islice(log, _CLICKS))
    if not pairs:
        return {}
    queries, titles = zip(*pairs, strict=True)
    return {
        "sample": len(pairs),
        "scripts": scripts([*queries, *titles]),
        "query_words": _lengths(queries),
        "title_words": _lengths(titles),
    }


def document_statistics(
    spec: str, max_bad_lines: int = 0, max_sentences: int | None = None
) -> dict[str, Any]:
    """Returns scripts and lengths of the first 1,000 training documents.

    Lengths are [median, 99th percentile] of the numbers of sentences in a
    document (`sentences`) and of words in a sentence (`sentence_words`).
    """
    try:
        folder = open_documents(spec, max_bad_lines, max_sentences)
        sample = list(itertools.islice(folder.of("train"), _DOCUMENTS))
    except (InputError, OSError):  # perhaps the data were moved or deleted
        return {}
    if not sample:
        return {}
    sentences = [text for document in sample for text in document.sentences]
    counts = [len(document.sentences) for document in sample]
    return {
        "documents": len(sample),
        "scripts": scripts(sentences),
        "sentences": _percentiles(counts),
        "sentence_words": _lengths(sentences),
    }


def scripts(texts: Iterable[str]) -> dict[str, float]:
    """Returns each script's share of the letters, such as {"LATIN": 0.9}."""
    letters = Counter(char for text in texts for char in text)
    counts: Counter[str] = Counter()
    for char, number in letters.items():
        if char.isalpha():  # a letter's Unicode name begins with its script
            counts[unicodedata.name(char, "UNNAMED").split()[0]] += number
    total = counts.total()
    return {name: round(n / total, 3) for name, n in counts.most_common()}


def _lengths(texts: Iterable[str]) -> list[int]:
    return _percentiles([len(split_words(text, "space")) for text in texts])


def _percentiles(numbers: list[int]) -> list[int]:
    return [int(number) for number in np.percentile(numbers, [50, 99])]


_LEAST_SHARE = 0.01  # `alphabet_warning` ignores a smaller share of words


def alphabet_warning(log: ClickLog) -> str | None:
    """Returns a warning if many words are mostly in letters other than a-z."""
    batches = training_batches(log, _CLICKS, epochs=1, seed=0)
    queries, titles, *_ = next(iter(batches))  # `_`: weights, if any
    texts = [*queries.numpy().tolist(), *titles.numpy().tolist()]
    words = Counter(word for text in normalize(texts) for word in text.split())
    outside = Counter({w: n for w, n in words.items() if _is_outside(w)})
    share = outside.total() / words.total()
    if share < _LEAST_SHARE:
        return None
    examples = ", ".join(repr(word) for word, _ in outside.most_common(3))
    return (
        f"{share:.0%} of the words are in letters other than a-z (such as"
        f" {examples}), which encoders without oov_buckets cannot distinguish:"
        " set oov_buckets=8192 (--oov_buckets=8192)"
    )


def _is_outside(word: str) -> bool:
    letters = [letter in LETTERS for letter in word if letter.isalpha()]
    return 2 * sum(letters) < len(letters)


_AT_ONCE = 1 << 16


def query_clicks(collection: Collection, split: str) -> dict[str, float]:
    """Returns query id -> number of clicks, or {} if clicks are unknown.

    If the clicks come from the folder's log, each click counts with its weight.
    """
    qrels = collection.qrels(split)
    if collection.has_click_counts:
        return {q: float(sum(judged.values())) for q, judged in qrels.items()}
    logs = sorted(Path(collection.folder, LOGS).glob("[0-9]*.parquet"))
    if not logs:
        return {}
    import duckdb

    clicks = {collection.queries[query].casefold(): 0.0 for query in qrels}
    rows = duckdb.execute(
        "SELECT q, sum(weight) FROM read_parquet($1) WHERE weight > 0"
        " AND q IS NOT NULL GROUP BY q",
        [list(map(str, logs))],
    )
    while block := rows.fetchmany(_AT_ONCE):
        for text, weight in block:
            key = cleaned(text).casefold()
            if key in clicks:
                clicks[key] += float(weight)
    return {q: clicks[collection.queries[q].casefold()] for q in qrels}

"""API search: a collection made from the docstrings of installed packages.

The query is the first sentence of the docstring of a public function, class or
method; the clicked title is its name in words: "Convert the input to an array,
checking for NaNs or Infs" -> "numpy asarray chkfinite". There are about 17,000
pairs; the number depends on the versions of Python and of the packages.
"""

import hashlib
import json
import os
import platform
import sys
from importlib.metadata import Distribution

from keras_lstm_dssm.data.api_names import public_names, title
from keras_lstm_dssm.data.api_sentences import first_sentence
from keras_lstm_dssm.data.api_sources import distributions, read_modules
from keras_lstm_dssm.data.beir import Collection
from keras_lstm_dssm.data.click_lines import Pair
from keras_lstm_dssm.data.collection_writer import write_collection
from keras_lstm_dssm.data.judged_queries import SPLITS
from keras_lstm_dssm.data.split import splits_of
from keras_lstm_dssm.files import cache_folder
from keras_lstm_dssm.text import normalize

CORPUS_FORMAT = 4  # increment when the same packages give another corpus
MAX_TITLES = 5  # a sentence with more names is boilerplate
TEST_PERCENT, DEV_PERCENT = 9, 3


def build_api_search(
    folder: str | os.PathLike[str] | None = None, progress: bool = False
) -> Collection:
    """Builds the API-search collection, or opens it if it was built before.

    The docstrings are those of the Python standard library and of the
    packages that this one requires; the result depends on their versions
    only.

    Args:
        folder: The folder of the collection. By default a folder named after
            these versions in `$KERAS_LSTM_DSSM_CACHE`, or in
            `~/.cache/keras_lstm_dssm`.
        progress: Whether to print to standard error when it is built.
            Default `False`.

    Returns:
        The collection: split by query (9 % test, 3 % dev), with every title
        in the corpus and grades of 1.

    Raises:
        InputError: This package is not installed.

    Example:
        >>> build_api_search().splits  # doctest: +SKIP
        ('train', 'dev', 'test')
    """
    packages = distributions()
    if folder is None:
        folder = os.path.join(
            cache_folder(), f"api-{fingerprint(packages, CORPUS_FORMAT)}"
        )
    if os.path.isdir(folder):
        return Collection(folder)
    if progress:
        print("Reading docstrings (once, ~15 seconds) ...", file=sys.stderr)
    return _write(folder, _titles_by_query(packages))


def _titles_by_query(packages: list[Distribution]) -> dict[str, list[str]]:
    titles: dict[str, set[str]] = {}
    spelling: dict[str, str] = {}
    for definition, name in public_names(read_modules(packages)).items():
        sentence = first_sentence(definition.doc)
        if sentence:
            key = sentence.casefold()
            titles.setdefault(key, set()).add(title(name))
            spelling[key] = min(sentence, spelling.get(key, sentence))
    return {
        spelling[key]: sorted(titles[key])
        for key in sorted(titles)
        if len(titles[key]) <= MAX_TITLES
    }


def _write(
    folder: str | os.PathLike[str], titles_by_query: dict[str, list[str]]
) -> Collection:
    corpus = sorted({t for titles in titles_by_query.values() for t in titles})
    ids = {title: f"d{number}" for number, title in enumerate(corpus, 1)}
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, dict[str, int]]] = {s: {} for s in SPLITS}
    clicks: list[Pair] = []
    # The published results split queries with their punctuation. Queries that
    # differ in punctuation only are in the split of the first of them.
    first: dict[str, str] = {}
    written = [
        first.setdefault(words, query)
        for query, words in zip(
            titles_by_query,
            normalize(titles_by_query, "alphanumeric"),
            strict=True,
        )
    ]
    splits = splits_of(written, DEV_PERCENT, TEST_PERCENT, "space")
    for number, (query, titles) in enumerate(titles_by_query.items(), 1):
        split = splits[number - 1]
        queries[f"q{number}"] = query
        qrels[split][f"q{number}"] = {ids[title]: 1 for title in titles}
        if split == "train":
            clicks.extend(Pair(query, title) for title in titles)
    documents = {key: title for title, key in ids.items()}
    return write_collection(folder, documents, queries, qrels, clicks)


def fingerprint(packages: list[Distribution], corpus_format: int) -> str:
    """Returns a name for the versions that a corpus depends on."""
    versions = [f"{d.metadata['Name']} {d.version}" for d in packages]
    key = json.dumps([corpus_format, platform.python_version(), *versions])
    return hashlib.sha256(key.encode()).hexdigest()[:16]

"""API search: a collection made from the docstrings of installed packages.

The query is the first sentence of a docstring, and the clicked title is the
shortest public name of the function, class or method, as words: "Convert the
input to an array, checking for NaNs or Infs" -> "numpy asarray chkfinite".
There are about 17,000 pairs.
"""

import hashlib
import heapq
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import Distribution

from keras_lstm_dssm.data.api_sources import (
    Definition,
    Module,
    distributions,
    first_sentence,
    read_modules,
)
from keras_lstm_dssm.data.click_log import Pair
from keras_lstm_dssm.data.collection import SPLITS, Collection, write_collection
from keras_lstm_dssm.data.split import splits_of
from keras_lstm_dssm.files import cache_folder, lock_folder
from keras_lstm_dssm.text.word_hashing import normalize

# Internal packages, such as `keras.src`: public packages import from them.
INTERNAL = {"src", "python", "core", "compiler", "tools", "codegen", "dtensor"}
# Module -> the name that users know.
_RENAMED = {
    "builtins": "",
    "posix": "os",
    "posixpath": "os.path",
    "_io": "io",
    "_csv": "csv",
}


def public_names(modules: Mapping[str, Module]) -> dict[Definition, str]:
    """Returns definition -> its shortest public name."""
    queue = [
        _queue_entry(_RENAMED.get(name, name), name)
        for name in modules
        if name in _RENAMED or _is_public(name)
    ]
    heapq.heapify(queue)
    seen: set[str] = set()
    names: dict[Definition, tuple[int, bool, str]] = {}
    while queue:
        *_, path, name = heapq.heappop(queue)
        if name in seen:
            continue
        seen.add(name)
        for bound_name, (source, item) in _bindings(modules, name):
            public = f"{path}.{bound_name}".lstrip(".")
            if item is None:
                # Packages make imported modules public. Other modules do not.
                if modules[name].is_package:
                    heapq.heappush(queue, _queue_entry(public, source))
                continue
            for definition in modules[source].definitions[item]:
                full_name = public + definition.name[len(item) :]
                rank = (full_name.count("."), source != name, full_name)
                names[definition] = min(rank, names.get(definition, rank))
    return {definition: rank[-1] for definition, rank in names.items()}


def title(name: str) -> str:
    """Splits a dotted name into lower-case words; removes adjacent copies."""
    spaced = re.sub(r"([a-z])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", name)
    words = re.split(r"[._\s]+", spaced.lower().strip("._"))
    distinct: list[str] = []
    for word in words:
        if distinct[-1:] != [word]:
            distinct.append(word)
    for size in (2, 3):  # "http server http server" becomes "http server"
        for i in range(len(distinct) - 2 * size, -1, -1):
            if distinct[i : i + size] == distinct[i + size : i + 2 * size]:
                del distinct[i : i + size]
    return " ".join(distinct)


def _queue_entry(path: str, name: str) -> tuple[int, bool, str, str]:
    return path.count("."), path != name, path, name


def _is_public(name: str) -> bool:
    parts = name.split(".")
    return not (
        any(part.startswith("_") for part in parts) or INTERNAL & {*parts[1:]}
    )


def _bindings(
    modules: Mapping[str, Module], name: str
) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yields public names with origins (module, item or `None` for modules)."""
    module = modules[name]
    for key in module.definitions:
        if not key.startswith("_"):
            yield key, (name, key)
    for key, (source, item) in module.imports.items():
        if not key.startswith("_"):
            origin = _resolve(modules, source, item)
            if origin and _belongs(origin[0], name):
                yield key, origin
    for source in module.stars:
        if source in modules and source != name and _belongs(source, name):
            yield from _bindings(modules, source)


def _resolve(
    modules: Mapping[str, Module], source: str, item: str | None, depth: int = 0
) -> tuple[str, str | None] | None:
    """Returns an import's origin (module, item); `None` for unknown origins."""
    if item is None:
        return (source, None) if source in modules else None
    if f"{source}.{item}" in modules and (
        source not in modules or item not in modules[source].imports
    ):
        return f"{source}.{item}", None
    module = modules.get(source)
    if module is None or depth > 8:
        return None
    if item in module.definitions:
        return source, item
    if item in module.imports:
        return _resolve(modules, *module.imports[item], depth + 1)
    for star in module.stars:
        if origin := _resolve(modules, star, item, depth + 1):
            return origin
    return None


def _belongs(source: str, name: str) -> bool:
    """Returns whether module `name` may make items of `source` public."""
    top = source.split(".")[0]
    return top == name.split(".")[0] or top.startswith("_") or top == "posix"


CORPUS_FORMAT = 4  # increment when a change of this code changes the data
MAX_TITLES = 5  # a sentence with more titles is boilerplate
TEST_PERCENT, DEV_PERCENT = 9, 3


def build_api_search(progress: bool = False) -> Collection:
    """Builds the API-search collection, or opens it if it exists."""
    packages = distributions()
    folder = cached_folder("api", packages, CORPUS_FORMAT)
    with building(folder, "15 seconds" if progress else "") as is_missing:
        if is_missing:
            write_api_search(folder, packages)
    return Collection(folder)


@contextmanager
def building(
    folder: str | os.PathLike[str], duration: str = ""
) -> Iterator[bool]:
    """Yields whether the caller must build `folder`. Waits for other builds."""
    if os.path.isdir(folder):
        yield False
        return
    parent = os.path.dirname(os.path.abspath(folder))
    with lock_folder(parent, "building data", wait=True):
        is_missing = not os.path.isdir(folder)
        if is_missing and duration:
            line = f"Reading docstrings (once, ~{duration}) ..."
            print(line, file=sys.stderr)
        yield is_missing


def _titles_by_query(packages: list[Distribution]) -> dict[str, list[str]]:
    titles: dict[str, set[str]] = {}
    spelling: dict[str, str] = {}
    for definition, name in public_names(read_modules(packages)).items():
        if sentence := first_sentence(definition.doc):
            folded = sentence.casefold()
            titles.setdefault(folded, set()).add(title(name))
            spelling[folded] = min(sentence, spelling.get(folded, sentence))
    return {
        spelling[folded]: sorted(titles[folded])
        for folded in sorted(titles)
        if len(titles[folded]) <= MAX_TITLES
    }


def write_api_search(
    folder: str | os.PathLike[str], packages: list[Distribution]
) -> Collection:
    """Writes a BEIR folder of first sentences (queries) and names (titles)."""
    titles_by_query = _titles_by_query(packages)
    corpus = sorted({t for titles in titles_by_query.values() for t in titles})
    ids = {title: f"d{number}" for number, title in enumerate(corpus, 1)}
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, dict[str, int]]] = {s: {} for s in SPLITS}
    clicks: list[Pair] = []
    # Queries that differ only in punctuation get the same split.
    first_spelling: dict[str, str] = {}
    words = normalize(titles_by_query, "alphanumeric")
    pairs = zip(words, titles_by_query, strict=True)
    representatives = [first_spelling.setdefault(*pair) for pair in pairs]
    splits = splits_of(representatives, DEV_PERCENT, TEST_PERCENT, "space")
    for number, (query, titles) in enumerate(titles_by_query.items(), 1):
        split = splits[number - 1]
        queries[f"q{number}"] = query
        qrels[split][f"q{number}"] = {ids[title]: 1 for title in titles}
        if split == "train":
            clicks.extend(Pair(query, title) for title in titles)
    documents = {key: title for title, key in ids.items()}
    return write_collection(folder, documents, queries, qrels, clicks)


def cached_folder(
    name: str, packages: list[Distribution], corpus_format: int
) -> str:
    """Returns a corpus's cache folder for the versions of these packages."""
    versions = [f"{d.metadata['Name']} {d.version}" for d in packages]
    key = json.dumps([corpus_format, platform.python_version(), *versions])
    fingerprint = hashlib.sha256(key.encode()).hexdigest()[:16]
    return os.path.join(cache_folder(), f"{name}-{fingerprint}")

"""Documents from docstrings, with summaries, classes and queries.

The body of a document is a docstring without its first paragraph, which is
the summary; its class is the subpackage that it is from. The queries are the
docstrings of subpackages: "Statistical functions" -> the documents of
scipy.stats. There are about 3,800 documents; the number depends on the
versions of Python and of the packages.
"""

import inspect
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from keras_lstm_dssm.data.api_search import (
    INTERNAL,
    building,
    cached_folder,
)
from keras_lstm_dssm.data.api_sources import (
    Definition,
    distributions,
    documented,
    prose_sentences,
)
from keras_lstm_dssm.data.collection import SPLITS
from keras_lstm_dssm.data.documents import (
    Document,
    DocumentFolder,
    write_documents,
)
from keras_lstm_dssm.data.split import split_by_groups
from keras_lstm_dssm.text.word_hashing import normalize

DOCUMENTS_FORMAT = 1  # increment when the same packages give other documents
MIN_SENTENCES = 8  # of a body
MAX_REPEATS = 5  # a sentence of more docstrings is boilerplate
COMPARED_WORDS = 8  # shorter sentences may be in two splits
SHARES = {"test": 0.2, "dev": 0.1}  # the largest, of the documents
MIN_RELEVANT = 3  # documents of a query in a split
_MIN_QUERY_WORDS = 5


def build_api_documents(
    folder: str | os.PathLike[str] | None = None, progress: bool = False
) -> DocumentFolder:
    """Builds the documents, or opens them if they were built before.

    The docstrings are those that API search is made from, see
    `build_api_search`. A document has 8 or more sentences after its first
    paragraph, without code, examples and types of arguments. Sentences that
    more than 5 docstrings have ("A name for the operation") are left out of
    the bodies, and so are those of the document's own summary.

    The class is the path of public packages that the docstring's module is
    in, of two names at most: "scipy.stats"; or the module, if it is in none.
    A query is the docstring of such a package, and the documents of the class
    are relevant to it. A split has the queries with 3 or more documents
    there: those of dev and test are partly the same, their documents differ.

    Modules are divided into train, dev (at most 10 % of the documents) and
    test (at most 20 %). Modules that share a sentence of 8 or more words, or
    nearly the same one (three quarters of the words), are in one split.

    Args:
        folder: The folder to write. By default a folder named after the
            versions of the packages in `$KERAS_LSTM_DSSM_CACHE`, or in
            `~/.cache/keras_lstm_dssm`.
        progress: Whether to print to standard error when it is built.
            Default `False`.

    Returns:
        The folder, with the queries of dev and test.

    Raises:
        InputError: This package is not installed.

    Example:
        >>> build_api_documents().count("test")  # doctest: +SKIP
        759
    """
    packages = distributions()
    if folder is None:
        folder = cached_folder("api_documents", packages, DOCUMENTS_FORMAT)
    with building(folder) as is_missing:
        if is_missing:
            if progress:
                line = "Reading docstrings (once, ~1 minute) ..."
                print(line, file=sys.stderr)
            documents = write_api_documents(folder, documented())
            if progress:
                print(documents.describe(), file=sys.stderr)
    return DocumentFolder(folder)


def write_api_documents(
    folder: str | os.PathLike[str], definitions: Iterable[Definition]
) -> DocumentFolder:
    """Writes the documents and queries that are made of docstrings.

    `definitions` are modules, each before what it contains, and what they
    contain; a docstring that was read before is skipped.
    """
    docs: dict[str, Definition] = {}
    modules: dict[str, Definition] = {}
    for one in definitions:
        modules.setdefault(one.module, one)
        if one.doc:
            docs.setdefault(one.doc, one)
    packages = {
        module.rpartition(".")[0] for module in modules if "." in module
    }
    queries = _queries([modules[p] for p in sorted(packages) if p in modules])
    asked = {modules[package].doc for package, _ in queries.values()}
    drafts = _drafts(one for doc, one in docs.items() if doc not in asked)
    splits = split_by_groups(
        [draft.module for draft in drafts],
        [
            [w for w in draft.words if w.count(" ") >= COMPARED_WORDS - 1]
            for draft in drafts
        ],
        [" ".join(draft.body) for draft in drafts],
        SHARES,
    )
    documents = [
        Document(
            f"d{number}",
            f"{draft.module} {draft.name}".strip(),
            draft.body,
            draft.summary,
            package_class(draft.module, packages),
            split,
        )
        for number, (draft, split) in enumerate(
            zip(drafts, splits, strict=True), 1
        )
    ]
    ids = {label: f"q{n}" for n, label in enumerate(queries, 1)}
    qrels = {
        split: of_split
        for split in SPLITS[1:]
        if (of_split := _qrels(ids, documents, split))
    }
    judged = {query for of_split in qrels.values() for query in of_split}
    texts = {
        ids[label]: text
        for label, (_, text) in queries.items()
        if ids[label] in judged
    }
    return write_documents(folder, documents, texts, qrels)


def package_class(module: str, packages: Iterable[str]) -> str:
    """Returns the class of documents: keras.src.ops.math -> "keras.ops"."""
    parts = module.split(".")
    public = [
        part
        for number, part in enumerate(parts, 1)
        if ".".join(parts[:number]) in packages
        and not part.startswith("_")
        and part not in INTERNAL
    ]
    return ".".join(public[:2]) or parts[0].strip("_")


def _queries(packages: Sequence[Definition]) -> dict[str, tuple[str, str]]:
    """Returns class -> (its outermost package, that package's docstring)."""
    names = {package.module for package in packages}
    sentences = [prose_sentences(package.doc) for package in packages]
    repeats = Counter(s for of_one in sentences for s in set(of_one))
    queries: dict[str, tuple[str, str]] = {}
    for package, of_one in sorted(
        zip(packages, sentences, strict=True),
        key=lambda pair: (pair[0].module.count("."), pair[0].module),
    ):
        label = package_class(package.module, names)
        text = " ".join(s for s in of_one if repeats[s] <= MAX_REPEATS)
        # Packages inside that of the class have the same class.
        is_inside = _last(package.module) != _last(label)
        if not is_inside and len(text.split()) >= _MIN_QUERY_WORDS:
            queries.setdefault(label, (package.module, text))
    return queries


def _last(name: str) -> str:
    return name.rpartition(".")[-1]


class _Draft(NamedTuple):
    """The sentences of a docstring that may become a document.

    `words` are the normalised words of the sentences of summary and body.
    """

    module: str
    name: str
    summary: list[str]
    body: list[str]
    words: list[str]


def _drafts(definitions: Iterable[Definition]) -> list[_Draft]:
    parts: list[tuple[Definition, list[str], list[str]]] = []
    for one in definitions:
        doc = inspect.cleandoc(one.doc)
        if len(doc.split()) < 3 * MIN_SENTENCES:  # 3 words in each
            continue
        head, *rest = re.split(r"\n\s*\n", doc, maxsplit=1)
        body = prose_sentences(rest[0]) if rest else []
        if len(body) >= MIN_SENTENCES and (summary := prose_sentences(head)):
            parts.append((one, summary, body))
    texts = list(dict.fromkeys(s for _, *two in parts for p in two for s in p))
    words = dict(zip(texts, normalize(texts, "alphanumeric"), strict=True))
    repeats = Counter(
        key
        for _, summary, body in parts
        for key in {words[sentence] for sentence in (*summary, *body)}
    )
    drafts = []
    for one, summary, body in parts:
        in_summary = dict.fromkeys(words[sentence] for sentence in summary)
        kept: dict[str, str] = {}
        for sentence in body:
            key = words[sentence]
            if repeats[key] <= MAX_REPEATS and key not in in_summary:
                kept.setdefault(key, sentence)
        if len(kept) >= MIN_SENTENCES:
            drafts.append(
                _Draft(
                    one.module,
                    one.name,
                    summary,
                    list(kept.values()),
                    [*in_summary, *kept],
                )
            )
    return drafts


def _qrels(
    ids: Mapping[str, str], documents: Sequence[Document], split: str
) -> dict[str, dict[str, int]]:
    """Returns query id -> document id -> 1, for classes that have a query."""
    relevant: dict[str, dict[str, int]] = {key: {} for key in ids.values()}
    for document in documents:
        if document.label in ids and document.split == split:
            relevant[ids[document.label]][document.id] = 1
    return {
        query: grades
        for query, grades in relevant.items()
        if len(grades) >= MIN_RELEVANT
    }

"""A data set of documents made from docstrings of installed packages.

The first paragraph of a docstring is the summary, the rest is the body, and the
subpackage is the class. A query is the docstring of a subpackage: "Statistical
functions" -> the documents of scipy.stats. There are about 3,800 documents.
"""

import inspect
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from keras_lstm_dssm.data.api_search import INTERNAL, building, cached_folder
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

DOCUMENTS_FORMAT = 1  # increment when a change of this code changes the data
MIN_SENTENCES = 8  # least number of sentences in a body
MAX_REPEATS = 5  # a sentence in more than 5 docstrings is boilerplate
COMPARED_WORDS = 8  # sentences with fewer words may be in two splits
SHARES = {"test": 0.2, "dev": 0.1}  # largest shares of the documents
MIN_RELEVANT = 3  # a query needs this many relevant documents in the split
_MIN_QUERY_WORDS = 5


def build_api_documents(
    folder: str | os.PathLike[str] | None = None, progress: bool = False
) -> DocumentFolder:
    """Builds the documents, or opens them if they were built before.

    The docstrings are from the Python standard library and the requirements of
    this package. A body has 8 or more sentences. Code, examples and types of
    arguments are left out of the body, and so are sentences that occur in the
    summary or in more than 5 docstrings ("A name for the operation").

    The class of a document is its public package, cut to two names, such as
    "scipy.stats". A query is the docstring of the class's package, and all
    documents of the class are relevant. A query is in dev if 3 or more relevant
    documents are in dev, and in test if 3 or more are in test.

    Modules are split into train, dev (at most 10 % of the documents) and test
    (at most 20 %). Two modules are in the same split if they share a sentence
    of 8 or more words. Nearly equal sentences count as equal.

    Args:
        folder: The folder to write. Default: a folder in
            `$KERAS_LSTM_DSSM_CACHE`, or in `~/.cache/keras_lstm_dssm`.
        progress: Whether to print progress on standard error. Default `False`.

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
    with building(folder, "1 minute" if progress else "") as is_missing:
        if is_missing:
            documents = write_api_documents(folder, documented())
            if progress:
                print(documents.describe(), file=sys.stderr)
    return DocumentFolder(folder)


def write_api_documents(
    folder: str | os.PathLike[str], definitions: Iterable[Definition]
) -> DocumentFolder:
    """Writes documents; `definitions` has each module before its functions."""
    docs: dict[str, Definition] = {}
    modules: dict[str, Definition] = {}
    for definition in definitions:
        modules.setdefault(definition.module, definition)
        if definition.doc:
            docs.setdefault(definition.doc, definition)
    packages = {name.rpartition(".")[0] for name in modules if "." in name}
    queries = _queries([modules[p] for p in sorted(packages) if p in modules])
    query_docs = {modules[package].doc for package, _ in queries.values()}
    drafts = _drafts(
        definition for doc, definition in docs.items() if doc not in query_docs
    )
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
        split: split_qrels
        for split in SPLITS[1:]
        if (split_qrels := _qrels(ids, documents, split))
    }
    judged = {query for split_qrels in qrels.values() for query in split_qrels}
    texts = {
        ids[label]: text
        for label, (_, text) in queries.items()
        if ids[label] in judged
    }
    return write_documents(folder, documents, texts, qrels)


def package_class(module: str, packages: Iterable[str]) -> str:
    """Returns a module's class, such as "keras.ops" for keras.src.ops.math."""
    names = module.split(".")
    public = [
        name
        for number, name in enumerate(names, 1)
        if ".".join(names[:number]) in packages
        and not name.startswith("_")
        and name not in INTERNAL
    ]
    return ".".join(public[:2]) or names[0].strip("_")


def _queries(packages: Sequence[Definition]) -> dict[str, tuple[str, str]]:
    """Returns class -> (name of the class's outermost package, query text)."""
    names = {package.module for package in packages}
    sentences = [prose_sentences(package.doc) for package in packages]
    repeats = Counter(
        s for package_sentences in sentences for s in set(package_sentences)
    )
    queries: dict[str, tuple[str, str]] = {}
    for package, package_sentences in sorted(
        zip(packages, sentences, strict=True),
        key=lambda pair: (pair[0].module.count("."), pair[0].module),
    ):
        label = package_class(package.module, names)
        text = " ".join(
            s for s in package_sentences if repeats[s] <= MAX_REPEATS
        )
        # Only the package after which a class is named makes the query.
        # Subpackages of this package have the same class, but make no query.
        is_class = package.module.split(".")[-1] == label.split(".")[-1]
        if is_class and len(text.split()) >= _MIN_QUERY_WORDS:
            queries.setdefault(label, (package.module, text))
    return queries


class _Draft(NamedTuple):
    """A docstring that becomes a document."""

    module: str
    name: str
    summary: list[str]
    body: list[str]
    words: list[str]  # the normalised sentences of summary and body


def _drafts(definitions: Iterable[Definition]) -> list[_Draft]:
    """Makes drafts of docstrings with a summary and a body of 8+ sentences."""
    parsed: list[tuple[Definition, list[str], list[str]]] = []
    for definition in definitions:
        doc = inspect.cleandoc(definition.doc)
        if len(doc.split()) < 3 * MIN_SENTENCES:  # a sentence has 3+ words
            continue
        head, *rest = re.split(r"\n\s*\n", doc, maxsplit=1)
        body = prose_sentences(rest[0]) if rest else []
        if len(body) >= MIN_SENTENCES and (summary := prose_sentences(head)):
            parsed.append((definition, summary, body))
    texts = dict.fromkeys(
        s for _, summary, body in parsed for s in (*summary, *body)
    )
    words = dict(zip(texts, normalize(texts, "alphanumeric"), strict=True))
    repeats = Counter(
        sentence_words
        for _, summary, body in parsed
        for sentence_words in {words[s] for s in (*summary, *body)}
    )
    drafts = []
    for definition, summary, body in parsed:
        summary_words = dict.fromkeys(words[sentence] for sentence in summary)
        by_words: dict[str, str] = {}
        for sentence in body:
            key = words[sentence]
            if repeats[key] <= MAX_REPEATS and key not in summary_words:
                by_words.setdefault(key, sentence)
        if len(by_words) >= MIN_SENTENCES:
            module, name, _ = definition
            sentences = list(by_words.values())
            all_words = [*summary_words, *by_words]
            drafts.append(_Draft(module, name, summary, sentences, all_words))
    return drafts


def _qrels(
    ids: Mapping[str, str], documents: Sequence[Document], split: str
) -> dict[str, dict[str, int]]:
    """Returns query id -> document id -> 1; `ids` is class -> query id."""
    relevant: dict[str, dict[str, int]] = {key: {} for key in ids.values()}
    for document in documents:
        if document.label in ids and document.split == split:
            relevant[ids[document.label]][document.id] = 1
    return {q: ids for q, ids in relevant.items() if len(ids) >= MIN_RELEVANT}

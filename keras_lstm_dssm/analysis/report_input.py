"""The inputs of the reports: a model, texts of a data set, thresholds."""

import os
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.claims import ClaimResult
from keras_lstm_dssm.cards import CardTable
from keras_lstm_dssm.data import (
    ClickLog,
    Document,
    Pair,
    open_collection,
    open_documents,
    open_log,
)
from keras_lstm_dssm.data.judged_queries import SPLITS
from keras_lstm_dssm.data.open_data import API
from keras_lstm_dssm.training import (
    DocumentTargets,
    KeyWords,
    salience_teacher,
)


class ReportTexts(NamedTuple):
    """Texts of a data set for a report.

    Attributes:
        titles: Distinct titles of documents, in the order of the data.
        pairs: Queries, each with the title of a relevant document: in a
            collection, the one with the best grade for a query of the last
            split; in click files, a clicked one.
        contexts: The query and the title of each click as one text; the
            titles if there are no clicks.
        bad_lines: Reason for skipping lines of the click files -> number of
            such lines.
    """

    titles: list[str]
    pairs: list[Pair]
    contexts: list[str]
    bad_lines: dict[str, int]


def read_report_texts(
    data: str, max_bad_lines: int = 0, most: int = 60_000, pairs: int = 1000
) -> ReportTexts:
    """Read the texts for a report.

    Args:
        data: "api", a BEIR folder or click files, see `open_log`.
        max_bad_lines: Largest number of bad lines of click files to skip,
            see `ClickLog`; by default the first one raises `InputError`.
        most: The number of titles and of contexts, the first ones.
        pairs: The number of queries, drawn at random.

    Raises:
        InputError: `data` is none of these, or a line is not a click.
    """
    log: ClickLog | None
    titles: Iterable[str]
    if data == API or os.path.isdir(data):
        collection = open_collection(data)
        log = collection.clicks
        if log:
            log = ClickLog(log.paths, max_bad_lines)
        titles = collection.documents.values()
        judged_pairs = []
        for query, grades in collection.qrels(collection.splits[-1]).items():
            best = max(grades, key=lambda document: grades[document])
            if grades[best] > 0:
                judged_pairs.append(
                    Pair(collection.queries[query], collection.documents[best])
                )
    else:
        log = open_log(data, max_bad_lines=max_bad_lines)
        titles = log.documents()
        judged_pairs = [Pair(q, d) for q, d in dict(islice(log, most)).items()]
    order = np.random.default_rng(0).permutation(len(judged_pairs))
    titles = list(islice(dict.fromkeys(titles), most))
    contexts = [f"{q} {d}" for q, d in islice(log or (), most)] or titles
    return ReportTexts(
        titles,
        [judged_pairs[row] for row in order[:pairs]],
        contexts,
        log.bad_lines() if log and max_bad_lines else {},
    )


class ReportDocuments(NamedTuple):
    """Holds the documents that the report of a `KeyVec` is about.

    Attributes:
        split: Name of their split.
        documents: The documents, without sentences that the model skips.
        targets: Their key sentences and key words by the teacher.
        teacher: Its name: "bm25", "trigrams", "lead" or a run folder.
        bad_lines: What is wrong -> number of lines that are left out.
    """

    split: str
    documents: list[Document]
    targets: DocumentTargets
    teacher: str
    bad_lines: dict[str, int]


def read_report_documents(
    data: str,
    teacher: str,
    theta: float | None = None,
    max_sentences: int | None = None,
    max_bad_lines: int = 0,
    key_words_of: str = "summary",
) -> ReportDocuments:
    """Read the documents of the last split, and compute their targets.

    The last split is test, or else dev, or else train.

    Args:
        data: "api_documents" or a folder of documents.
        teacher: What chooses key sentences, see `salience_teacher`.
        theta: The threshold of the teacher's similarity; by default it is
            computed from the documents of the split train.
        max_sentences: Number of sentences to read of each document, as the
            model does. Default `None` for all.
        max_bad_lines: Largest number of bad lines to leave out.
        key_words_of: The `source` of `KeyWords`. Default `"summary"`.

    Raises:
        InputError: The data or the teacher are not found, or a line is bad.
    """
    folder = open_documents(data, max_bad_lines, max_sentences)
    split = [name for name in SPLITS if folder.count(name)][-1]
    documents = list(folder.of(split))
    train = folder.of("train") if folder.count("train") else documents
    compared = salience_teacher(teacher, train)
    key_words = KeyWords(train, source=key_words_of)
    if theta is None and compared.theta is None:
        of_train = DocumentTargets.from_teacher(train, compared, key_words)
        theta = of_train.counts.theta
    return ReportDocuments(
        split,
        documents,
        DocumentTargets.from_teacher(documents, compared, key_words, theta),
        teacher,
        dict(folder.counts.bad_lines),
    )


class ReportInput(NamedTuple):
    """The model and the texts of a report, and what was measured of them.

    Attributes:
        model: A `TwoTower`.
        query: A query.
        document: The title of a document, to compare with the query.
        queries: Queries for the topics of the cells.
        titles: Distinct titles, at least three, to search and to lay out on
            the map.
        history: The losses of the epochs, from `RunFolder.read_history`; by
            default none, and the report has no curve of the cost.
        claims: From `measure_claims`; by default none, and the report has no
            section about them.
        card: The tables of the run's card, from `card_tables`; by default
            none, and the report does not say what was trained.
    """

    model: Any
    query: str
    document: str
    queries: Sequence[str]
    titles: Sequence[str]
    history: Sequence[dict[str, float]] = ()
    claims: Sequence[ClaimResult] = ()
    card: Sequence[CardTable] = ()

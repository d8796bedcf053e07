"""The report of a KeyVec: key sentences and words, nearest documents, a map."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.maps import document_map, draw_map
from keras_lstm_dssm.analysis.report import (
    Report,
    failing_queries,
    report_data,
    training_sections,
)
from keras_lstm_dssm.data.collection import SPLITS
from keras_lstm_dssm.data.documents import Document
from keras_lstm_dssm.data.sources import open_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate.titles import BM25, MODEL, measured_systems
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.evaluation.systems import system_of
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.models import KeyVec, KeyVecRecipe
from keras_lstm_dssm.pages import Cell, Picture, Section, Shaded, Strong, Table
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.programs import ReportSettings, TitleSettings
from keras_lstm_dssm.training.document_targets import (
    TARGETS_FILE,
    DocumentTargets,
    KeyWords,
)
from keras_lstm_dssm.training.salience import (
    Agreement,
    agreement,
    salience_teacher,
)


@dataclass(frozen=True)
class ExplainedSentence:
    """A sentence, and the probability that the sentence is key."""

    text: str
    probability: float  # computed by the model
    # Whether the teacher marks the sentence as key. `None` without a teacher or
    # without a summary.
    salient: bool | None


@dataclass(frozen=True)
class PredictedWord:
    """A word that a document's vector predicts, with its probability."""

    word: str
    probability: float
    is_key_word: bool


@dataclass(frozen=True)
class KeyWord:
    """A key word of a document, with the model's rank and probability."""

    word: str
    # Both fields are `None` if the model does not know the word.
    rank: int | None  # 1 for the most probable word
    probability: float | None


@dataclass(frozen=True)
class NearDocument:
    """A document that is near another document."""

    id: str
    title: str
    label: str
    cosine: float


@dataclass(frozen=True)
class ExplainedDocument:
    """A document, and what a `KeyVec` computes for it.

    Attributes:
        id: Id of the document.
        title: The title; without a title, the first sentence.
        label: The class, or "".
        summary: The sentences of the summary. The model does not read them.
        sentences: The sentences that the model reads, in order.
        predicted: The most probable words, in descending order.
        key_words: The key words, the highest TF-IDF first.
        nearest: The other documents with the largest cosines.

    Example:
    >>> shown = ExplainedDocument("m1", "Glue", "", [], [], [], [], [])
    >>> shown.title
    'Glue'
    """

    id: str
    title: str
    label: str
    summary: list[str]
    sentences: list[ExplainedSentence]
    predicted: list[PredictedWord]
    key_words: list[KeyWord]
    nearest: list[NearDocument]


def explain_documents(
    model: KeyVec,
    documents: Sequence[Document],
    targets: DocumentTargets | None = None,
    rows: Sequence[int] | None = None,
    words: int = 10,
    nearest: int = 5,
    vectors: np.ndarray | None = None,
) -> list[ExplainedDocument]:
    """Finds the key sentences, key words and neighbours of documents.

    Args:
        model: A trained `KeyVec`.
        documents: The documents, which can also be neighbours of each other.
        targets: The teacher's key sentences, and the key words, to compare
            the model with. Default `None`: no comparison.
        rows: The indices of the documents to explain. Default `None`: all.
        words: Number of words to predict for each document. Default 10.
        nearest: Number of nearest documents for each document. Default 5.
        vectors: Float `[documents, dimension]`, the vectors of the documents.
            Default `None`: `model.encode` computes the vectors.

    Returns:
        A result for each of `rows`.

    Raises:
        InputError: There are no documents, or `targets` lacks a document.

    Example:
    >>> documents = list(folder.of("test"))
    >>> explained = explain_documents(model, documents, rows=[0])[0]
    >>> explained.predicted[0].word
    'array'
    """
    if not documents:
        raise InputError("found no documents to explain, expected one or more")
    if rows is None:
        rows = range(len(documents))
    if vectors is None:
        vectors = model.encode([document.sentences for document in documents])
    chosen = [documents[row] for row in rows]
    sentences = [document.sentences for document in chosen]
    probabilities = model.probabilities(sentences)
    index = Index.from_vectors(vectors, [document.id for document in documents])
    neighbours, cosines = index.nearest(
        vectors[list(rows)], nearest, exclude=[[row] for row in rows]
    )
    word_probabilities = model.word_probabilities(vectors[list(rows)]).numpy()
    explained = []
    results = zip(
        chosen, probabilities, word_probabilities, neighbours, cosines,
        strict=True,
    )  # fmt: skip
    for document, p, p_words, near_rows, near_cosines in results:
        predicted, key_words = _explained_words(
            document, p_words, targets, model, words
        )
        near_documents = [
            NearDocument(
                documents[row].id,
                name_of(documents[row]),
                documents[row].label,
                float(cosine),
            )
            for row, cosine in zip(near_rows, near_cosines, strict=True)
            if row >= 0  # -1 if there are fewer neighbours than `nearest`
        ]
        explained.append(
            ExplainedDocument(
                document.id,
                name_of(document),
                document.label,
                list(document.summary),
                _explained_sentences(document, p, targets),
                predicted,
                key_words,
                near_documents,
            )
        )
    return explained


def name_of(document: Document) -> str:
    """Returns a document's title, or else the first sentence."""
    return document.title or document.sentences[0]


def _explained_sentences(
    document: Document, p: np.ndarray, targets: DocumentTargets | None
) -> list[ExplainedSentence]:
    salient: list[bool | None] = [None] * len(p)
    if targets is not None and document.summary:
        salient = targets.of(document).marks().tolist()
    return [
        ExplainedSentence(text, probability, is_salient)
        for text, probability, is_salient in zip(
            document.sentences[: len(p)],
            p.tolist(),
            salient[: len(p)],
            strict=True,
        )
    ]


def _explained_words(
    document: Document,
    p: np.ndarray,
    targets: DocumentTargets | None,
    model: KeyVec,
    count: int,
) -> tuple[list[PredictedWord], list[KeyWord]]:
    key_words = [] if targets is None else targets.of(document).key_words
    ids = model.key_word_ids(key_words).tolist()
    order = np.argsort(-p, kind="stable")
    ranks = 1 + np.argsort(order)
    predicted = [
        PredictedWord(model.key_vocabulary[row], float(p[row]), row + 1 in ids)
        for row in order[:count].tolist()
    ]
    return predicted, [
        KeyWord(word, int(ranks[i - 1]), float(p[i - 1]))
        if i
        else KeyWord(word, None, None)
        for word, i in zip(key_words, ids, strict=True)
    ]


class ReportDocuments(NamedTuple):
    """The documents of a report."""

    split: str
    documents: list[Document]
    targets: DocumentTargets  # the teacher's key sentences, and the key words
    teacher: str  # a name such as "bm25", or a run folder
    bad_lines: dict[str, int]  # reason -> number of skipped lines


def read_report_documents(
    data: str,
    teacher: str,
    theta: float | None = None,  # threshold of the teacher's similarity
    max_sentences: int | None = None,
    max_bad_lines: int = 0,
    key_words_of: str = "summary",
) -> ReportDocuments:
    """Reads the test split (or else dev or train), and computes the targets."""
    folder = open_documents(data, max_bad_lines, max_sentences)
    split = [name for name in SPLITS if folder.count(name)][-1]
    documents = list(folder.of(split))
    train = folder.of("train") if folder.count("train") else documents
    salience = salience_teacher(teacher, train)
    key_words = KeyWords(train, source=key_words_of)
    # By default the threshold is computed from the training documents.
    if theta is None and salience.theta is None:
        train_targets = DocumentTargets.from_teacher(train, salience, key_words)
        theta = train_targets.counts.theta
    return ReportDocuments(
        split,
        documents,
        DocumentTargets.from_teacher(documents, salience, key_words, theta),
        teacher,
        dict(folder.counts.bad_lines),
    )


def report_on_keyvec(
    model: KeyVec, run: RunFolder, settings: ReportSettings, pictures: Path
) -> Report:
    """Reports on the key sentences and the vectors of documents."""
    data, max_bad_lines, min_relevant = report_data(run, settings)
    config = run.read_config()
    teacher, theta = settings.salience, None
    if teacher is None:
        teacher = config["salience"]
        theta = DocumentTargets.from_file(run.path / TARGETS_FILE).counts.theta
    documents = read_report_documents(
        data, teacher, theta, model.max_sentences, max_bad_lines,
        KeyVecRecipe.from_dict(config["recipe"]).key_words_of,
    )  # fmt: skip
    report = report_on_documents(model, documents, run, settings, pictures)
    split = documents.split
    folder = open_documents(data, max_bad_lines, model.max_sentences)
    if split not in folder.splits:  # the split has no queries
        return report
    task = Task.from_documents(folder, split, min_relevant)
    systems = {MODEL: system_of(model), BM25: BM25System()}
    measured = measured_systems(
        task, systems, MODEL, {}, TitleSettings(split), lambda line: None
    )
    titles = {d.id: name_of(d) for d in documents.documents}
    measured = measured._replace(task=task._replace(documents=titles))
    results, sections = failing_queries(measured, split, {})
    return report._replace(
        sections=[*sections, *report.sections], values=results | report.values
    )


def report_on_documents(
    model: KeyVec,
    source: ReportDocuments,
    run: RunFolder,
    settings: ReportSettings,
    pictures: Path,
) -> Report:
    """Reports on all documents; explains a sample, drawn with seed 0."""
    documents = source.documents
    order = np.random.default_rng(0).permutation(len(documents)).tolist()
    with_summary = [row for row in order if documents[row].summary]
    on_map = sorted(order[: settings.map_titles])
    vectors = model.encode([document.sentences for document in documents])
    labels = [documents[row].label for row in on_map]
    layout = document_map(vectors[on_map], labels, settings.map)
    agreements = key_sentence_agreements(model, documents, source.targets)
    explained = explain_documents(
        model,
        documents,
        source.targets,
        (with_summary or order)[: settings.examples],
        vectors=vectors,
    )
    picture = pictures / "document_map.png"
    draw_map(picture, layout, legend=True)
    sections = [
        *training_sections(
            run,
            pictures / "loss.png",
            {
                "loss": "training",
                "read_loss": "training, key sentences",
                "key_word_loss": "training, key words",
                "val_loss": "validation",
            },
            "mean loss of a document",
            text="Where the validation loss rises while the training loss "
            "falls, the model overfits.",
        ),
        *_agreement_sections(agreements, len(with_summary), source.teacher),
        *map(_document_section, explained),
        Section(
            "A map of documents",
            [Picture("Documents on a plane, coloured by class", picture)],
            f"{len(on_map):,} of {len(documents):,} documents: documents with "
            "similar vectors lie together. The model has not seen the classes. "
            "Only the largest classes have a colour. Distances between groups "
            "mean little.",
        ),
    ]
    map_rows = [
        {"id": documents[row].id, "class": label, "x": x, "y": y}
        for row, label, (x, y) in zip(
            on_map, labels, layout.positions.tolist(), strict=True
        )
    ]
    return Report(
        "What KeyVec finds in a document",
        f"{len(documents):,} documents of the split {source.split}. "
        "The model computes the probability p that a sentence is key, and "
        "a vector of the document. The vector predicts the key words. The "
        "model does not read the summary.",
        sections,
        {
            "key_sentences": {
                name: agreements[name]._asdict() if agreements else None
                for name in ("model", "position")
            },
            "documents": [asdict(document) for document in explained],
            "map": map_rows,
        },
        source.bad_lines,
        {
            "sentences.csv": _records(explained, "sentences"),
            "predicted_words.csv": _records(explained, "predicted"),
            "key_words.csv": _records(explained, "key_words"),
            "nearest.csv": _records(explained, "nearest"),
            "map.csv": map_rows,
        },
        ("documents", list(map(name_of, documents)), lambda: vectors),
    )


def _records(
    explained: Sequence[ExplainedDocument], name: str
) -> list[dict[str, Any]]:
    return [
        {"document": document.id, **asdict(record)}
        for document in explained
        for record in getattr(document, name)
    ]


def key_sentence_agreements(
    model: KeyVec, documents: Sequence[Document], targets: DocumentTargets
) -> dict[str, Agreement]:
    """Measures how well probabilities and positions rank key sentences."""
    documents = [document for document in documents if document.summary]
    if not documents:
        return {}
    p = model.probabilities([document.sentences for document in documents])
    marks = [targets.of(document).marks() for document in documents]
    by_position = agreement(marks, [-np.arange(len(m)) for m in marks])
    return {"model": agreement(marks, p), "position": by_position}


def _agreement_sections(
    agreements: dict[str, Agreement], number: int, teacher: str
) -> Iterator[Section]:
    if not agreements:
        return
    by_model, by_position = agreements["model"], agreements["position"]
    rows = [
        [name, f"{values.average_precision:.3f}", f"{values.precision:.3f}"]
        for name, values in (
            ("p of the model", by_model),
            ("position in the document", by_position),
        )
    ]
    yield Section(
        "Key sentences of all documents",
        [Table(["Ranked by", "Average precision", "Precision"], rows)],
        f"The sentences of each of {number:,} documents are ranked, and "
        f"compared with S*: the sentences that the teacher ({teacher}) chooses "
        "because they resemble a sentence of the summary. On average, S* has "
        f"{by_model.base_rate:.1%} of a document's sentences. Precision is "
        "the share of S* among the first n sentences, where n is the size of "
        f"S*. A random order has a precision of {by_model.base_rate:.3f}.",
    )


def _document_section(document: ExplainedDocument) -> Section:
    notes = [f"Class: {document.label}."] if document.label else []
    if document.summary:
        notes.append(f"Summary: {' '.join(document.summary)}")
    tables = [_sentence_table(document), _word_table(document)]
    if document.nearest:
        tables.append(_nearest_table(document))
    return Section(document.title, tables, " ".join(notes))


def _sentence_table(document: ExplainedDocument) -> Table:
    largest = max(sentence.probability for sentence in document.sentences)
    rows: list[list[Cell]] = []
    for number, sentence in enumerate(document.sentences, 1):
        p = sentence.probability
        note = f"sentence {number}: p = {p:.3f}"
        if sentence.salient:
            note += ", in S*"
        rows.append(
            [
                str(number),
                f"{p:.3f}",
                Strong("S*") if sentence.salient else "",
                Shaded(sentence.text, p / largest if largest else 0.0, note),
            ]
        )
    return Table(
        ["", "p", "Key", "Sentence"],
        rows,
        "Sentences: the colour is proportional to p, and full at the largest "
        "p of the document; S* marks the teacher's key sentences",
        text_columns=[3],
    )


def _word_table(document: ExplainedDocument) -> Table:
    rows: list[list[Cell]] = []
    words = zip_longest(document.predicted, document.key_words)
    for number, (predicted, key_word) in enumerate(words, 1):
        row: list[Cell] = [str(number), "", ""]
        if predicted:
            word = predicted.word
            row[1:] = [
                Strong(word) if predicted.is_key_word else word,
                f"{predicted.probability:.4f}",
            ]
        if not key_word:
            row += ["", "", ""]
        elif key_word.rank is None:
            row += [key_word.word, "-", "-"]
        else:
            row += [
                key_word.word,
                f"{key_word.rank:,}",
                f"{key_word.probability:.4f}",
            ]
        rows.append(row)
    return Table(
        ["", "Predicted", "Probability", "Key word", "Rank",
         "Probability"],
        rows,
        "Left: the words that the vector predicts; key words are bold. Right: "
        "the document's key words by TF-IDF, with their rank and probability "
        "in the prediction. A hyphen marks a word that is not in the "
        "vocabulary",
        text_columns=[1, 3],
    )  # fmt: skip


def _nearest_table(document: ExplainedDocument) -> Table:
    rows: list[list[Cell]] = [
        [
            f"{near.cosine:.4f}",
            near.title,
            Strong(near.label)
            if near.label and near.label == document.label
            else near.label,
        ]
        for near in document.nearest
    ]
    return Table(
        ["Cosine", "Document", "Class"],
        rows,
        "Nearest documents; bold: the same class as the explained document",
        text_columns=[1, 2],
    )

"""Reads and writes folders of documents; a document is a list of sentences."""

import functools
import json
import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keras_lstm_dssm.data.click_log import BadLines, describe_bad
from keras_lstm_dssm.data.collection import (
    SPLITS,
    JudgedQueries,
    _Qrels,
    write_queries,
    write_rows,
)
from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.files import new_folder
from keras_lstm_dssm.plain_files import (
    EmptyFile,
    line_chunks,
    numbered_lines,
    one_line,
)
from keras_lstm_dssm.text.sentences import split_sentences

LINE_EXPECTED = (
    'a JSON object on one line: "_id", "text" or "sentences", and perhaps'
    ' "title", "summary", "class" and "split"'
)
_LONGEST = 1 << 24


class Document(NamedTuple):
    """Holds the sentences, title, summary, class and split of a document.

    Attributes:
        id: The document's id, without white space.
        title: The title, or "". `sentences` do not include the title.
        sentences: The sentences of the body: one or more, and none is empty.
        summary: The sentences of the summary, or an empty list. A sentence of
            the summary need not occur in the body.
        label: The document's class, or "".
        split: "train", "dev" or "test".

    Example:
    >>> sentences = ["Warm the glue.", "Wait."]
    >>> document = Document("m1", "Glue", sentences, ["Warm it."])
    >>> document.sentences[0], document.split
    ('Warm the glue.', 'train')
    """

    id: str
    title: str
    sentences: list[str]
    summary: list[str]
    label: str = ""
    split: str = "train"


def parse_document(line: bytes) -> Document | str:
    """Parses a line into a document, or returns what is wrong with the line."""
    if len(line) > _LONGEST:
        return f"a line of more than {_LONGEST >> 20} MB"
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError:
        return "invalid UTF-8"
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(row, dict):
        return "no JSON object"
    try:
        return Document(
            _id(row),
            one_line(_string(row, "title")),
            _sentences(row),
            _summary(row),
            one_line(_string(row, "class")),
            _split(row),
        )
    except _Problem as problem:
        return str(problem)


class _Problem(Exception):
    """Raised for a wrong field; the message says what is wrong."""


def _id(row: dict[str, Any]) -> str:
    if "_id" not in row:
        raise _Problem("no _id")
    document_id = _string(row, "_id")
    if document_id.split() != [document_id]:
        raise _Problem("an _id that is empty or has white space")
    return document_id


def _string(row: dict[str, Any], name: str) -> str:
    """Returns a string or integer field as a string, or "" if it is missing."""
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise _Problem(f"{name} that is not a string")
    return value


def _sentences(row: dict[str, Any]) -> list[str]:
    text, sentences = row.get("text"), row.get("sentences")
    if text is not None and sentences is not None:
        raise _Problem("both text and sentences")
    if text is None and sentences is None:
        raise _Problem("neither text nor sentences")
    if sentences is None:
        sentences = split_sentences(_string(row, "text"))
    else:
        _check_list(sentences, "sentences that are not a list of strings")
    if not (body := _without_empty(sentences)):
        raise _Problem("an empty document")
    return body


def _summary(row: dict[str, Any]) -> list[str]:
    value = row.get("summary")
    if value is None:
        return []
    if isinstance(value, str):
        return _without_empty(split_sentences(value))
    _check_list(
        value, "a summary that is neither a string nor a list of strings"
    )
    return _without_empty(value)


def _split(row: dict[str, Any]) -> str:
    split = _string(row, "split") or SPLITS[0]
    if split not in SPLITS:
        raise _Problem(f"a split other than {', '.join(SPLITS)}")
    return split


def _check_list(value: Any, problem: str) -> None:
    if not isinstance(value, list) or not all(
        isinstance(sentence, str) for sentence in value
    ):
        raise _Problem(problem)


def _without_empty(sentences: list[str]) -> list[str]:
    return [sentence for sentence in map(one_line, sentences) if sentence]


DOCUMENTS_FILE = "documents.jsonl"

MAX_SENTENCES = 250
"""Default maximum number of sentences to read of a document."""


@dataclass
class DocumentCounts:
    """Counts of the documents, sentences and bad lines of a folder."""

    split_of: dict[str, str] = field(default_factory=dict)  # id -> split
    # Class -> number of documents. The class "" stands for no class.
    classes: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    no_summary: int = 0  # documents without a summary
    cut: int = 0  # documents with more than `max_sentences` sentences
    bad_lines: Counter[str] = field(default_factory=Counter)  # by problem


class DocumentFolder(JudgedQueries):
    """Streams the documents of a folder, and reads queries for them.

    A line of `documents.jsonl` is a JSON object with `_id` and the body. The
    body is `text` (one string, see `split_sentences`) or `sentences` (a list).
    Optional fields are `title`, `summary` (a string or a list of sentences),
    `class` and `split` ("train", "dev" or "test"; default "train").

    `queries.jsonl` and `qrels/<split>.tsv` are optional, and have the format of
    a BEIR folder. The qrels of a split may only name documents of this split.
    All files except the qrels may be compressed. The name of a compressed file
    ends in `.gz`.

    A line is bad if it is not UTF-8, is not a JSON object, has a missing or
    wrong field, has an empty body, repeats an `_id` or has more than 16 MB. An
    empty file is one bad line.

    Args:
        folder: Path of the folder.
        max_bad_lines: The number of bad lines that may be skipped. Default 0.
        max_sentences: The maximum number of sentences to read of a document,
            from its start. Default 250; `None` reads all sentences.

    Attributes:
        folder: Path of the folder, a `str`.
        splits: The splits with a qrels file, among "train", "dev" and "test".
        max_bad_lines, max_sentences: The arguments.

    Raises:
        InputError: There is no `documents.jsonl`, or `max_sentences` is less
            than 1. Reading documents raises the error if more than
            `max_bad_lines` lines are bad; the message has the file and the line
            number. `counts` raises the error if all lines are bad.

    Example:
        >>> folder = DocumentFolder("data/papers")  # doctest: +SKIP
        >>> len(next(iter(folder)).sentences)  # doctest: +SKIP
        174
    """

    # Parts of the error messages of `JudgedQueries`.
    expected_folder = "a folder with documents.jsonl (docs/documents.md)"
    known_document = "a document of this split"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        max_bad_lines: int = 0,
        max_sentences: int | None = MAX_SENTENCES,
    ) -> None:
        super().__init__(folder)
        check_at_least(1, optional=True, max_sentences=max_sentences)
        self._path = self._file(DOCUMENTS_FILE)
        self.max_bad_lines = max_bad_lines
        self.max_sentences = max_sentences

    def __iter__(self) -> Iterator[Document]:
        """Streams all documents, in the order of the file."""
        return self._read(DocumentCounts())

    def of(self, split: str) -> Iterable[Document]:
        """Returns an iterable of the documents of "train", "dev" or "test".

        Each iteration reads the file again, and yields the documents in order.
        Raises `InputError` for any other split.
        """
        if split not in SPLITS:
            raise InputError(
                f"found split {split!r}, expected one of {', '.join(SPLITS)}"
            )
        return _OfSplit(self, split)

    @functools.cached_property
    def counts(self) -> DocumentCounts:
        """Counts of the documents, sentences and bad lines of the folder."""
        counts = DocumentCounts()
        for document in self._read(counts):
            counts.classes[document.label] += 1
            counts.sentences += len(document.sentences)
            counts.no_summary += not document.summary
        if not counts.split_of:
            raise InputError(
                f"{self._path}: found bad lines only, expected"
                f" {LINE_EXPECTED}: check how the file was written"
            )
        return counts

    def count(self, split: str | None = None) -> int:
        """Returns the number of documents in one split, or in all splits."""
        splits = self.counts.split_of.values()
        return sum(split in (None, document_split) for document_split in splits)

    def describe(self) -> str:
        """Describes the counts of documents, queries and bad lines."""
        counts = self.counts
        classes = {
            label: count for label, count in counts.classes.items() if label
        }
        single = sum(count == 1 for count in classes.values())
        lines = [
            f"{self.count():,} documents, {counts.sentences:,} sentences,"
            f" {len(classes):,} classes"
            + (f" ({single:,} with one document)" if single else "")
        ]
        for split in SPLITS:
            line = f"{split}: {self.count(split):,} documents"
            if split in self.splits:
                line += f", {self._sizes(split)}"
            lines.append(line)
        lines += [
            f"{count:,} {what}"
            for count, what in (
                (counts.no_summary, "documents without a summary"),
                (counts.classes[""], "documents without a class"),
                (
                    counts.cut,
                    f"documents cut to {self.max_sentences} sentences",
                ),
            )
            if count
        ]
        if counts.bad_lines:
            lines.append(
                f"{counts.bad_lines.total():,} bad lines left out"
                f" ({describe_bad(counts.bad_lines)})"
            )
        return "\n".join(lines)

    def _read(self, counts: DocumentCounts) -> Iterator[Document]:
        """Yields documents; sets `counts.split_of`, `.cut` and `.bad_lines`."""
        bad = BadLines(self.max_bad_lines, LINE_EXPECTED)
        counts.bad_lines = bad.counts
        try:
            for number, line in numbered_lines(line_chunks(self._path)):
                document = parse_document(line)
                if isinstance(document, str):
                    bad.add(self._path, number, document)
                elif document.id in counts.split_of:
                    bad.add(self._path, number, "a repeated _id")
                else:
                    counts.split_of[document.id] = document.split
                    sentences = document.sentences[: self.max_sentences]
                    counts.cut += len(sentences) < len(document.sentences)
                    yield document._replace(sentences=sentences)
        except EmptyFile:
            bad.add(self._path, None, "an empty file")

    def _judgeable_documents(self, split: str) -> Container[str]:
        split_of = self.counts.split_of
        return {key for key in split_of if split_of[key] == split}


class _OfSplit:
    def __init__(self, folder: DocumentFolder, split: str) -> None:
        self._folder, self._split = folder, split

    def __iter__(self) -> Iterator[Document]:
        return (d for d in self._folder if d.split == self._split)


def write_documents(
    folder: str | os.PathLike[str],
    documents: Iterable[Document],
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, _Qrels],
) -> DocumentFolder:
    """Writes documents to a folder; the folder appears only when complete.

    Args:
        folder: The folder to create.
        documents: The documents of all splits.
        queries: Query id -> text; may be empty.
        qrels_by_split: Split -> query id -> document id -> score.

    Raises:
        InputError: The folder exists.
        OSError: The folder cannot be written.

    Example:
    >>> guide = Document("m1", "Glue", ["Warm the glue.", "Wait."], [])
    >>> folder = write_documents("guides", [guide], {"q1": "glue"}, {})
    >>> next(iter(folder)).sentences
    ['Warm the glue.', 'Wait.']
    """
    with new_folder(folder) as partial:
        write_rows(
            partial / f"{DOCUMENTS_FILE}.gz",
            (
                {
                    "_id": document.id,
                    "title": document.title,
                    "sentences": document.sentences,
                    "summary": document.summary,
                    "class": document.label,
                    "split": document.split,
                }
                for document in documents
            ),
        )
        if queries:
            write_queries(partial, queries, qrels_by_split)
    return DocumentFolder(folder)

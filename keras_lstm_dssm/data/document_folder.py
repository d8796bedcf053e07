"""DocumentFolder: documents as sentences, with summaries, classes, queries."""

import functools
import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from keras_lstm_dssm.data.click_lines import BadLines, describe_bad
from keras_lstm_dssm.data.document_lines import (
    LINE_EXPECTED,
    Document,
    parse_document,
)
from keras_lstm_dssm.data.judged_queries import SPLITS, JudgedQueries
from keras_lstm_dssm.data.line_reader import EmptyFile, line_chunks
from keras_lstm_dssm.errors import InputError

DOCUMENTS_FILE = "documents.jsonl"

MAX_SENTENCES = 250
"""Number of sentences that are read of each document, by default."""


@dataclass
class DocumentCounts:
    """Counts what one pass over the documents of a folder has found.

    Attributes:
        split_of: Document id -> its split, in the order of the documents.
        classes: Class -> number of documents; "" counts those without one.
        sentences: The number of sentences that are read.
        no_summary: The number of documents without a summary.
        cut: The number of documents of which only the first sentences are
            read.
        bad_lines: What is wrong -> number of lines that are left out.
    """

    split_of: dict[str, str] = field(default_factory=dict)
    classes: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    no_summary: int = 0
    cut: int = 0
    bad_lines: Counter[str] = field(default_factory=Counter)


class DocumentFolder(JudgedQueries):
    """Streams the documents of a folder, and reads queries for them.

    A line of `documents.jsonl` is a JSON object: `_id`; the body as `text`
    (one string, see `split_sentences`) or `sentences` (a list); and perhaps
    `title`, `summary` (a string or a list of sentences), `class` and `split`
    ("train", the default, "dev" or "test"). `queries.jsonl` and
    `qrels/<split>.tsv`, as in a BEIR folder, may be left out. The qrels of a
    split name documents of that split only, and these are ranked for its
    queries. All but the qrels may be compressed and end in `.gz`.

    A line is bad if it is not such an object, has an empty body, repeats an
    `_id`, is not UTF-8 or has more than 16 MB; a file without lines counts as
    one bad line. Memory holds the ids, not the documents.

    Args:
        folder: Path of the folder.
        max_bad_lines: The number of bad lines that may be left out; each
            pass leaves out the same. 0, the default, stops at the first.
        max_sentences: The number of sentences to read of each document, from
            its start. Default 250; `None` reads all of them.

    Attributes:
        folder: Path of the folder, a `str`.
        splits: Those of "train", "dev" and "test" that have a qrels file.
        max_bad_lines: The number of bad lines that may be left out.
        max_sentences: The number of sentences to read of each document.

    Raises:
        InputError: There is no `documents.jsonl`, or `max_sentences` is less
            than 1; or, when documents are read, there are more bad lines than
            allowed (with file and line number) or no documents.

    Example:
        >>> folder = DocumentFolder("data/papers")  # doctest: +SKIP
        >>> len(next(iter(folder)).sentences)  # doctest: +SKIP
        174
    """

    expected_folder = "a folder with documents.jsonl (docs/documents.md)"
    known_document = "a document of this split"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        max_bad_lines: int = 0,
        max_sentences: int | None = MAX_SENTENCES,
    ) -> None:
        super().__init__(folder)
        if max_sentences is not None and max_sentences < 1:
            raise InputError(
                f"max_sentences must be 1 or more, not {max_sentences}"
            )
        self._path = self._file(DOCUMENTS_FILE)
        self.max_bad_lines = max_bad_lines
        self.max_sentences = max_sentences

    def __iter__(self) -> Iterator[Document]:
        """Streams all documents, in their order."""
        return self._read(DocumentCounts())

    def of(self, split: str) -> Iterable[Document]:
        """Returns the documents of one split, in their order.

        Args:
            split: "train", "dev" or "test".

        Returns:
            An iterable that streams the documents whenever it is iterated.

        Raises:
            InputError: There is no such split, or see the class.
        """
        if split not in SPLITS:
            raise InputError(
                f"found split {split!r}, expected one of {', '.join(SPLITS)}"
            )
        return _OfSplit(self, split)

    @functools.cached_property
    def counts(self) -> DocumentCounts:
        """Counts of documents, sentences and bad lines; reads every line."""
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
        """Returns the number of documents, of one split or of all."""
        splits = self.counts.split_of.values()
        return sum(split in (None, of_document) for of_document in splits)

    def describe(self) -> str:
        """Describes the sizes, and what was left out, in a line each."""
        counts = self.counts
        classes = {k: n for k, n in counts.classes.items() if k}
        single = sum(n == 1 for n in classes.values())
        lines = [
            f"{self.count():,} documents, {counts.sentences:,} sentences,"
            f" {len(classes):,} classes"
            + (f" ({single:,} with one document)" if single else "")
        ]
        for split in SPLITS:
            line = f"{split}: {self.count(split):,} documents"
            if split in self.splits:
                qrels = self.qrels(split)
                pairs = sum(map(len, qrels.values()))
                line += f", {len(qrels):,} queries, {pairs:,} pairs"
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
        """Yields the valid documents, and updates the counts."""
        bad = BadLines(self.max_bad_lines, LINE_EXPECTED, "lstm-dssm-train")
        counts.bad_lines = bad.counts
        number = 0
        try:
            for chunk in line_chunks(self._path):
                for line in chunk.split(b"\n")[:-1]:
                    number += 1
                    document = parse_document(line)
                    if isinstance(document, str):
                        bad.add(self._path, number, document)
                    elif document.id in counts.split_of:
                        bad.add(self._path, number, "a repeated _id")
                    else:
                        counts.split_of[document.id] = document.split
                        kept = document.sentences[: self.max_sentences]
                        counts.cut += len(kept) < len(document.sentences)
                        yield document._replace(sentences=kept)
        except EmptyFile:
            bad.add(self._path, None, "an empty file")

    def _judged_documents(self, split: str) -> Container[str]:
        split_of = self.counts.split_of
        return {key for key, other in split_of.items() if other == split}


class _OfSplit:
    """Streams the documents of a split, as often as it is iterated."""

    def __init__(self, folder: DocumentFolder, split: str) -> None:
        self._folder, self._split = folder, split

    def __iter__(self) -> Iterator[Document]:
        return (one for one in self._folder if one.split == self._split)

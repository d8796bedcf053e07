"""JudgedQueries: reads the queries and the judgements of a BEIR folder."""

import functools
import json
import os
import re
from collections.abc import Container, Sequence

from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError

SPLITS = ("train", "dev", "test")


class JudgedQueries:
    """Reads the queries of a folder, and which documents are relevant to them.

    The base of `Collection` and `DocumentFolder`, which add the documents:
    `queries.jsonl` (`_id`, `text`) may be compressed and end in `.gz`;
    `qrels/<split>.tsv` has a header, then query-id, corpus-id, score. A file
    is read and checked when it is first needed.

    Args:
        folder: Path of the folder.

    Attributes:
        folder: Path of the folder, a `str`.
        splits: Those of "train", "dev" and "test" that have a qrels file.
        expected_folder: What a folder must be, for a message.
        known_document: What a judged document must be, for a message.
    """

    expected_folder = (
        "a BEIR folder with corpus.jsonl, queries.jsonl and qrels/"
    )
    known_document = "one of the collection's"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self.splits = tuple(
            split for split in SPLITS if os.path.isfile(self._qrels_path(split))
        )

    @functools.cached_property
    def queries(self) -> dict[str, str]:
        """Query id -> text."""
        return self._texts("queries.jsonl", ("text",))

    def qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Returns query id -> document id -> score, in the file's order.

        Args:
            split: One of `splits`.

        Raises:
            InputError: There is no such split, or a line is wrong: a score
                that is not a whole number, two scores for one pair, or an
                unknown id.
        """
        path = self._qrels_path(split)
        if split not in self.splits:
            raise InputError(
                f"{path}: no such split, expected one of"
                f" {', '.join(self.splits) or 'none'}: name one of these"
            )
        documents = self._judged_documents(split)
        qrels: dict[str, dict[str, int]] = {}
        for number, line in enumerate(text_lines(path), 1):
            fields = line.split("\t")
            if number == 1 and fields[-1] == "score":
                continue
            # `int` would also take other scripts' digits, and "1_0".
            if len(fields) != 3 or not re.fullmatch("-?[0-9]+", fields[2]):
                raise InputError(
                    f"{path}:{number}: found {line[:60]!r}, expected query-id"
                    " TAB corpus-id TAB whole number: correct the line"
                )
            query_id, document_id, score = fields
            for kind, key, known, expected in (
                ("query", query_id, self.queries, "one of the collection's"),
                ("document", document_id, documents, self.known_document),
            ):
                if key not in known:
                    raise InputError(
                        f"{path}:{number}: found {kind} {key!r}, expected"
                        f" {expected}: add it or remove the line"
                    )
            scores = qrels.setdefault(query_id, {})
            if scores.setdefault(document_id, int(score)) != int(score):
                raise InputError(
                    f"{path}:{number}: found score {score} for query"
                    f" {query_id!r} and document {document_id!r}, expected"
                    f" {scores[document_id]} as in an earlier line: remove one"
                    " of the lines"
                )
        return qrels

    def _judged_documents(self, split: str) -> Container[str]:
        """Returns the ids of the documents that a split may have judged."""
        raise NotImplementedError(f"{type(self).__name__}._judged_documents")

    def _qrels_path(self, split: str) -> str:
        return os.path.join(self.folder, "qrels", f"{split}.tsv")

    def _find(self, name: str) -> str | None:
        path = os.path.join(self.folder, name)
        paths = [p for p in (path, f"{path}.gz") if os.path.isfile(p)]
        return paths[0] if paths else None

    def _file(self, name: str) -> str:
        if path := self._find(name):
            return path
        raise InputError(
            f"{os.path.join(self.folder, name)}: no such file (nor with .gz),"
            f" expected {self.expected_folder}: check the path"
        )

    def _texts(self, name: str, fields: Sequence[str]) -> dict[str, str]:
        """Reads id -> text, the first of some fields that is not empty."""
        path = self._file(name)
        texts: dict[str, str] = {}
        for number, line in enumerate(text_lines(path), 1):
            try:
                key, text = _parse_row(line, fields)
                if key in texts:
                    raise ValueError(f"_id {key!r} again, expected it once")
            except ValueError as error:
                raise InputError(
                    f"{path}:{number}: found {error}: correct or remove the"
                    " line"
                ) from None
            texts[key] = text
        return texts


def _parse_row(line: str, fields: Sequence[str]) -> tuple[str, str]:
    """Returns the id of a row and the first field that is not empty."""
    try:
        row = json.loads(line)
        key = row["_id"]
    except (ValueError, KeyError, TypeError):
        expected = 'expected {"_id": ...} on one line'
        raise ValueError(f"{line[:60]!r}, {expected}") from None
    if isinstance(key, int):
        key = str(key)
    if not isinstance(key, str) or key.split() != [key]:
        raise ValueError(f"_id {key!r:.60}, expected an id without white space")
    for field in fields:
        text = row.get(field)
        if text is not None and not isinstance(text, str):
            raise ValueError(f"{field} {text!r:.60}, expected a string")
        if text and text.strip():
            return key, text
    names = " and ".join(fields)
    raise ValueError(f"an empty {names}, expected a text for each _id")

"""Collection: reads a test collection from a BEIR folder."""

import functools
import json
import os
import re
from collections.abc import Sequence

from keras_lstm_dssm.data.click_lines import Pair
from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError

SPLITS = ("train", "dev", "test")
CLICKS = "clicks.train.tsv"


class Collection:
    """Reads a test collection from a BEIR folder.

    It holds `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` (`_id`,
    `text`), `qrels/<split>.tsv` (a header, then query-id, corpus-id, score)
    and, where there is a click log, `clicks.train.tsv`; all but the qrels may
    be compressed and end in `.gz`. A file is read and checked when it is
    first needed. An id must not hold white space, and each occurs once.

    Args:
        folder: Path of the folder.

    Attributes:
        folder: Path of the folder, a `str`.
        splits: Those of "train", "dev" and "test" that have a qrels file.

    Raises:
        InputError: A file is missing, or a line is wrong: no JSON, no `_id`,
            a repeated `_id`, two scores for one pair, an empty title and
            text, a score that is not a whole number, or an unknown id.

    Source: Thakur et al. 2021, "BEIR: A Heterogeneous Benchmark for
    Zero-shot Evaluation of Information Retrieval Models".

    Example:
        >>> collection = Collection("data/wikiqa")  # doctest: +SKIP
        >>> collection.qrels("test")["q14"]  # doctest: +SKIP
        {'d210': 0, 'd211': 1}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        for name in ("corpus.jsonl", "queries.jsonl"):
            self._file(name)
        self.splits = tuple(
            split for split in SPLITS if os.path.isfile(self._qrels_path(split))
        )
        if not self.splits:
            raise InputError(
                f"{os.path.join(self.folder, 'qrels')}: found no split,"
                " expected train.tsv, dev.tsv or test.tsv: add one"
            )

    @functools.cached_property
    def documents(self) -> dict[str, str]:
        """Document id -> title, or text where the title is empty."""
        return self._texts("corpus.jsonl", ("title", "text"))

    @functools.cached_property
    def queries(self) -> dict[str, str]:
        """Query id -> text."""
        return self._texts("queries.jsonl", ("text",))

    @functools.cached_property
    def clicks(self) -> ClickLog | None:
        """The folder's click file, or `None` without one."""
        path = self._find(CLICKS)
        return ClickLog(path) if path else None

    def qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Returns query id -> document id -> score, in the file's order.

        Args:
            split: One of `splits`.

        Raises:
            InputError: See the class.
        """
        path = self._qrels_path(split)
        if split not in self.splits:
            raise InputError(
                f"{path}: no such split, expected one of"
                f" {', '.join(self.splits)}: name one of these"
            )
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
            for kind, key, texts in (
                ("query", query_id, self.queries),
                ("document", document_id, self.documents),
            ):
                if key not in texts:
                    raise InputError(
                        f"{path}:{number}: found {kind} {key!r}, expected one"
                        " of the collection's: add it or remove the line"
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

    def training_log(
        self,
        min_relevant: int = 1,
        write_to: str | os.PathLike[str] | None = None,
    ) -> ClickLog:
        """Returns the clicks to train on.

        Args:
            min_relevant: The lowest score in qrels/train.tsv that counts as a
                click if there is no click file. Default 1.
            write_to: The file to write these clicks to, outside of the
                folder; not needed if there is a click file.

        Raises:
            InputError: There is neither a click file nor `write_to`, or no
                document has such a score.
        """
        if self.clicks:
            return self.clicks
        if write_to is None:
            raise InputError(
                f"{os.path.join(self.folder, CLICKS)}: no such file, expected"
                " a click log: say where to write the clicks of"
                " qrels/train.tsv (write_to)"
            )
        clicks = [
            Pair(self.queries[query], self.documents[document])
            for query, scores in self.qrels("train").items()
            for document, score in scores.items()
            if score >= min_relevant
        ]
        if not clicks:
            raise InputError(
                f"{self._qrels_path('train')}: found no score of"
                f" {min_relevant} or more, expected titles to train on: lower"
                " --min_relevant"
            )
        os.makedirs(os.path.dirname(write_to) or ".", exist_ok=True)
        return write_pairs(clicks, write_to)

    def judged_negatives(self, min_relevant: int = 1) -> dict[str, list[str]]:
        """Returns query -> titles that are judged not relevant to it.

        Args:
            min_relevant: The lowest score in qrels/train.tsv of a relevant
                document. Default 1.
        """
        titles: dict[str, list[str]] = {}
        if "train" not in self.splits:
            return titles
        for query_id, scores in self.qrels("train").items():
            # White space as in a line of a click file.
            query = " ".join(self.queries[query_id].split())
            titles.setdefault(query, []).extend(
                " ".join(self.documents[document_id].split())
                for document_id, score in scores.items()
                if score < min_relevant
            )
        return titles

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
            " expected a BEIR folder with corpus.jsonl, queries.jsonl and"
            " qrels/: check the path"
        )

    def _texts(self, name: str, fields: Sequence[str]) -> dict[str, str]:
        """Reads id -> the first of the fields that is not empty."""
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


def describe(collection: Collection) -> str:
    """Describes the sizes of a collection, one line for each split."""
    lines = [
        f"{len(collection.documents):,} titles,"
        f" {len(collection.queries):,} queries"
    ]
    if collection.clicks and "train" not in collection.splits:
        lines.append(f"train: {collection.clicks.count():,} clicks")
    for split in collection.splits:
        qrels = collection.qrels(split)
        pairs = sum(map(len, qrels.values()))
        lines.append(f"{split}: {len(qrels):,} queries, {pairs:,} pairs")
    return "\n".join(lines)

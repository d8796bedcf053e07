"""Reads and writes BEIR folders of queries, documents and judgements."""

import functools
import itertools
import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.click_log import (
    ClickLog,
    Pair,
    weight_of,
    weighted_line,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import FieldTexts
from keras_lstm_dssm.evaluation.measures import LARGEST_GRADE, click_grades
from keras_lstm_dssm.files import new_folder, replacing
from keras_lstm_dssm.plain_files import (
    check_plain_file,
    text_lines,
    write_lines,
)
from keras_lstm_dssm.settings.fields import field_weights

SPLITS = ("train", "dev", "test")

SEEN, UNSEEN = "test_seen", "test_unseen"
"""Parts of the split "test": the queries with training clicks, and the queries
without training clicks. `prepare` makes these splits if `test_after` is set."""


def find_file(folder: str, name: str) -> str | None:
    """Returns the path of `name`, else of `name` + ".gz"; `None` if missing."""
    path = os.path.join(folder, name)
    for candidate in (path, f"{path}.gz"):
        if os.path.isfile(candidate):
            check_plain_file(candidate, folder)
            return candidate
    return None


class JudgedQueries:
    """Base of `Collection` and `DocumentFolder`: queries and judgements."""

    # Words for error messages, after "expected".
    expected_folder = (
        "a BEIR folder with corpus.jsonl, queries.jsonl and qrels/"
    )
    known_document = "a document of corpus.jsonl"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self.splits = tuple(
            split
            for split in (*SPLITS, SEEN, UNSEEN)
            if os.path.isfile(self._qrels_path(split))
        )

    @functools.cached_property
    def queries(self) -> dict[str, str]:
        """Query id -> text; empty if there is no qrels file."""
        return self._texts("queries.jsonl", ("text",)) if self.splits else {}

    def qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Returns query id -> document id -> score, for a split of `splits`.

        Raises:
            InputError: There is no such split, or a line is wrong: a score is
                no whole number, scores of a pair differ, or an id is unknown.
        """
        path = self._qrels_path(split)
        if split not in self.splits:
            if not self.splits and find_file(self.folder, DATA_FILE):
                raise InputError(
                    f"{self.folder}: found products without a log, expected"
                    f" queries of {split}: {_ADD_LOG}"
                )
            raise InputError(
                f"{path}: no such split, expected one of"
                f" {', '.join(self.splits) or 'none'}: name one of these"
            )
        check_plain_file(path, self.folder)
        documents = self._judgeable_documents(split)
        qrels: dict[str, dict[str, int]] = {}
        for number, line in enumerate(text_lines(path), 1):
            fields = line.split("\t")
            if number == 1 and fields[-1] == "score":
                continue
            # `int` would also accept digits of other scripts, and "1_0".
            if len(fields) != 3 or not re.fullmatch("-?[0-9]+", fields[2]):
                raise InputError(
                    f"{path}:{number}: found {line[:60]!r}, expected query-id"
                    " TAB corpus-id TAB whole number: correct the line"
                )
            query_id, document_id, score = fields
            for kind, key, known, expected in (
                ("query", query_id, self.queries, "a query of queries.jsonl"),
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

    def _judgeable_documents(self, split: str) -> Container[str]:
        """Returns the ids that judgements of a split may refer to."""
        raise NotImplementedError(f"{type(self).__name__}._judgeable_documents")

    def _qrels_path(self, split: str) -> str:
        return os.path.join(self.folder, "qrels", f"{split}.tsv")

    def _sizes(self, split: str) -> str:
        qrels = self.qrels(split)
        pairs = sum(map(len, qrels.values()))
        return f"{len(qrels):,} queries, {pairs:,} pairs"

    def _file(self, name: str) -> str:
        if path := find_file(self.folder, name):
            return path
        raise InputError(
            f"{os.path.join(self.folder, name)}: no such file (nor with .gz),"
            f" expected {self.expected_folder}: check the path"
        )

    def _texts(self, name: str, fields: Sequence[str]) -> dict[str, str]:
        texts_by_id = self._field_texts(name, fields)
        return {key: _joined(texts) for key, texts in texts_by_id.items()}

    def _field_texts(
        self, name: str, fields: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        """Returns id -> text of each field, "" for a field that is missing."""
        path = self._file(name)
        texts_by_id: dict[str, tuple[str, ...]] = {}
        names: set[str] = set()
        for number, line in enumerate(text_lines(path), 1):
            try:
                key, row = _parse_row(line, fields)
                if key in texts_by_id:
                    raise ValueError(f"_id {key!r} again, expected it once")
            except ValueError as error:
                raise InputError(
                    f"{path}:{number}: found {error}: correct or remove the"
                    " line"
                ) from None
            names |= row.keys()
            texts_by_id[key] = tuple(row.get(field) or "" for field in fields)
        if missing := set(fields) - names - {"title", "text"}:
            names -= {"_id", "fields", "tags", "metadata"}
            raise InputError(
                f"{path}: found no field {min(missing)!r}, expected one of"
                f" {', '.join(sorted(names))}: set fields to some of these"
                " names, with weights"
            )
        return texts_by_id


def _joined(texts: Iterable[str]) -> str:
    """Joins all non-empty texts by spaces, as BEIR's tools do."""
    return " ".join(text for text in texts if text.strip())


def _parse_row(line: str, fields: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Returns a row's id, and the entries of the row and of its "fields"."""
    try:
        row = json.loads(line)
        key = row["_id"]
        row = {**(row.get("fields") or {}), **row}
    except (ValueError, KeyError, TypeError, AttributeError):
        expected = 'expected {"_id": ...} on one line'
        raise ValueError(f"{line[:60]!r}, {expected}") from None
    if isinstance(key, int):
        key = str(key)
    if not isinstance(key, str) or key.split() != [key]:
        raise ValueError(f"_id {key!r:.60}, expected an id without white space")
    texts = [row.get(field) or "" for field in fields]
    for field, text in zip(fields, texts, strict=True):
        if not isinstance(text, str):
            raise ValueError(f"{field} {text!r:.60}, expected a string")
    if any(text.strip() for text in texts):
        return key, row
    names = " and ".join(fields)
    raise ValueError(f"an empty {names}, expected a text for each _id")


CLICKS = "clicks.train.tsv"

DATA_FILE = "data.json"
"""The file in which `prepare` stores sources, columns, rules and counts."""

COUNTED_CLICKS, NEW_CLICKS = "clicks.tsv", "clicks.new.tsv"
"""Click files of `prepare`: all clicks, and clicks of the last `--append`."""

_ADD_LOG = "add a log by lstm-dssm-prepare --append --clicks=LOG"

_COUNTED = "query\tid\tweight\tclicks"


class Collection(JudgedQueries):
    """Reads a test collection from a BEIR folder.

    A folder has `corpus.jsonl` (`_id`, `title`, `text`, perhaps `tags` and
    `fields`), `queries.jsonl` (`_id`, `text`) and `qrels/<split>.tsv` (a
    header, then query-id, corpus-id, score). A folder may have a click log:
    `clicks.train.tsv`, or `clicks.tsv` if `prepare` has made the folder. All
    files except the qrels may be compressed; their names then end in `.gz`.
    Files are read and checked when they are first needed. Ids are unique and
    without white space.

    Args:
        folder: Path of the folder.
        fields: The fields of the documents to read, see `Recipe.fields`.
            Default `None`: title and text.

    Attributes:
        folder: Path of the folder, a `str`.
        splits: The splits with a qrels file, among "train", "dev", "test",
            "test_seen" and "test_unseen".

    Raises:
        InputError: A file is missing; a field of `fields` is in no document; or
            a line is wrong: no JSON, no `_id`, a repeated `_id`, empty fields,
            or a wrong judgement (see `qrels`).

    Source: Thakur et al. 2021, "BEIR: A Heterogeneous Benchmark for
    Zero-shot Evaluation of Information Retrieval Models".

    Example:
        >>> collection = Collection("data/wikiqa")  # doctest: +SKIP
        >>> collection.qrels("test")["q14"]  # doctest: +SKIP
        {'d210': 0, 'd211': 1}
    """

    def __init__(
        self, folder: str | os.PathLike[str], fields: str | None = None
    ) -> None:
        super().__init__(folder)
        self.fields = fields
        for name in ("corpus.jsonl", "queries.jsonl"):
            self._file(name)
        if not (self.splits or self.is_prepared):
            raise InputError(
                f"{os.path.join(self.folder, 'qrels')}: found no split,"
                " expected train.tsv, dev.tsv or test.tsv: add one"
            )

    @functools.cached_property
    def documents(self) -> dict[str, str]:
        """Document id -> its fields (default: title, text) joined by spaces."""
        if self.fields is None:
            return self._texts("corpus.jsonl", ("title", "text"))
        return {key: _joined(texts) for key, texts in self._texts_by_id.items()}

    @functools.cached_property
    def field_texts(self) -> FieldTexts | None:
        """The weights and the texts of the fields; `None` without `fields`."""
        if self.fields is None:
            return None
        weights = filter(None, field_weights(self.fields).values())
        texts = {_joined(texts): texts for texts in self._texts_by_id.values()}
        return FieldTexts(tuple(weights), texts)

    @functools.cached_property
    def _texts_by_id(self) -> dict[str, tuple[str, ...]]:
        """Document id -> texts of the fields with a weight above 0."""
        assert self.fields is not None
        weights = field_weights(self.fields)
        names = [name for name, weight in weights.items() if weight]
        return self._field_texts("corpus.jsonl", names)

    @functools.cached_property
    def titles(self) -> dict[str, str]:
        """Document id -> title; text of `documents` if the title is empty."""
        return {
            key: title.strip() or self.documents[key]
            for key, title in self._column("title", "")
        }

    @functools.cached_property
    def tags(self) -> dict[str, list[str]]:
        """Document id -> tags, by which a search can be restricted."""
        return dict(self._column("tags", []))

    def _column(self, name: str, default: Any) -> Iterator[tuple[str, Any]]:
        rows = map(json.loads, text_lines(self._file("corpus.jsonl")))
        return ((str(row["_id"]), row.get(name) or default) for row in rows)

    @property
    def is_prepared(self) -> bool:
        """Whether `prepare` has made the folder."""
        return find_file(self.folder, DATA_FILE) is not None

    @property
    def last_split(self) -> str:
        """The last of `splits`, or "test" if there are no splits."""
        return (self.splits or SPLITS)[-1]

    @functools.cached_property
    def has_click_counts(self) -> bool:
        """Whether scores count clicks: true if a score is > `LARGEST_GRADE`."""
        return any(
            score > LARGEST_GRADE
            for split in self.splits
            for scores in self.qrels(split).values()
            for score in scores.values()
        )

    def graded_qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Returns `qrels`, with grades in place of numbers of clicks."""
        qrels = self.qrels(split)
        if not self.has_click_counts:
            return qrels
        return {query: click_grades(clicks) for query, clicks in qrels.items()}

    @functools.cached_property
    def clicks(self) -> ClickLog | None:
        """The click log `clicks.train.tsv`; `None` if the file is missing."""
        path = find_file(self.folder, CLICKS)
        return ClickLog(path) if path else None

    def training_clicks(
        self, min_relevant: int = 1, name: str = COUNTED_CLICKS
    ) -> Iterator[tuple[Pair, float, int]]:
        """Yields each training pair, its weight, and its number of clicks.

        Args:
            min_relevant: The lowest score in qrels/train.tsv that counts as a
                click if there is no click file. Default 1.
            name: The click file to read in a folder that `prepare` has made.
                Default `clicks.tsv`, which has all clicks. `clicks.new.tsv` has
                the clicks of the last `--append`.

        Raises:
            InputError: A file is missing, or a line is wrong.
        """
        if self.clicks:
            for pair, line in self.clicks.lines():
                yield pair, weight_of(line), 1
        elif self.is_prepared:
            yield from self._counted_clicks(name)
        else:
            for query, scores in self.qrels("train").items():
                for document, score in scores.items():
                    if score >= min_relevant:
                        texts = self.queries[query], self.documents[document]
                        yield Pair(*texts), 1.0, 1

    def _counted_clicks(self, name: str) -> Iterator[tuple[Pair, float, int]]:
        path, documents = self._file(name), self.documents
        for number, line in enumerate(text_lines(path), 1):
            if number == 1 and line == _COUNTED:
                continue
            try:
                query, key, weight, clicks = line.split("\t")
                pair = Pair(query, documents[key])
                yield pair, float(weight), int(clicks)
            except (KeyError, ValueError):
                raise InputError(
                    f"{path}:{number}: found {line[:60]!r}, expected query TAB"
                    " product's id TAB weight TAB clicks: restore the file"
                ) from None

    def training_log(
        self,
        min_relevant: int = 1,
        write_to: str | os.PathLike[str] | None = None,
        name: str = COUNTED_CLICKS,
    ) -> ClickLog:
        """Returns the clicks to train on as a click log.

        Args:
            min_relevant: See `training_clicks`.
            write_to: The click file to write. If the folder has
                `clicks.train.tsv`, nothing is written. Default `None`: the
                folder must have `clicks.train.tsv`.
            name: See `training_clicks`.

        Raises:
            InputError: Without `clicks.train.tsv`: `write_to` is `None`, or
                there is no click. With `clicks.train.tsv`: `fields` is set, but
                the titles of this file have no fields.
        """
        if self.clicks and self.fields is not None:
            raise InputError(
                f"{self.clicks.paths[0]}: found titles, but the fields of the"
                " recipe need ids of products: make the folder with"
                " lstm-dssm-prepare, or leave fields out"
            )
        if self.clicks:
            return self.clicks
        if write_to is None:
            raise InputError(
                f"{os.path.join(self.folder, CLICKS)}: no such file, expected"
                " a click log: say where to write the training clicks"
                " (write_to)"
            )
        lines = itertools.chain.from_iterable(
            itertools.repeat(weighted_line(*pair, weight), clicks)
            for pair, weight, clicks in self.training_clicks(min_relevant, name)
        )
        first = next(lines, None)
        if first is None and self.is_prepared:
            raise InputError(
                f"{os.path.join(self.folder, name)}: found no training click,"
                f" expected one or more: name another file, or {_ADD_LOG}"
            )
        if first is None:
            raise InputError(
                f"{self._qrels_path('train')}: found no score of"
                f" {min_relevant} or more, expected titles to train on: lower"
                " --min_relevant"
            )
        os.makedirs(os.path.dirname(write_to) or ".", exist_ok=True)
        with replacing(write_to) as partial:
            write_lines(partial, itertools.chain([first], lines))
        return ClickLog(write_to)

    def has_judged_negatives(
        self, min_relevant: int = 1, split: str = "train"
    ) -> bool:
        """Returns whether a score of a split is below `min_relevant`."""
        return split in self.splits and any(
            score < min_relevant
            for scores in self.qrels(split).values()
            for score in scores.values()
        )

    def describe(self) -> str:
        """Describes the sizes of the collection, one line for each split.

        Example:
        >>> print(Collection("parts").describe())
        4 titles, 3 queries
        train: 3 clicks
        dev: 1 queries, 2 pairs
        test: 2 queries, 4 pairs
        """
        lines = [
            f"{len(self.documents):,} titles, {len(self.queries):,} queries"
        ]
        if "train" not in self.splits and (self.clicks or self.is_prepared):
            clicks = sum(count for *_, count in self.training_clicks())
            lines.append(f"train: {clicks:,} clicks")
        for split in self.splits:
            lines.append(f"{split}: {self._sizes(split)}")
        return "\n".join(lines)

    def _judgeable_documents(self, split: str) -> Container[str]:
        return self.documents


_Qrels = Mapping[str, Mapping[str, int]]
"""Query id -> document id -> score."""


def write_collection(
    folder: str | os.PathLike[str],
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, _Qrels],
    clicks: Iterable[Pair | tuple[str, str, float]],
) -> Collection:
    """Writes a BEIR folder, which appears only when it is complete.

    Equal arguments give equal bytes.

    Args:
        folder: The folder to create.
        documents: Document id -> title.
        queries: Query id -> text.
        qrels_by_split: Split -> query id -> document id -> score.
        clicks: (query, title) or (query, title, weight) of each training click.

    Raises:
        InputError: The folder exists.
        OSError: The folder cannot be written.

    Example:
    >>> folder = write_collection(
    ...     "shop",
    ...     documents={"d1": "hex bolt", "d2": "nut"},
    ...     queries={"q1": "bolts"},
    ...     qrels_by_split={"test": {"q1": {"d1": 1}}},
    ...     clicks=[Pair("bolt", "hex bolt")],
    ... )
    >>> folder.splits, folder.documents["d2"]
    (('test',), 'nut')
    """
    with new_folder(folder) as partial:
        write_rows(
            partial / "corpus.jsonl.gz",
            (
                {"_id": key, "title": title, "text": ""}
                for key, title in documents.items()
            ),
        )
        write_queries(partial, queries, qrels_by_split)
        lines = (weighted_line(*click) for click in clicks)
        write_lines(partial / f"{CLICKS}.gz", lines)
    return Collection(folder)


def write_queries(
    folder: Path,
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, _Qrels],
) -> None:
    """Writes the queries and the judgements of a BEIR folder."""
    write_rows(
        folder / "queries.jsonl.gz",
        ({"_id": key, "text": text} for key, text in queries.items()),
    )
    (folder / "qrels").mkdir()
    for split, qrels in qrels_by_split.items():
        path = folder / "qrels" / f"{split}.tsv"
        with path.open("w", encoding="utf-8") as file:
            file.write("query-id\tcorpus-id\tscore\n")
            for query, scores in qrels.items():
                for document, score in scores.items():
                    file.write(f"{query}\t{document}\t{score}\n")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a compressed file of JSON lines."""
    write_lines(path, (json.dumps(row) + "\n" for row in rows))

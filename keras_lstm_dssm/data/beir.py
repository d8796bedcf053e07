"""Reads and writes test collections as BEIR folders."""

import functools
import gzip
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence

from keras_lstm_dssm.data.click_lines import Pair, click_line
from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import flush_to_disk

SPLITS = ("train", "dev", "test")
_CLICKS = "clicks.train.tsv"


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
        path = os.path.join(self.folder, _CLICKS)
        paths = [p for p in (path, f"{path}.gz") if os.path.isfile(p)]
        return ClickLog(paths[0]) if paths else None

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
                f"{os.path.join(self.folder, _CLICKS)}: no such file, expected"
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

    def _file(self, name: str) -> str:
        path = os.path.join(self.folder, name)
        for candidate in (path, f"{path}.gz"):
            if os.path.isfile(candidate):
                return candidate
        raise InputError(
            f"{path}: no such file (nor with .gz), expected a BEIR folder with"
            " corpus.jsonl, queries.jsonl and qrels/: check the path"
        )

    def _texts(self, name: str, fields: Sequence[str]) -> dict[str, str]:
        """Reads id -> the first of the fields that is not empty."""
        path = self._file(name)
        texts: dict[str, str] = {}
        for number, line in enumerate(text_lines(path), 1):
            try:
                key, text = _parse_row(line, fields)
                if key in texts:
                    raise _WrongRow(f"_id {key!r} again", "each id once")
            except _WrongRow as error:
                found, expected = error.args
                raise InputError(
                    f"{path}:{number}: found {found}, expected {expected}:"
                    " correct or remove the line"
                ) from None
            texts[key] = text
        return texts


class _WrongRow(ValueError):
    """Reports what was found in a line of a JSON file, and was expected."""


def _parse_row(line: str, fields: Sequence[str]) -> tuple[str, str]:
    """Returns the id of a row and the first field that is not empty."""
    try:
        row = json.loads(line)
        key = row["_id"]
    except (ValueError, KeyError, TypeError):
        raise _WrongRow(f"{line[:60]!r}", '{"_id": ...} on one line') from None
    if isinstance(key, int):
        key = str(key)
    if not isinstance(key, str) or key.split() != [key]:
        raise _WrongRow(f"_id {key!r:.60}", "an id without white space")
    for field in fields:
        text = row.get(field)
        if text is not None and not isinstance(text, str):
            raise _WrongRow(f"{field} {text!r:.60}", "a string")
        if text and text.strip():
            return key, text
    raise _WrongRow(f"an empty {' and '.join(fields)}", "a text for each _id")


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


_HEADER = "query-id\tcorpus-id\tscore\n"


def write_collection(
    folder: str | os.PathLike[str],
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, Mapping[str, Mapping[str, int]]],
    clicks: Iterable[Pair],
) -> Collection:
    """Writes a BEIR folder under a temporary name, and renames it.

    The bytes depend on the arguments only: the gzip headers hold no time and
    no name. A folder that is already there is not replaced.

    Args:
        folder: The folder to create.
        documents: Document id -> title.
        queries: Query id -> text.
        qrels_by_split: Split -> query id -> document id -> score.
        clicks: The training pairs, each as often as it was clicked.

    Raises:
        OSError: The folder cannot be written; the partial one is removed.
    """
    folder = os.path.abspath(folder)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    partial = tempfile.mkdtemp(dir=os.path.dirname(folder), suffix=".partial")
    try:
        _write_gz(
            os.path.join(partial, "corpus.jsonl.gz"),
            (
                json.dumps({"_id": key, "title": title, "text": ""}) + "\n"
                for key, title in documents.items()
            ),
        )
        _write_gz(
            os.path.join(partial, "queries.jsonl.gz"),
            (
                json.dumps({"_id": key, "text": text}) + "\n"
                for key, text in queries.items()
            ),
        )
        _write_gz(
            os.path.join(partial, "clicks.train.tsv.gz"),
            map(click_line, clicks),
        )
        os.mkdir(os.path.join(partial, "qrels"))
        for split, qrels in qrels_by_split.items():
            path = os.path.join(partial, "qrels", f"{split}.tsv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(_HEADER)
                for query, scores in qrels.items():
                    for document, score in scores.items():
                        file.write(f"{query}\t{document}\t{score}\n")
        os.chmod(partial, 0o755)
        for parent, _, names in os.walk(partial):
            for path in (*(os.path.join(parent, n) for n in names), parent):
                flush_to_disk(path)
        if not os.path.isdir(folder):  # another process may have been faster
            os.rename(partial, folder)
            flush_to_disk(os.path.dirname(folder))
    except OSError as error:
        # A full disk is reported without a name.
        if error.errno and error.filename is None:
            error.filename = folder
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Collection(folder)


def _write_gz(path: str, lines: Iterable[str]) -> None:
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
    ):
        file.writelines(line.encode() for line in lines)

"""Test collections in the form of BEIR: documents, queries, grades."""

import functools
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keras_lstm_dssm.data.click_lines import Pair, click_line
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import flush_to_disk, replacing

SPLITS = ("train", "dev", "test")
_CLICKS = "clicks.train.tsv"


class Collection:
    """A BEIR folder.

    It holds `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` (`_id`,
    `text`), `qrels/<split>.tsv` (a header, then query-id, corpus-id, score)
    and, where there is a click log, `clicks.train.tsv`; all but the qrels may
    be compressed and end in `.gz`. Files are read when first asked for.

    Args:
        folder: The folder.

    Attributes:
        folder: Its path, a str.
        splits: Those of "train", "dev" and "test" that are there.

    Raises:
        InputError: a file is missing or a line is wrong.

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
        return {
            key: row.get("title") or row.get("text", "")
            for key, row in self._rows("corpus.jsonl")
        }

    @functools.cached_property
    def queries(self) -> dict[str, str]:
        """Query id -> text."""
        return {
            key: row.get("text", "") for key, row in self._rows("queries.jsonl")
        }

    @functools.cached_property
    def clicks(self) -> ClickLog | None:
        """The folder's click file, where there is one."""
        path = os.path.join(self.folder, _CLICKS)
        found = [p for p in (path, f"{path}.gz") if os.path.isfile(p)]
        return ClickLog(found[0]) if found else None

    def qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Returns query id -> document id -> score, in the file's order."""
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
            if len(fields) != 3 or not fields[2].lstrip("-").isdigit():
                raise InputError(
                    f"{path}:{number}: found {line[:60]!r}, expected query-id"
                    " TAB corpus-id TAB whole number: correct the line"
                )
            query, document, score = fields
            for kind, key, known in (
                ("query", query, self.queries),
                ("document", document, self.documents),
            ):
                if key not in known:
                    raise InputError(
                        f"{path}:{number}: found {kind} {key!r}, expected one"
                        " of the collection's: add it or remove the line"
                    )
            qrels.setdefault(query, {})[document] = int(score)
        return qrels

    def training_log(
        self,
        min_relevant: int = 1,
        write_to: str | os.PathLike[str] | None = None,
    ) -> ClickLog:
        """Returns the clicks to train on.

        Args:
            min_relevant: Where there is no click file, the least score in
                qrels/train that counts as a click.
            write_to: The file to write these clicks to (the folder itself
                is left alone); not needed where there is a click file.

        Raises:
            InputError: there is no click file and no `write_to`, or no title
                of such a score.
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
        with (
            replacing(write_to) as partial,
            partial.open("w", encoding="utf-8") as file,
        ):
            file.writelines(map(click_line, clicks))
        return ClickLog(write_to)

    def judged_negatives(self, min_relevant: int = 1) -> dict[str, list[str]]:
        """Returns query -> titles that qrels/train says do not answer it.

        Args:
            min_relevant: The score from which a title does answer.
        """
        found: dict[str, list[str]] = {}
        if "train" not in self.splits:
            return found
        for query, scores in self.qrels("train").items():
            # As the lines of a click file are read.
            text = " ".join(self.queries[query].split())
            found.setdefault(text, []).extend(
                " ".join(self.documents[document].split())
                for document, score in scores.items()
                if score < min_relevant
            )
        return found

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

    def _rows(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        path = self._file(name)
        for number, line in enumerate(text_lines(path), 1):
            try:
                row = json.loads(line)
                yield str(row["_id"]), row
            except (json.JSONDecodeError, KeyError, TypeError):
                raise InputError(
                    f'{path}:{number}: found {line[:60]!r}, expected {{"_id":'
                    " ...} on one line: correct the line"
                ) from None


def describe(collection: Collection) -> str:
    """Says in one line a split what a collection holds."""
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
    """Writes a BEIR folder, beside its place, and renames it.

    The bytes are a function of the arguments: no time, no name in the
    gzip headers. A folder that is already there is kept.

    Args:
        folder: Where to.
        documents: Document id -> title.
        queries: Query id -> text.
        qrels_by_split: Split -> query id -> document id -> score.
        clicks: The training pairs, with repetitions.

    Raises:
        OSError: It cannot be written; nothing is left of it.
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
        for place, _, names in os.walk(partial):
            for path in (*(os.path.join(place, n) for n in names), place):
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

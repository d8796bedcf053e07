"""TREC run and qrels files, which trec_eval and ir_measures read."""

import gzip
import io
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.ranking import Qrels, Ranker, Run
from keras_lstm_dssm.files import replacing

Path = str | os.PathLike[str]


def write_run(path: Path, run: Run, tag: str = "keras_lstm_dssm") -> None:
    """Writes a run file of lines `query Q0 document rank score tag`.

    Scores have nine significant digits, which represent a float32 exactly,
    so that a reader gets the same strict order.

    Args:
        path: The file, replaced when it is complete; compressed where its
            name ends in `.gz`.
        run: Query id -> document id -> score, best first.
        tag: The system's name.

    Raises:
        InputError: An id or the tag is empty or holds white space.

    Example:
    >>> run = {"q1": {"d2": 0.75, "d1": 0.5}}
    >>> write_run(Path("test.trec"), run, tag="mine")
    >>> print(Path("test.trec").read_text())
    q1 Q0 d2 1 0.75 mine
    q1 Q0 d1 2 0.5 mine
    """
    _check(path, "tag", [tag])
    _check(path, "query id", run)
    _check(path, "document id", {d for ranked in run.values() for d in ranked})
    lines = (
        f"{query_id} Q0 {document_id} {rank} {score:.9g} {tag}\n"
        for query_id, ranked in run.items()
        for rank, (document_id, score) in enumerate(ranked.items(), 1)
    )
    _write(path, lines)


def write_qrels(path: Path, qrels: Qrels) -> None:
    r"""Writes a qrels file of lines `query 0 document grade`.

    Raises:
        InputError: An id is empty or holds white space.

    Example:
    >>> write_qrels(Path("test.qrels"), {"q1": {"d1": 1}})
    >>> Path("test.qrels").read_text()
    'q1 0 d1 1\n'
    """
    _check(path, "query id", qrels)
    ids = {document_id for judged in qrels.values() for document_id in judged}
    _check(path, "document id", ids)
    lines = (
        f"{query_id} 0 {document_id} {grade}\n"
        for query_id, judged in qrels.items()
        for document_id, grade in judged.items()
    )
    _write(path, lines)


def read_run(path: Path) -> Run:
    """Reads a run file of any system with `ir_measures`.

    Like trec_eval, it orders documents by score and ignores their ranks;
    `Ranker` breaks ties. Empty lines are skipped.

    Args:
        path: The file; compressed where its name ends in `.gz`.

    Raises:
        InputError: A line is not one of a run file, or a document occurs
            twice for one query.

    Example:
    >>> write_run(Path("read.trec"), {"q1": {"d2": 0.75, "d1": 0.5}})
    >>> read_run(Path("read.trec"))
    {'q1': {'d2': 0.75, 'd1': 0.5}}
    """
    import ir_measures

    scores: Run = {}
    with _open(path, "rt") as file:
        lines = _NumberedLines(file)
        try:
            for query_id, document_id, score in ir_measures.read_trec_run(
                lines
            ):
                if not math.isfinite(score):
                    raise ValueError(score)
                if document_id in scores.setdefault(query_id, {}):
                    raise InputError(
                        f"{os.fspath(path)}:{lines.number}: found document"
                        f" {document_id} twice for query {query_id}, expected"
                        " it once: remove one line"
                    )
                scores[query_id][document_id] = score
        except InputError:
            raise
        except ValueError:
            raise InputError(
                f"{os.fspath(path)}:{lines.number}: found"
                f" {lines.line.strip()[:60]!r}, expected 'query Q0 document"
                " rank score tag', with a finite score: correct the line"
            ) from None
    return {
        query_id: Ranker(list(by_id)).rank(query_id, list(by_id.values()))
        for query_id, by_id in scores.items()
    }


class _NumberedLines:
    """Iterates over a text file, and records the line that was read last."""

    def __init__(self, file: IO[str]) -> None:
        self.read = file.read  # ir_measures recognises a file by it
        self.number, self.line = 0, ""
        self._file = file

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._file, 1):
            self.number, self.line = number, line
            yield line


def _check(path: Path, kind: str, names: Iterable[str]) -> None:
    for name in names:
        if name.split() != [name]:
            raise InputError(
                f"{os.fspath(path)}: cannot write {kind} {name!r}, as fields"
                " of a TREC file are separated by white space; rename it"
            )


def _write(path: Path, lines: Iterator[str]) -> None:
    with replacing(path) as partial, _open(partial, "wt") as file:
        file.writelines(lines)


@contextmanager
def _open(path: Path, mode: str) -> Iterator[IO[str]]:
    """Opens a text file, which is compressed if its name ends in `.gz`."""
    if not os.fspath(path).endswith(".gz"):
        with open(path, mode, encoding="utf-8") as file:
            yield file
        return
    # Without time and name, the same content gives the same bytes.
    with (
        open(path, mode.replace("t", "b")) as raw,
        gzip.GzipFile("", mode.replace("t", "b"), 6, raw, mtime=0) as binary,
        io.TextIOWrapper(binary, encoding="utf-8") as file,
    ):
        yield file

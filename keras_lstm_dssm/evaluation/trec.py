"""TREC run and qrels files, which trec_eval and ir_measures read."""

import math
import os
from collections.abc import Iterable, Iterator

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.ranking import Qrels, Ranker, Run
from keras_lstm_dssm.files import replacing

Path = str | os.PathLike[str]


def write_run(path: Path, run: Run, tag: str = "keras_lstm_dssm") -> None:
    """Writes a run: `query Q0 document rank score tag`, a line each.

    Scores have nine digits, which is every bit of a float32: a reader gets
    the same strict order back.

    Args:
        path: The file, replaced in one step when it is complete.
        run: Query id -> document id -> score, best first.
        tag: The system's name.

    Raises:
        InputError: An id or the tag is empty or holds white space.
    """
    _check(path, "tag", [tag])
    _check(path, "query id", run)
    _check(path, "document id", {d for ranked in run.values() for d in ranked})
    _write(
        path,
        (
            f"{query_id} Q0 {document_id} {rank} {score:.9g} {tag}\n"
            for query_id, ranked in run.items()
            for rank, (document_id, score) in enumerate(ranked.items(), 1)
        ),
    )


def write_qrels(path: Path, qrels: Qrels) -> None:
    """Writes judgements: `query 0 document grade`, a line each.

    Raises:
        InputError: An id is empty or holds white space.
    """
    _check(path, "query id", qrels)
    _check(path, "document id", {d for found in qrels.values() for d in found})
    _write(
        path,
        (
            f"{query_id} 0 {document_id} {grade}\n"
            for query_id, judged in qrels.items()
            for document_id, grade in judged.items()
        ),
    )


def read_run(path: Path) -> Run:
    """Reads a run file, of this package or another.

    As trec_eval does, it goes by the scores alone; ties are broken by
    `Ranker`.

    Raises:
        InputError: A line is no line of a run file, or a document occurs
            twice for one query.
    """
    found: Run = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                query_id, _, document_id, _, score, _ = line.split()
                value = float(score)
                if not math.isfinite(value):
                    raise ValueError(score)
            except ValueError:
                raise InputError(
                    f"{os.fspath(path)}, line {number}: found {line.strip()!r},"
                    " expected 'query Q0 document rank score tag'"
                ) from None
            if document_id in found.setdefault(query_id, {}):
                raise InputError(
                    f"{os.fspath(path)}, line {number}: document {document_id}"
                    f" occurs twice for query {query_id}; remove one"
                )
            found[query_id][document_id] = value
    return {
        query_id: Ranker(list(scores)).rank(query_id, list(scores.values()))
        for query_id, scores in found.items()
    }


def _check(path: Path, what: str, names: Iterable[str]) -> None:
    for name in names:
        if name.split() != [name]:
            raise InputError(
                f"{os.fspath(path)}: cannot write {what} {name!r}, as fields"
                " of a TREC file are separated by white space; rename it"
            )


def _write(path: Path, lines: Iterator[str]) -> None:
    with (
        replacing(path) as partial,
        open(partial, "w", encoding="utf-8") as file,
    ):
        file.writelines(lines)

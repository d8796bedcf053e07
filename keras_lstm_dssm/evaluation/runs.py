"""Rankings without ties (runs), TREC run files, and the class `System`."""

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.plain_files import text_lines, write_lines

Run = dict[str, dict[str, float]]
"""Query id -> document id -> score, best first. Scores are strictly descending
as float32 numbers, because trec_eval reads only 32 bits of a score."""

Qrels = dict[str, dict[str, int]]
"""Query id -> document id -> grade (0: judged and not relevant)."""

Texts = Mapping[str, str]
"""Id of a query or document -> text."""

Candidates = Mapping[str, Sequence[str]]
"""Query id -> ids of the documents to rank."""

ListScores = dict[str, dict[str, float]]
"""Query id -> document id -> score, in the order of the candidates. Scores may
be equal."""

# The bits of the largest subnormal float32. No score in a run is subnormal,
# because some programs read subnormal numbers as zero.
_SUBNORMAL = 0x007FFFFF


class TieBreaker:
    """Orders documents by score, ties by a hash of query id and document id."""

    def __init__(self, document_ids: Sequence[str]) -> None:
        self._ids = np.array(document_ids, dtype=object)
        self._hashes = np.array([_hash(i) for i in document_ids], np.uint64)

    def rank(
        self,
        query_id: str,
        scores: np.ndarray | Sequence[float],
        depth: int | None = None,
        positions: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Returns document id -> score of one query, best first.

        `scores[i]` belongs to `document_ids[positions[i]]`. Without
        `positions`, `scores[i]` belongs to `document_ids[i]`.
        """
        scores = np.asarray(scores, np.float32)
        if not np.isfinite(scores).all():
            raise ValueError(f"query {query_id}: a score is not finite")
        if positions is None:
            positions = np.arange(len(self._ids))
        order = self.order(query_id, scores, depth, positions)
        ranked = self._ids[positions[order]].tolist()
        # trec_eval would order documents with equal scores by document id.
        strict = strictly_descending(scores[order]).tolist()
        return dict(zip(ranked, strict, strict=True))

    def order(
        self,
        query_id: str,
        scores: np.ndarray,
        depth: int | None,
        positions: np.ndarray,
    ) -> np.ndarray:
        """Returns indices of the `depth` largest scores, largest first."""
        best = np.flatnonzero(scores >= kth_largest(scores, depth))
        ties = _mix(self._hashes[positions[best]] ^ np.uint64(_hash(query_id)))
        return best[np.lexsort((ties, -scores[best]))[:depth]]


def rank_lists(lists: ListScores) -> Run:
    """Orders the documents of each query by score, see `TieBreaker`."""
    return {
        query_id: TieBreaker(list(scores)).rank(query_id, list(scores.values()))
        for query_id, scores in lists.items()
    }


_FOLD = 64  # with more than `_FOLD * k` scores, `kth_largest` makes groups


def kth_largest(scores: np.ndarray, k: int | None) -> float:
    """Returns the k-th largest score; -inf for k or fewer scores."""
    if k is None or k >= len(scores):
        return -np.inf
    if len(scores) > _FOLD * k:
        # A group has 16 scores. Let m be the k-th largest of all groups'
        # maxima. At least k scores are m or more, so scores below m are not
        # among the k largest.
        maxima = scores[: len(scores) // 16 * 16].reshape(16, -1).max(axis=0)
        scores = scores[scores >= kth_largest(maxima, k)]
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def strictly_descending(scores: np.ndarray) -> np.ndarray:
    """Lowers ties in descending float32 scores `[n]` as little as possible."""
    # Neighbouring floats are consecutive integers if their bits are read as
    # sign and magnitude. If s[i] is the integer of score i, the result is
    # r[i] = min(s[i], r[i-1] - 1). So r[i] + i is the running minimum of
    # s[i] + i.
    bits = np.ascontiguousarray(scores, np.float32).view(np.int32)
    magnitude = np.maximum((bits & 0x7FFFFFFF) - np.int64(_SUBNORMAL), 0)
    steps = np.arange(len(bits))
    number = np.where(bits < 0, -magnitude, magnitude)
    number = np.minimum.accumulate(number + steps) - steps
    magnitude = np.abs(number) + _SUBNORMAL * (number != 0)
    result = magnitude.astype(np.int32).view(np.float32)
    return np.where(number < 0, -result, result)


def _hash(text: str) -> int:
    # Unlike Python's `hash`, this hash is the same in every process.
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def _mix(values: np.ndarray) -> np.ndarray:
    """Mixes the bits of 64-bit numbers (the finalizer of SplitMix64)."""
    values = (values ^ (values >> 30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> 27)) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> 31)


class System(ABC):
    """Base class of ranking systems: BM25, trained models and others.

    Subclasses score the candidates of a query by `list_scores`. A system holds
    no corpus: the documents are an argument of each method.

    Attributes:
        encode_document: Function from n texts to their vectors, float
            `[n, d]`, an array or a sparse matrix; `None` for a system without
            vectors.

    Example:
    >>> class Shortest(System):
    ...     def list_scores(self, queries, candidates, documents):
    ...         return {
    ...             query: {d: -float(len(documents[d])) for d in ids}
    ...             for query, ids in candidates.items()
    ...         }
    >>> candidates, titles = {"q": ["d1", "d2"]}, {"d1": "bolt", "d2": "nut"}
    >>> Shortest().rerank({"q": "hex"}, candidates, titles)
    {'q': {'d2': -3.0, 'd1': -4.0}}
    """

    encode_document: Callable[[list[str]], Any] | None = None

    @abstractmethod
    def list_scores(
        self, queries: Texts, candidates: Candidates, documents: Texts
    ) -> ListScores:
        """Scores the candidates of each query.

        Args:
            queries: Query id -> text.
            candidates: Query id -> ids of the documents to score. Queries
                without candidates are left out of the result.
            documents: Document id -> title, the whole corpus. A system may
                compute statistics of the corpus, such as the IDF.

        Returns:
            A score for each candidate, in the order of the candidates. Better
            candidates have higher scores; scores may be equal.
        """

    def rerank(
        self, queries: Texts, candidates: Candidates, documents: Texts
    ) -> Run:
        """Orders the candidates of each query by `list_scores`, best first."""
        return rank_lists(self.list_scores(queries, candidates, documents))

    def retrieve(self, queries: Texts, documents: Texts, depth: int) -> Run:
        """Retrieves the best documents of the whole corpus.

        Args:
            queries: Query id -> text.
            documents: Document id -> title.
            depth: Largest number of documents for each query. A system may
                leave out documents that do not match the query at all.

        Returns:
            The best documents of each query, best first.

        Raises:
            InputError: The system only scores lists of candidates.
        """
        raise InputError(
            f"{type(self).__name__} only scores lists of candidates and cannot"
            " search a corpus: rerank judged lists"
        )


Path = str | os.PathLike[str]


def write_run(path: Path, run: Run, tag: str = "keras_lstm_dssm") -> None:
    """Writes a run file of lines `query Q0 document rank score tag`.

    Scores have nine significant digits, which represent a float32 exactly.

    Args:
        path: The file, compressed if its name ends in `.gz`. An existing file
            is replaced only when the new file is complete.
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
    _check_names(path, "tag", [tag])
    _check_names(path, "query id", run)
    _check_names(
        path, "document id", {d for ranked in run.values() for d in ranked}
    )
    lines = (
        f"{query_id} Q0 {document_id} {rank} {score:.9g} {tag}\n"
        for query_id, ranked in run.items()
        for rank, (document_id, score) in enumerate(ranked.items(), 1)
    )
    with replacing(path) as partial:
        write_lines(partial, lines)


def read_run(path: Path) -> Run:
    """Reads a TREC run file, from any search system.

    Documents are ordered by score, and ranks are ignored, as in trec_eval.
    `TieBreaker` breaks ties. Empty lines are skipped.

    Args:
        path: The file, compressed if its name ends in `.gz`.

    Raises:
        InputError: The file cannot be read, a line is malformed, or a document
            occurs twice for one query.

    Example:
    >>> write_run(Path("read.trec"), {"q1": {"d2": 0.75, "d1": 0.5}})
    >>> read_run(Path("read.trec"))
    {'q1': {'d2': 0.75, 'd1': 0.5}}
    """
    path = os.fspath(path)
    scores: Run = {}
    for number, line in enumerate(text_lines(path, blank_end=True), 1):
        if not (fields := line.split()):
            continue
        try:
            query_id, _, document_id, _, text, _ = fields
            score = float(text)
            if not math.isfinite(score):
                raise ValueError(score)
        except ValueError:
            raise InputError(
                f"{path}:{number}: found {line.strip()[:60]!r}, expected"
                " 'query Q0 document rank score tag', with a finite score:"
                " correct the line"
            ) from None
        by_id = scores.setdefault(query_id, {})
        if document_id in by_id:
            raise InputError(
                f"{path}:{number}: found document {document_id} twice for"
                f" query {query_id}, expected it once: remove one line"
            )
        by_id[document_id] = score
    return rank_lists(scores)


def _check_names(path: Path, kind: str, names: Iterable[str]) -> None:
    for name in names:
        if name.split() != [name]:
            raise InputError(
                f"{os.fspath(path)}: cannot write {kind} {name!r}, as fields"
                " of a TREC file are separated by white space; rename it"
            )

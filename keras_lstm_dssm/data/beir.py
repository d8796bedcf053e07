"""Collection: reads a test collection from a BEIR folder."""

import functools
import os
from collections.abc import Container

from keras_lstm_dssm.data.click_lines import Pair
from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.judged_queries import JudgedQueries
from keras_lstm_dssm.errors import InputError

CLICKS = "clicks.train.tsv"


class Collection(JudgedQueries):
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
        super().__init__(folder)
        for name in ("corpus.jsonl", "queries.jsonl"):
            self._file(name)
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
    def clicks(self) -> ClickLog | None:
        """The folder's click file, or `None` without one."""
        path = self._find(CLICKS)
        return ClickLog(path) if path else None

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

        A title of two ids may be judged relevant, too: `judged_negatives` of
        `keras_lstm_dssm.data` leaves such titles out.

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

    def _judged_documents(self, split: str) -> Container[str]:
        return self.documents


def describe(collection: Collection) -> str:
    """Describes the sizes of a collection, one line for each split.

    Example:
    >>> print(describe(Collection("parts")))
    4 titles, 3 queries
    train: 3 clicks
    dev: 1 queries, 2 pairs
    test: 2 queries, 4 pairs
    """
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

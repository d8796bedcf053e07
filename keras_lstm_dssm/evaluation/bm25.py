"""BM25System: the term-matching baseline, through bm25s."""

import logging
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.evaluation.ranking import Ranker, Run


def words(text: str) -> list[str]:
    """Splits on white space after NFKC and case folding.

    These are the words that the encoders see (`text.split_words`), but for
    invisible code points, which those drop.

    >>> words("Angle-Bracket, 12 Gauge")
    ['angle-bracket,', '12', 'gauge']
    """
    return unicodedata.normalize("NFKC", text).casefold().split()


def alphanumeric(text: str) -> list[str]:
    """Finds runs of letters and digits, case folded.

    >>> alphanumeric("Angle-Bracket, 12 Gauge")
    ['angle', 'bracket', '12', 'gauge']
    """
    return re.findall(r"[^\W_]+", " ".join(words(text)))


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {
    "words": words,
    "alphanumeric": alphanumeric,
}


class BM25System:
    """Ranks by BM25 with Lucene's IDF, log(1 + (N - df + 0.5)/(df + 0.5)).

    The IDF is that of the whole corpus in both modes. Retrieval returns only
    documents that share a word with the query.

    Args:
        k1: Saturation of the term frequency.
        b: Weight of the title's length, from 0 to 1.
        tokenizer: String -> words; `words` or `alphanumeric`, or your own.

    Reference: Kamphuis et al. 2020, "Which BM25 do you mean?", for the
        variants; Lù 2024, "BM25S", for the library.

    Example:
    >>> BM25System().retrieve({"q": "cat"}, {"a": "a cat", "b": "dog"}, 10)
    {'q': {'a': 0.27725887298583984}}
    """

    def __init__(
        self,
        k1: float = 1.2,
        b: float = 0.75,
        tokenizer: Callable[[str], list[str]] = words,
    ) -> None:
        self.k1 = k1
        self.b = b
        self.tokenizer = tokenizer

    def rerank(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> Run:
        """Orders candidates; see `System.rerank`."""
        index = self._index(documents)
        row = {d: i for i, d in enumerate(documents)}
        return {
            query_id: Ranker(found).rank(
                query_id,
                self._scores(index, queries[query_id])[[row[d] for d in found]],
            )
            for query_id, found in candidates.items()
        }

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Searches the whole corpus; see `System.retrieve`."""
        index = self._index(documents)
        ranker = Ranker(list(documents))
        run: Run = {}
        for query_id, query in queries.items():
            scores = self._scores(index, query)
            match = np.flatnonzero(scores)
            run[query_id] = ranker.rank(query_id, scores[match], depth, match)
        return run

    def _index(self, documents: Mapping[str, str]) -> Any:
        import bm25s

        # It sets its own level to DEBUG when it is imported.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        index = bm25s.BM25(k1=self.k1, b=self.b, method="lucene")
        with np.errstate(invalid="ignore"):  # 0/0 without any words
            index.index(
                [self.tokenizer(title) for title in documents.values()],
                create_empty_token=False,
                show_progress=False,
            )
        return index

    def _scores(self, index: Any, query: str) -> np.ndarray:
        ids = index.get_tokens_ids(self.tokenizer(query))
        if not ids:
            return np.zeros(index.scores["num_docs"], np.float32)
        return index.get_scores_from_ids(ids)

"""BM25System: the term-matching baseline, computed by bm25s."""

import functools
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.baselines.scoring_system import Scores, ScoringSystem
from keras_lstm_dssm.baselines.tokenizers import (
    Tokenizer,
    cached_titles,
    space_separated,
)


class BM25System(ScoringSystem):
    """Ranks by BM25 with Lucene's IDF, log(1 + (N - df + 0.5)/(df + 0.5)).

    The IDF is computed over the whole corpus in both modes. Retrieval returns
    only documents that share a word with the query. Systems with other k1 and
    b on the same corpus use the same tokenized titles.

    Args:
        k1: Saturation of the term frequency; a larger k1 saturates later.
        b: Influence of the title's length, from 0 (none) to 1.
        tokenizer: String -> words; one of `TOKENIZERS`, or any hashable
            function.

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
        tokenizer: Tokenizer = space_separated,
    ) -> None:
        self.k1 = k1
        self.b = b
        self.tokenizer = tokenizer

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Scores all titles; see `ScoringSystem.scores`."""
        index = _index(titles, self.tokenizer, self.k1, self.b)
        for query in queries:
            ids = index.get_tokens_ids(self.tokenizer(query))
            if ids:
                scores = index.get_scores_from_ids(ids)
            else:
                scores = np.zeros(len(titles), np.float32)
            yield scores, np.flatnonzero(scores)


@functools.lru_cache(1)  # rerank and retrieve use one index
def _index(
    titles: tuple[str, ...], tokenizer: Tokenizer, k1: float, b: float
) -> Any:
    import bm25s

    # bm25s sets its log level to DEBUG when it is imported.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    tokenized = cached_titles(titles, tokenizer)
    index = bm25s.BM25(k1=k1, b=b, method="lucene")
    with np.errstate(invalid="ignore"):  # 0/0 if no title has a word
        index.index(
            (tokenized.ids, tokenized.vocabulary),
            create_empty_token=False,
            show_progress=False,
        )
    return index

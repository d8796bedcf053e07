"""The titles nearest to a text by BM25, for negatives that are hard."""

from collections.abc import Iterator, Sequence

import numpy as np

from keras_lstm_dssm.baselines.bm25 import BM25System
from keras_lstm_dssm.baselines.tokenizers import alphanumeric
from keras_lstm_dssm.evaluation.ranking import kth_largest


def bm25_neighbours(
    texts: Sequence[str], titles: Sequence[str], k: int
) -> Iterator[np.ndarray]:
    """Yields the rows of the titles with the highest BM25 scores.

    Words are runs of letters and digits; k1 is 1.2, b is 0.75. Titles with
    the same score are in their order.

    Args:
        texts: The texts to search for.
        titles: The titles to search.
        k: The number of titles for each text.

    Yields:
        For each text, integers of shape `[k]` or less, best first: titles
        without a word of the text are left out.

    Example:
    >>> [row.tolist() for row in bm25_neighbours(["a b"], ["b", "c", "a b"], 2)]
    [[2, 0]]
    """
    system = BM25System(tokenizer=alphanumeric)
    for scores, matching in system.scores(texts, tuple(titles)):
        assert matching is not None  # BM25 lists them
        matching_scores = scores[matching]
        best = matching_scores >= kth_largest(matching_scores, k)
        order = np.argsort(-matching_scores[best], kind="stable")
        yield matching[best][order[:k]]

"""Statistics of a pair scorer over all judged queries of the data.

Where the best match of an MV-LSTM lies, and which queries one scorer answers
right and another one wrong, as in Table 4 of Wan et al. 2016.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.triples import JudgedList
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.significance import randomisation_test
from keras_lstm_dssm.layers.word_vectors import WordVectors
from keras_lstm_dssm.matchers.matcher import rows_of
from keras_lstm_dssm.matchers.mv_lstm import MVLSTM
from keras_lstm_dssm.models.pair_scorer import PairScorer

_PAIRS_AT_ONCE = 256


class BestPositions(NamedTuple):
    """At which words MV-LSTM matches queries and right answers best.

    All but `pairs` are shares of the pairs.
    """

    pairs: int
    query: float  # the query's word is neither the first nor the last one
    document: float  # the document's word is neither
    both: float
    chance: float  # `both`, if a cell is drawn at random
    last: float  # both words are the last ones, which LSTM-RNN compares


def best_positions(
    layer: WordVectors, matcher: MVLSTM, lists: Sequence[JudgedList]
) -> BestPositions:
    """Finds the best matching words of each query and each right answer."""
    pairs = [(one.query, right) for one in lists for right in one.positives]
    found: list[np.ndarray] = []
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        some = zip(*pairs[start : start + _PAIRS_AT_ONCE], strict=True)
        sides = []
        for side, texts in zip(("query", "document"), some, strict=True):
            words = layer.distinct(texts)
            represented = matcher.represent(layer(words), side)
            sides.append(rows_of(represented, words.text_index))
        (_, query, m), (_, document, n) = sides
        cells = matcher.k_max.strongest_of_rows(
            matcher.comparison.compare_rows(query, document), m, n
        )
        # [2, pairs]: positions in the slice with the largest cell.
        best = np.argmax(cells.values[:, :, 0], axis=1)
        rows = np.arange(len(best))
        position = np.stack([part.numpy()[rows, best, 0] for part in cells[1:]])
        length = np.stack([m, n])
        inside = (position > 0) & (position < length - 1)
        chance = (np.maximum(length - 2, 0) / length).prod(axis=0)
        last = (position == length - 1).all(axis=0)
        found.append(np.stack([*inside, inside.all(axis=0), chance, last]))
    shares = np.concatenate(found, axis=1).mean(axis=1)
    return BestPositions(len(pairs), *map(float, shares))


class TwoScorers(NamedTuple):
    """How many queries each of two scorers answers right (P@1)."""

    queries: int
    both: int
    only_this: int
    only_other: int
    neither: int
    p: float  # of equal P@1, see `randomisation_test`


def compare_scorers(
    scorer: PairScorer, other: PairScorer, lists: Sequence[JudgedList]
) -> tuple[TwoScorers, list[JudgedList]]:
    """Counts the queries that each of two pair scorers answers right (P@1).

    Queries without a right or without a wrong judged answer are left out.

    Returns:
        The comparison, and the lists that `scorer` alone answers right, with
        the wrong answer that `other` prefers as the only negative.

    Raises:
        InputError: No list has right and wrong answers.
    """
    lists = [one for one in lists if one.positives and one.negatives]
    if not lists:
        raise InputError(
            "found no query with right and wrong answers, expected judged"
            " lists to compare two scorers on: name other --data"
        )
    (first, _), (second, preferred) = (
        _answers(model, lists) for model in (scorer, other)
    )
    alone = first & ~second
    compared = TwoScorers(
        len(lists),
        int((first & second).sum()),
        int(alone.sum()),
        int((second & ~first).sum()),
        int((~first & ~second).sum()),
        float(randomisation_test(first.astype(float) - second)[0]),
    )
    return compared, [
        lists[row]._replace(negatives=[preferred[row]])
        for row in np.flatnonzero(alone)
    ]


def _answers(
    scorer: PairScorer, lists: Sequence[JudgedList]
) -> tuple[np.ndarray, list[str]]:
    """Returns which queries are answered right, and the best wrong answers."""
    texts = [[*one.positives, *one.negatives] for one in lists]
    scores = scorer.score_pairs(
        [one.query for one, t in zip(lists, texts, strict=True) for _ in t],
        [text for of_list in texts for text in of_list],
    )
    ends = np.cumsum([len(of_list) for of_list in texts])[:-1]
    right, negatives = [], []
    for one, of_list in zip(lists, np.split(scores, ends), strict=True):
        positive, negative = np.split(of_list, [len(one.positives)])
        right.append(positive.max() > negative.max())
        negatives.append(one.negatives[int(negative.argmax())])
    return np.array(right), negatives

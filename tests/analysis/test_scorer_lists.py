"""Statistics over all queries, against the matrices and scores of pairs."""

import numpy as np
import pytest

from keras_lstm_dssm.analysis import compare_words
from keras_lstm_dssm.analysis.scorer_lists import (
    best_positions,
    compare_scorers,
)
from keras_lstm_dssm.data.triples import JudgedList
from keras_lstm_dssm.errors import InputError
from tests.analysis.test_scorer_report import VOCABULARY, scorer


def random_lists(count: int) -> list[JudgedList]:
    """Draws random queries, each with one or two right answers of four."""
    random, lists = np.random.default_rng(0), []
    for row in range(count):
        texts: dict[str, None] = {}
        while len(texts) < 5:
            words = random.permutation(VOCABULARY)[: random.integers(1, 5)]
            texts[" ".join(words)] = None
        query, *documents = texts
        right = 1 + row % 2
        lists.append(JudgedList(query, documents[:right], documents[right:]))
    return lists


def test_best_positions_are_those_of_each_matrix():
    model, lists = scorer("tensor"), random_lists(20)
    found = best_positions(model.words, model.matcher, lists)
    expected = []
    for one in lists:
        for right in one.positives:
            cells = compare_words(model, one.query, right).cells.max(axis=2)
            best = np.unravel_index(cells.argmax(), cells.shape)
            ends = np.array(cells.shape) - 1
            inside = (np.array(best) > 0) & (best < ends)
            chance = np.maximum(ends - 1, 0).prod() / cells.size
            last = (best == ends).all()
            expected.append([*inside, inside.all(), chance, last])
    assert found.pairs == len(expected) == 30
    assert found[1:] == pytest.approx(np.mean(expected, axis=0))
    assert min(found) > 0


def test_two_scorers_are_compared_list_by_list():
    """The other model's scores are those of the first with the sign changed."""
    model, other, lists = scorer("cosine"), scorer("cosine"), random_lists(60)
    kernel, bias, *last = other.matcher.mlp.get_weights()
    other.matcher.mlp.set_weights([kernel, bias, *(-w for w in last)])
    found, examples = compare_scorers(
        model, other, [*lists, lists[0]._replace(negatives=[])]
    )
    expected, alone = {}, []
    for one in lists:
        right, wrong = (
            model.score(one.query, of) for of in (one.positives, one.negatives)
        )
        answers = right.max() > wrong.max(), right.min() < wrong.min()
        expected[answers] = expected.get(answers, 0) + 1
        if answers == (True, False):
            preferred = one.negatives[int(wrong.argmin())]
            alone.append(one._replace(negatives=[preferred]))
    assert found[:5] == (60, *(
        expected.get(key, 0)
        for key in ((True, True), (True, False), (False, True), (False, False))
    ))  # fmt: skip
    assert examples == alone and 0 < len(alone) < 60
    assert 0 < found.p <= 1
    with pytest.raises(InputError, match="no query with right and wrong"):
        compare_scorers(model, other, [lists[0]._replace(negatives=[])])

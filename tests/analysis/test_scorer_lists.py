"""Statistics of all lists against the matrices and scores of each pair."""

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
    """Draws lists with one or two positives and two negatives each."""
    random = np.random.default_rng(0)

    def texts() -> list[str]:
        """Returns five different texts of one to four different words."""
        found: set[str] = set()
        while len(found) < 5:
            size = random.integers(1, 5)
            found.add(" ".join(random.permutation(VOCABULARY)[:size]))
        return sorted(found)

    lists = []
    for row in range(count):
        query, *documents = random.permutation(texts()).tolist()
        right = 1 + row % 2
        lists.append(JudgedList(query, documents[:right], documents[right:]))
    return lists


def test_best_positions_are_those_of_each_matrix():
    model, lists = scorer("tensor"), random_lists(20)
    found = best_positions(model.words, model.matcher, lists)
    inside, chance, last = [], [], []
    for one in lists:
        for right in one.positives:
            cells = compare_words(model, one.query, right).cells.max(axis=2)
            best = np.unravel_index(cells.argmax(), cells.shape)
            inside.append(
                [0 < x < n - 1 for x, n in zip(best, cells.shape, strict=True)]
            )
            last.append(cells.shape == tuple(x + 1 for x in best))
            inner = np.maximum(np.array(cells.shape) - 2, 0)
            chance.append(inner.prod() / cells.size)
    assert found.pairs == len(inside) == 30
    assert found[1:3] == pytest.approx(np.mean(inside, axis=0))
    assert found.both == pytest.approx(np.all(inside, axis=1).mean())
    assert found.last == pytest.approx(np.mean(last))
    assert found.both > 0 and found.last > 0
    assert found.chance == pytest.approx(np.mean(chance))


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

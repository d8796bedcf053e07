"""Cross-validation of trees: no list is scored by trees that have seen it."""

import numpy as np
import pytest

from keras_lstm_dssm.benchmarks.ranker_objectives import cross_validate
from keras_lstm_dssm.training.tree_training import Rows, TreeOptions

pytest.importorskip("lightgbm")
LISTS, SIZE = 60, 4


@pytest.mark.parametrize("objective", ["regression", "lambdarank"])
def test_scores_of_a_list_do_not_depend_on_its_grades(objective: str) -> None:
    random = np.random.default_rng(0)
    features = random.random([LISTS * SIZE, 2]).astype(np.float32)
    grades = (features[:, 0] * 4).astype(int)
    rows = Rows(features, grades, [SIZE] * LISTS)
    options = TreeOptions(
        objective=objective, rounds_without_dev=30, learning_rate=0.2,
        min_rows=5,
    )  # fmt: skip
    scores = cross_validate(rows, options, leaves=4, folds=3)
    lists = scores.reshape(LISTS, SIZE)
    best = features[:, 0].reshape(LISTS, SIZE).argmax(axis=1)
    assert np.mean(lists.argmax(axis=1) == best) > 0.7

    changed = grades.copy()
    changed[:SIZE] = 4 - changed[:SIZE]
    again = cross_validate(
        rows._replace(grades=changed), options, leaves=4, folds=3
    )
    np.testing.assert_array_equal(again[:SIZE], scores[:SIZE])
    assert (again != scores).any()

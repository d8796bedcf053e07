"""Cross-validation of trees: no list is scored by trees that have seen it."""

import json

import numpy as np
import pytest

from keras_lstm_dssm.benchmarks import ranker_objectives
from keras_lstm_dssm.benchmarks.ranker_objectives import cross_validate
from keras_lstm_dssm.ranker.graded_lists import JudgedPairs
from keras_lstm_dssm.settings.recipes import RankerRecipe
from tests.ranker.small_ranker import write_graded

pytest.importorskip("lightgbm")
LISTS, SIZE = 60, 4


@pytest.mark.parametrize("objective", ["regression", "lambdarank"])
def test_scores_of_a_list_do_not_depend_on_its_grades(objective):
    random = np.random.default_rng(0)
    features = random.random([LISTS * SIZE, 2]).astype(np.float32)
    grades = (features[:, 0] * 4).astype(int)
    rows = JudgedPairs(features, grades, [SIZE] * LISTS)
    options = RankerRecipe(
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


def test_objectives_are_measured_beside_bm25(tmp_path, capsys):
    """Measures trees with each objective, and BM25, and prints all of them."""
    data, results = write_graded(tmp_path / "graded"), tmp_path / "out.json"
    code = ranker_objectives.run(
        ["ranker_objectives", f"--data={data}", f"--json={results}",
         "--trees=3", "--folds=2", "--leaves=3"]
    )  # fmt: skip
    assert code == 0
    measured = json.loads(results.read_text())
    objectives = ["lambdarank", "rank_xendcg", "regression"]
    bagged = "regression, bagged"
    assert list(measured) == ["bm25 alone", *objectives, bagged]
    printed = capsys.readouterr().out
    for name, values in measured.items():
        assert list(values) == ["ndcg@1", "ndcg@3", "ndcg@10"]
        assert 0 < values["ndcg@3"] <= values["ndcg@10"] <= 1
        shown = " / ".join(f"{100 * value:.2f}" for value in values.values())
        assert f"{shown}  {name}\n" in printed
    # BM25 puts the title with both words first, and one with neither last.
    assert measured["bm25 alone"]["ndcg@1"] == 1


def test_ndcg_is_that_of_each_list():
    rows = JudgedPairs(np.zeros([5, 1]), np.array([1, 0, 0, 2, 0]), [2, 3])
    worst_and_best = np.array([0.1, 0.2, 0.5, 0.9, 0.3])
    measured = ranker_objectives._measure(rows, worst_and_best)
    assert measured["ndcg@1"] == pytest.approx((0 + 1) / 2)
    assert measured["ndcg@3"] == pytest.approx((1 / np.log2(3) + 1) / 2)

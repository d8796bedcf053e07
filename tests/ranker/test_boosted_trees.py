"""Trees as tensors give the scores of LightGBM, on any numbers."""

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees, floor_float32

FEATURES = 6


def table(seed: int, rows: int = 600) -> np.ndarray:
    """Draws features that are missing, zero, of few values, huge or tiny."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, FEATURES)) * 10.0 ** random.integers(
        -3, 4, FEATURES
    )
    values[:, 1] = random.integers(-2, 3, rows)
    values[:, 2] = random.choice([0.0, 1e-36, -1e-36, 1e-30, 0.1], rows)
    values[random.random(values.shape) < 0.1] = np.nan
    values[random.random(values.shape) < 0.1] = 0
    return values.astype(np.float32)


def booster(seed: int, **parameters: object):
    lightgbm = pytest.importorskip("lightgbm")
    features = table(seed)
    known = np.nan_to_num(features)
    grades = np.digitize(known[:, 1] + np.sin(known[:, 0]), [-1, 0, 1])
    settings = {
        "objective": "lambdarank", "num_leaves": 15, "verbose": -1,
        "min_data_in_leaf": 3, "num_threads": 1, "seed": seed, **parameters,
    }  # fmt: skip
    data = lightgbm.Dataset(features, grades, group=[20] * 30)
    return lightgbm.train(settings, data, 25)


@pytest.mark.parametrize("parameters", [
    {},
    {"zero_as_missing": True},
    {"use_missing": False},
    {"max_bin": 7, "num_leaves": 40, "min_data_in_leaf": 1},
    {"num_leaves": 2},
    {"objective": "regression", "boosting": "dart"},
])  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_equal_to_lightgbm(seed, parameters):
    model = booster(seed, **parameters)
    trees = BoostedTrees(model.model_to_string())
    assert (trees.trees, trees.features) == (25, FEATURES)
    rows = np.concatenate([table(seed), table(seed + 100, 3000)])
    expected = model.predict(rows, raw_score=True)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(trees(rows), expected, rtol=0, atol=1e-12)


def test_at_the_thresholds_and_beside_them():
    """Compares scores at the float32 numbers next to each threshold."""
    model = booster(0)
    text = model.model_to_string()
    found = [
        float(number)
        for line in text.splitlines()
        if line.startswith("threshold=")
        for number in line.removeprefix("threshold=").split()
    ]
    exact = floor_float32(np.array(found))
    assert len(set(found)) > 50
    for values in (
        exact,
        np.nextafter(exact, np.float32(np.inf)),
        np.nextafter(exact, np.float32(-np.inf)),
    ):
        rows = np.repeat(values[:, np.newaxis], FEATURES, axis=1)
        np.testing.assert_allclose(
            BoostedTrees(text)(rows), model.predict(rows), rtol=0, atol=1e-12
        )


def test_floor_float32():
    numbers = np.array([0.1, -0.1, 0.5, 1e-35, 1e300, -1e300, 16777217.0])
    floors = floor_float32(numbers)
    assert floors.dtype == np.float32
    assert (floors.astype(float) <= numbers).all()
    with np.errstate(over="ignore"):  # of the largest float32 number
        above = np.nextafter(floors, np.float32(np.inf)).astype(float)
    assert (above > numbers).all()
    assert floors[2] == 0.5 and floors[-1] == 16777216.0


def test_in_a_graph_and_without_rows(edited):
    trees = BoostedTrees(edited("", ""))
    graph = tf.function(
        trees, input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    rows = np.array([[0.5, 0], [0.5001, 0], [9, 1], [np.nan, 2]], np.float32)
    expected = [1, 2, 3, 1]  # NaN is 0 where no number is missing
    np.testing.assert_array_equal(trees(rows), expected)
    np.testing.assert_array_equal(graph(rows), expected)
    assert graph(rows[:0]).shape == (0,)


SMALL = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
threshold=0.5 0.5
decision_type=2 2
left_child=-1 -2
right_child=1 -3
leaf_value=1 2 3
is_linear=0


end of trees
"""


@pytest.fixture
def edited() -> Callable[[str, str], str]:
    """Returns the text of a small LightGBM model, with one part replaced."""

    def edit(old: str, new: str) -> str:
        assert old in SMALL
        return SMALL.replace(old, new) if old else SMALL

    return edit


@pytest.mark.parametrize(("old", "new", "reason"), [
    ("tree\n", "{", "KeyError|ValueError|children|max_feature"),
    ("max_feature_idx=1", "", "max_feature_idx"),
    ("end of trees", "", "the end is missing"),
    ("leaf_value=1 2 3", "leaf_value=1 2", "leaf_value has 2 numbers"),
    ("leaf_value=1 2 3", "leaf_value=1 2 nan", "not finite"),
    ("right_child=1 -3", "right_child=0 -3", "no node below its parent"),
    ("right_child=1 -3", "right_child=1 -4", "no node below its parent"),
    ("split_feature=0 1", "split_feature=0 2", "an unknown feature"),
    ("decision_type=2 2", "decision_type=2 1", "a categorical feature"),
    ("is_linear=0", "is_linear=1", "linear models"),
    ("per_iteration=1", "per_iteration=3", "several trees"),
    ("version=v4", "average_output", "a random forest"),
])  # fmt: skip
def test_what_is_refused(edited, old, new, reason):
    if old == "tree\n":
        model = "not trees"
    else:
        model = edited(old, new)
    with pytest.raises(InputError, match=f"cannot be read .*({reason})"):
        BoostedTrees(model)

"""Trains boosted trees by LightGBM, and chooses the best on dev."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.ranker import BoostedTrees
from keras_lstm_dssm.training.dev_lists import DevLists


@dataclass(frozen=True)
class TreeOptions:
    """What the trees of a ranker are trained with.

    Attributes:
        objective: LightGBM's: `"regression"` learns the grade of each pair,
            `"lambdarank"` the order of each list. `None` takes the first for
            grades that people gave and the second for clicks.
        rounds: Largest number of trees; without dev, the number of trees is
            `rounds_without_dev`.
        rounds_without_dev: See `rounds`.
        leaves: Numbers of leaves of a tree to try on dev; without dev the
            first is used.
        learning_rate: What the leaves of each tree are multiplied with.
        min_rows: Least number of rows in a leaf.
        every: Evaluate on dev every n trees.
        patience: Evaluations without a better figure before training stops.
        shares: What the scores of each system are multiplied with, in
            relation to the trees, where they are added to trees of the other
            features; tried on dev.
        parameters: Further parameters of LightGBM.

    Example:
    >>> options = TreeOptions(rounds=300, leaves=(7,))
    >>> options.rounds, options.learning_rate
    (300, 0.05)
    """

    objective: str | None = None
    rounds: int = 1000
    rounds_without_dev: int = 200
    leaves: tuple[int, ...] = (15, 7, 31)
    learning_rate: float = 0.05
    min_rows: int = 20
    every: int = 10
    patience: int = 10
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Rows(NamedTuple):
    """Holds the features and grades of pairs, one judged list after another.

    Attributes:
        features: float32 `[rows, features]`.
        grades: Integers `[rows]`.
        sizes: The number of rows of each list.
    """

    features: np.ndarray
    grades: np.ndarray
    sizes: list[int]

    def without(self, columns: Sequence[int]) -> "Rows":
        """Returns rows whose numbers in some columns are 0.

        A tree never compares a column of equal numbers.
        """
        features = self.features.copy()
        features[:, list(columns)] = 0
        return self._replace(features=features)


class Chosen(NamedTuple):
    """Trees and weights of features, with their figure on dev.

    Attributes:
        trees: The trees.
        weights: float32 `[features]`, see `Ranker`.
        leaves: The number of leaves of a tree.
        dev: The measure on dev, `None` without dev.
    """

    trees: BoostedTrees
    weights: np.ndarray
    leaves: int
    dev: float | None = None


def choose_trees(
    train: Rows,
    dev: Rows | None,
    lists: DevLists | None,
    systems: Sequence[int],
    options: TreeOptions,
    seed: int = 0,
) -> Chosen:
    """Trains trees, and chooses among several trainings on dev.

    The trees read all features; or, on dev only, all features but the scores
    of systems, which are then added to the trees' score with weights. Systems
    that were trained on the queries of `train` have better scores there than
    for new queries, so that trees rely on them too much; a weight that was
    chosen on dev does not.

    Args:
        train: The rows to train on.
        dev: The rows of `lists`; `None` without dev.
        lists: The lists that decide; `None` without dev.
        systems: The columns of the scores of systems.
        options: The options of the trees.
        seed: Seed of LightGBM's random draws.

    Raises:
        InputError: LightGBM is not installed, or refuses an option.
    """
    zeros = np.zeros(train.features.shape[1], np.float32)
    if dev is None or lists is None:
        leaves = options.leaves[0]
        trees = train_trees(train, leaves, options, seed)
        return Chosen(trees, zeros, leaves)
    best: Chosen | None = None
    for leaves in options.leaves:
        for chosen in _trained(
            train, dev, lists, systems, options, leaves, seed
        ):
            if best is None or (chosen.dev or 0) > (best.dev or 0):
                best = chosen
    assert best is not None
    return best


def _trained(
    train: Rows,
    dev: Rows,
    lists: DevLists,
    systems: Sequence[int],
    options: TreeOptions,
    leaves: int,
    seed: int,
) -> Iterator[Chosen]:
    """Trains trees with a number of leaves on all features, and on some."""
    zeros = np.zeros(train.features.shape[1], np.float32)
    trees = train_trees(train, leaves, options, seed, dev, lists)
    yield Chosen(trees, zeros, leaves, lists(trees(dev.features)))
    if not systems:
        return
    trees = train_trees(
        train.without(systems), leaves, options, seed,
        dev.without(systems), lists,
    )  # fmt: skip
    scores = trees(dev.features).numpy()
    weights, best = zeros.copy(), lists(scores)
    spread = _spread(scores, dev.sizes)
    for column in systems:
        values = dev.features[:, column].astype(float)
        unit = spread / max(_spread(values, dev.sizes), 1e-9)
        added = scores
        for share in options.shares:
            figure = lists(scores + share * unit * values)
            if figure > best:
                best = figure
                weights[column] = share * unit
                added = scores + float(weights[column]) * values
        scores = added
    yield Chosen(trees, weights, leaves, lists(scores))


def _spread(values: np.ndarray, sizes: Sequence[int]) -> float:
    """Returns the standard deviation of values within their lists."""
    lists = np.repeat(np.arange(len(sizes)), sizes)
    means = np.bincount(lists, values) / np.bincount(lists)
    return float(np.sqrt(np.mean((values - means[lists]) ** 2)))


def train_trees(
    train: Rows,
    leaves: int,
    options: TreeOptions,
    seed: int = 0,
    dev: Rows | None = None,
    lists: DevLists | None = None,
) -> BoostedTrees:
    """Trains trees by least squares or by LambdaMART.

    The same rows, options and seed give the same trees. With dev, the number
    of trees is the one with the best figure.

    Args:
        train: The rows to train on.
        leaves: Largest number of leaves of a tree.
        options: The other options.
        seed: Seed of LightGBM's random draws.
        dev: The rows of `lists`; `None` without dev.
        lists: The lists that decide; `None` without dev.

    Raises:
        InputError: LightGBM is not installed, or refuses an option.

    Source: Cossock and Zhang 2008, "Statistical Analysis of Bayes Optimal
        Subset Ranking", for least squares; Burges 2010, "From RankNet to
        LambdaRank to LambdaMART";
        https://lightgbm.readthedocs.io/en/stable/Parameters.html
    """
    lightgbm = import_optional("lightgbm", "ranker")
    parameters = {
        "objective": options.objective or "lambdarank",
        "metric": "None",
        "num_leaves": leaves,
        "learning_rate": options.learning_rate,
        "min_data_in_leaf": options.min_rows,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        **options.parameters,
    }
    data = lightgbm.Dataset(train.features, train.grades, group=train.sizes)
    rounds = options.rounds_without_dev
    extras: dict[str, Any] = {}
    if dev is not None and lists is not None:
        rounds = options.rounds
        extras = {
            "valid_sets": [
                data.create_valid(dev.features, dev.grades, group=dev.sizes)
            ],
            "feval": _EveryFew(lists, options.every),
            "callbacks": [
                lightgbm.early_stopping(
                    options.every * options.patience, verbose=False
                )
            ],
        }
    try:
        booster = lightgbm.train(parameters, data, rounds, **extras)
    except lightgbm.basic.LightGBMError as error:
        raise InputError(f"LightGBM: {error}: change the options") from None
    best = booster.best_iteration if dev is not None else rounds
    return BoostedTrees(booster.model_to_string(num_iteration=best or rounds))


class _EveryFew:
    """LightGBM's custom metric: evaluates every n trees, as it takes time.

    In between it returns the last figure, which early stopping does not take
    for a better one.
    """

    def __init__(self, lists: DevLists, every: int) -> None:
        self._lists = lists
        self._every = every
        self._calls = 0
        self._figure = 0.0

    def __call__(self, scores: np.ndarray, _: Any) -> tuple[str, float, bool]:
        self._calls += 1
        if self._calls % self._every == 0:
            self._figure = self._lists(scores)
        return self._lists.measure, self._figure, True

"""`train_ranker`, which trains LightGBM trees and chooses the best on dev."""

import dataclasses
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.sources import absolute_spec, open_collection
from keras_lstm_dssm.distillation.teacher_vectors import absolute_encoder
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.model_cards.record import record_training
from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.graded_lists import DevLists, open_graded_lists
from keras_lstm_dssm.ranker.overlap_features import OverlapFeatures
from keras_lstm_dssm.ranker.ranker import (
    PairFeatures,
    Ranker,
    TowerCosine,
    digest_of,
    digest_of_encoder,
    open_sources,
    write_ranker,
)
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.version import __version__


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


MINED = 20
"""Default number of mined titles for each query of clicks."""

SELECT = "ndcg@3"
"""Default measure that decides on dev."""


def train_ranker(
    data: Any,
    features: Sequence[str | os.PathLike[str]] = (),
    *,
    encoder: str | None = None,
    output: str | os.PathLike[str] | None = None,
    dev: str | Collection | Task | None = None,
    select: str = SELECT,
    options: TreeOptions | None = None,
    seed: int = 0,
    min_relevant: int = 1,
    mined_negatives: int = MINED,
    max_bad_lines: int = 0,
    verbose: Any = "auto",
) -> Ranker:
    """Trains boosted trees that order the candidates of a first stage.

    It is a function beside `train`, and no recipe: trees have no epochs,
    optimizer or checkpoints to resume from, and a training takes a minute.
    The same data, features, options and seed give the same trees.

    Args:
        data: A BEIR folder, whose grades of the training split are learnt;
            without such grades its clicks, or click files, a `ClickLog` or
            pairs of texts as for `train`. Titles of grade 0 are then mined
            by the first towers of `features`, or by BM25 without towers.
        features: Run folders of two towers, whose cosine is a feature, and
            of pair scorers, whose score is one. The ranker reads their models
            from there.
        encoder: An encoder of others whose cosine is a feature, see
            `open_outside_encoder`. The ranker reads a folder from where it is.
            A ranker with an encoder cannot be exported.
        output: Run folder, by default none.
        dev: A BEIR folder, a `Collection` or a `Task` of lists to rerank, to
            choose the number of trees, their leaves, and whether trees read
            the scores of `features` or the scores are added with weights.
            `None` trains `options.rounds_without_dev` trees.
        select: The measure that decides on dev. Default `"ndcg@3"`.
        options: Options of the trees; `None` for the default ones.
        seed: Seed of the trees and of titles that are drawn. Default 0.
        min_relevant: Grade from which a title of dev counts as relevant.
        mined_negatives: Mined titles for each query of clicks. Default 20.
        max_bad_lines: Number of bad lines of click files to leave out.
        verbose: Whether to print what is done; `"auto"` does.

    Returns:
        The ranker.

    Raises:
        InputError: There are no grades; a run of `features` is missing, of
            another kind, or named twice; LightGBM is not installed; data or
            folder are wrong.

    Example:
    >>> ranker = dssm.train_ranker("homedepot", ["TOWERS"], dev="homedepot")
    >>> ranker.score("angle bracket", ["12-Gauge Angle", "Wood glue"])
    array([ 0.9, -1.3], dtype=float32)
    """
    import_optional("lightgbm", "ranker")
    options = options or TreeOptions()
    encoder = absolute_encoder(encoder) if encoder else None
    paths = [os.path.abspath(run) for run in features]
    with ExitStack() as stack:
        folder = output or stack.enter_context(tempfile.TemporaryDirectory())
        run = RunFolder(folder)
        run.check_new()
        stack.enter_context(run.locked())
        sources = open_sources(paths, encoder)
        lists = _dev_lists(dev, select, min_relevant)
        towers = [
            source.model
            for source in sources.values()
            if isinstance(source, TowerCosine)
        ]
        graded, spec = open_graded_lists(
            data,
            run,
            mined_negatives,
            (lambda titles: Index(towers[0], titles)) if towers else None,
            seed,
            min_relevant,
            max_bad_lines,
        )
        if verbose:
            print(graded.describe(), flush=True)
        if options.objective is None and graded.judged:
            options = dataclasses.replace(options, objective="regression")
        overlap = OverlapFeatures.from_titles(graded.titles)
        pairs = PairFeatures(overlap, sources)
        dev_rows = None
        if lists is not None:
            dev_features = pairs(*lists.pairs())
            dev_rows = Rows(dev_features, lists.grades, lists.sizes)
        chosen = choose_trees(
            Rows(
                pairs(*graded.pairs()),
                np.array([g for one in graded.lists for g in one.grades]),
                [len(one.titles) for one in graded.lists],
            ),
            dev_rows,
            lists,
            range(len(pairs.names) - len(sources), len(pairs.names)),
            options,
            seed,
        )
        ranker = Ranker(pairs, chosen.trees, chosen.weights)
        figures = _figures(ranker, chosen, lists)
        if verbose:
            print(_summary(chosen, lists), flush=True)
        if output is not None:
            settings = {
                "features": paths,
                "digests": [digest_of(path) for path in paths],
                "encoder": encoder,
                "encoder_digest": encoder and digest_of_encoder(encoder),
                "options": vars(options),
                "mined_negatives": mined_negatives,
            }
            config = {
                "version": __version__,
                "data": absolute_spec(spec),
                "dev": TrainingConfig.stored_value("dev", dev),
                "select": select,
                "min_relevant": min_relevant,
                "max_bad_lines": max_bad_lines,
                "seed": seed,
                "pairs": sum(len(one.titles) for one in graded.lists),
                "ranker": settings,
            }
            write_ranker(Path(folder), ranker, config)
            run.add_metrics("train", figures)
            record_training(run.path)
    return ranker


def _dev_lists(dev: Any, select: str, min_relevant: int) -> DevLists | None:
    if dev is None:
        return None
    if not isinstance(dev, Task):
        if not isinstance(dev, Collection):
            dev = open_collection(os.fspath(dev))
        if not isinstance(dev, Collection):
            return DevLists(dev, select)
        dev = Task.from_collection(dev, "dev", "rerank", min_relevant)
    if dev.depth is not None:
        raise InputError(
            "dev is a Task that searches a corpus, expected one that reranks"
            " lists: make it with mode='rerank'"
        )
    return DevLists(dev, select)


def _figures(
    ranker: Ranker, chosen: Chosen, lists: DevLists | None
) -> dict[str, Any]:
    """Returns what `metrics.json` holds of the training."""
    names = ranker.features.names
    figures: dict[str, Any] = {
        "trees": chosen.trees.trees,
        "leaves": chosen.leaves,
        "splits": dict(zip(names, chosen.trees.splits(), strict=True)),
        "weights": {
            name: weight
            for name, weight in zip(names, chosen.weights.tolist(), strict=True)
            if weight
        },
    }
    if lists is not None:
        scores = ranker.score_pairs(*lists.pairs())
        figures["dev"] = lists.measures(scores)
    return figures


def _summary(chosen: Chosen, lists: DevLists | None) -> str:
    text = f"{chosen.trees.trees} trees of {chosen.leaves} leaves"
    added = int(np.count_nonzero(chosen.weights))
    if added:
        text += f"; {added} scores of systems are added to theirs"
    if lists is not None and chosen.dev is not None:
        text += f"; dev_{lists.measure} {chosen.dev:.4f}"
    return text

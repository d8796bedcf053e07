"""`train_ranker`, which trains LightGBM trees and chooses the best on dev."""

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.sources import absolute_spec, open_collection
from keras_lstm_dssm.distillation.teacher_vectors import absolute_encoder
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.fingerprints import file_hash
from keras_lstm_dssm.model_cards.record import record_training
from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.graded_lists import (
    JudgedPairs,
    lists_of,
    open_graded_lists,
    pairs_of,
    ranked,
)
from keras_lstm_dssm.ranker.overlap_features import OverlapFeatures
from keras_lstm_dssm.ranker.ranker import (
    PairFeatures,
    Ranker,
    digest_of_encoder,
    first_towers,
    open_sources,
    write_ranker,
)
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.training.config import DataOptions, dev_spec
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


class TrainedTrees(NamedTuple):
    """Holds trees and the weights of features (see `Ranker`), chosen on dev."""

    trees: BoostedTrees
    weights: np.ndarray  # float32 [features]
    leaves: int  # of a tree, at most
    dev: float | None = None  # the metric on dev, if there is one


def choose_trees(
    train: JudgedPairs,
    dev: JudgedPairs | None,
    systems: Sequence[int],
    options: TreeOptions,
    seed: int = 0,
) -> TrainedTrees:
    """Trains trees, and with dev chooses among several trainings.

    The trees read all features; or all but `systems`, the columns of scores of
    systems, which are then added to the trees' score with weights.
    """
    if dev is None:
        leaves = options.leaves[0]
        trees = train_trees(train, leaves, options, seed)
        return TrainedTrees(trees, _zeros(train), leaves)
    return max(
        (
            trained
            for leaves in options.leaves
            for trained in _trained(train, dev, systems, options, leaves, seed)
        ),
        key=lambda trained: trained.dev or 0,  # of equal ones the first
    )


def _zeros(pairs: JudgedPairs) -> np.ndarray:
    return np.zeros(pairs.features.shape[1], np.float32)


def _trained(
    train: JudgedPairs,
    dev: JudgedPairs,
    systems: Sequence[int],
    options: TreeOptions,
    leaves: int,
    seed: int,
) -> Iterator[TrainedTrees]:
    """Trains trees with a number of leaves on all features, and on some."""
    measure = dev.measure
    assert measure is not None
    weights = _zeros(train)
    trees = train_trees(train, leaves, options, seed, dev)
    yield TrainedTrees(trees, weights, leaves, measure(trees(dev.features)))
    if not systems:
        return
    # Systems that were trained on the queries of `train` have better scores
    # there than for new queries, so that trees rely on them too much; a weight
    # that was chosen on dev does not.
    trees = train_trees(
        train.without(systems), leaves, options, seed, dev.without(systems)
    )
    scores = trees(dev.features).numpy()
    weights, best = _zeros(train), measure(scores)
    spread = _spread(scores, dev.sizes)
    for column in systems:
        values = dev.features[:, column].astype(float)
        unit = spread / max(_spread(values, dev.sizes), 1e-9)
        added = scores
        for share in options.shares:
            metric = measure(scores + share * unit * values)
            if metric > best:
                best = metric
                weights[column] = share * unit
                added = scores + float(weights[column]) * values
        scores = added
    yield TrainedTrees(trees, weights, leaves, measure(scores))


def _spread(values: np.ndarray, sizes: Sequence[int]) -> float:
    """Returns the standard deviation of values within their lists."""
    lists = np.repeat(np.arange(len(sizes)), sizes)
    means = np.bincount(lists, values) / np.bincount(lists)
    return float(np.sqrt(np.mean((values - means[lists]) ** 2)))


def train_trees(
    train: JudgedPairs,
    leaves: int,
    options: TreeOptions,
    seed: int = 0,
    dev: JudgedPairs | None = None,
) -> BoostedTrees:
    """Trains trees by least squares or LambdaMART, on dev the best number.

    Source: Cossock and Zhang 2008, "Statistical Analysis of Bayes Optimal
    Subset Ranking"; Burges 2010, "From RankNet to LambdaRank to LambdaMART";
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
    if dev is not None and dev.measure is not None:
        rounds = options.rounds
        extras = {
            "valid_sets": [
                data.create_valid(dev.features, dev.grades, group=dev.sizes)
            ],
            "feval": _EveryFew(dev.measure, options.every),
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

    In between it returns the last value, which early stopping ignores.
    """

    def __init__(
        self, measure: Callable[[np.ndarray], float], every: int
    ) -> None:
        self._measure = measure
        self._every = every
        self._calls = 0
        self._metric = 0.0

    def __call__(self, scores: np.ndarray, _: Any) -> tuple[str, float, bool]:
        self._calls += 1
        if self._calls % self._every == 0:
            self._metric = self._measure(scores)
        return "dev", self._metric, True


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
        task = None if dev is None else _dev_task(dev, select, min_relevant)
        graded, spec = open_graded_lists(
            DataOptions(data, min_relevant, max_bad_lines),
            run,
            mined_negatives,
            first_towers(sources),
            seed,
        )
        if verbose:
            print(graded.describe(), flush=True)
        if options.objective is None and graded.judged:
            options = dataclasses.replace(options, objective="regression")
        overlap = OverlapFeatures.from_titles(graded.titles)
        pairs = PairFeatures(overlap, sources)
        trained = choose_trees(
            JudgedPairs.from_lists(graded.lists, pairs),
            task and JudgedPairs.from_task(task, select, pairs),
            range(len(pairs.names) - len(sources), len(pairs.names)),
            options,
            seed,
        )
        ranker = Ranker(pairs, trained.trees, trained.weights)
        metrics = _metrics(ranker, trained, task)
        if verbose:
            print(_summary(trained, select), flush=True)
        if output is not None:
            settings = {
                "features": paths,
                "digests": [file_hash(RunFolder(path).model) for path in paths],
                "encoder": encoder,
                "encoder_digest": encoder and digest_of_encoder(encoder),
                "options": vars(options),
                "mined_negatives": mined_negatives,
            }
            config = {
                "version": __version__,
                "data": absolute_spec(spec),
                "dev": dev_spec(dev, saved=True),
                "select": select,
                "min_relevant": min_relevant,
                "max_bad_lines": max_bad_lines,
                "seed": seed,
                "pairs": sum(len(one.titles) for one in graded.lists),
                "ranker": settings,
            }
            write_ranker(Path(folder), ranker, config)
            run.add_metrics("train", metrics)
            record_training(run.path)
    return ranker


def _dev_task(dev: Any, select: str, min_relevant: int) -> Task:
    if not isinstance(dev, Task):
        if not isinstance(dev, Collection):
            dev = open_collection(os.fspath(dev))
        dev = Task.from_collection(dev, "dev", "rerank", min_relevant)
    if dev.depth is not None:
        raise InputError(
            "dev is a Task that searches a corpus, expected one that reranks"
            " lists: make it with mode='rerank'"
        )
    if select not in dev.measures:
        raise InputError(
            f"select is {select!r}: expected one of {', '.join(dev.measures)}"
        )
    return dev


def _metrics(
    ranker: Ranker, trained: TrainedTrees, task: Task | None
) -> dict[str, Any]:
    """Returns what `metrics.json` holds of the training."""
    names = ranker.features.names
    metrics: dict[str, Any] = {
        "trees": trained.trees.trees,
        "leaves": trained.leaves,
        "splits": dict(zip(names, trained.trees.splits(), strict=True)),
        "weights": {
            name: weight
            for name, weight in zip(
                names, trained.weights.tolist(), strict=True
            )
            if weight
        },
    }
    if task is not None:
        scores = ranker.score_pairs(*pairs_of(lists_of(task)))
        metrics["dev"] = task.evaluate(ranked(task, scores))
    return metrics


def _summary(trained: TrainedTrees, select: str) -> str:
    text = f"{trained.trees.trees} trees of {trained.leaves} leaves"
    added = int(np.count_nonzero(trained.weights))
    if added:
        text += f"; {added} scores of systems are added to theirs"
    if trained.dev is not None:
        text += f"; dev_{select} {trained.dev:.4f}"
    return text

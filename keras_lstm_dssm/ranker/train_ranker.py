"""The training of a ranker: LightGBM trees, of which dev chooses the best."""

import os
from collections.abc import Callable, Iterator, Sequence
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
from keras_lstm_dssm.settings.recipes import RankerRecipe
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.train import ROADS, train
from keras_lstm_dssm.version import __version__


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
    options: RankerRecipe,
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
    options: RankerRecipe,
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
    options: RankerRecipe,
    seed: int = 0,
    dev: JudgedPairs | None = None,
) -> BoostedTrees:
    """Trains trees by least squares or LambdaMART, on dev the best number.

    With positions, LambdaMART also learns what each adds to the scores, which
    are then those of titles at equal positions.

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
    data = lightgbm.Dataset(
        train.features, train.grades, group=train.sizes,
        position=train.positions,
    )  # fmt: skip
    rounds = options.rounds_without_dev
    extras: dict[str, Any] = {}
    if dev is not None and dev.measure is not None:
        rounds = options.rounds
        extras = {
            "valid_sets": [
                data.create_valid(dev.features, dev.grades, group=dev.sizes)
            ],
            "feval": _every_few(dev.measure, options.every),
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


def _every_few(
    measure: Callable[[np.ndarray], float], every: int
) -> Callable[..., tuple[str, float, bool]]:
    """Returns LightGBM's custom metric: evaluates every n trees, to save time.

    In between it returns the last value, which early stopping ignores.
    """
    calls, metric = 0, 0.0

    def evaluate(scores: np.ndarray, _: Any) -> tuple[str, float, bool]:
        nonlocal calls, metric
        calls += 1
        if calls % every == 0:
            metric = measure(scores)
        return "dev", metric, True

    return evaluate


def run_ranker_training(
    config: TrainingConfig,
    run: RunFolder,
    callbacks: Sequence[Any] = (),
    verbose: Any = "auto",
    saved: bool = True,
) -> Ranker:
    """Trains a ranker; for the arguments see `run_training`.

    Trees have no epochs, optimizer or checkpoints to resume from, and a
    training takes a minute.
    """
    import_optional("lightgbm", "ranker")
    if callbacks:
        raise InputError("callbacks are called in epochs: a ranker has none")
    options = config.recipe
    if config.patience is not None:
        options = options.replace(patience=config.patience)
    encoder = config.encoder and absolute_encoder(config.encoder)
    paths = [os.path.abspath(path) for path in config.features]
    sources = open_sources(paths, encoder)
    task = None if config.dev is None else _dev_task(config)
    graded, spec = open_graded_lists(config, run, first_towers(sources))
    if verbose:
        print(graded.describe(), flush=True)
    if options.objective is None and graded.judged:
        options = options.replace(objective="regression")
    pairs = PairFeatures(OverlapFeatures.from_titles(graded.titles), sources)
    trained = choose_trees(
        JudgedPairs.from_lists(graded.lists, pairs),
        task and JudgedPairs.from_task(task, config.select, pairs),
        range(len(pairs.names) - len(sources), len(pairs.names)),
        options,
        config.seed,
    )
    ranker = Ranker(pairs, trained.trees, trained.weights)
    metrics = _metrics(ranker, trained, task)
    if verbose:
        print(_summary(trained, config.select), flush=True)
    if saved:
        trees = options.to_dict()
        mined = trees.pop("mined_negatives")
        settings = {
            "version": __version__,
            "data": absolute_spec(spec),
            "dev": TrainingConfig.stored_value("dev", config.dev),
            "select": config.select,
            "min_relevant": config.min_relevant,
            "max_bad_lines": config.max_bad_lines,
            "seed": config.seed,
            "pairs": sum(len(one.titles) for one in graded.lists),
            "ranker": {
                "features": paths,
                "digests": [file_hash(RunFolder(path).model) for path in paths],
                "encoder": encoder,
                "encoder_digest": encoder and digest_of_encoder(encoder),
                "options": trees,
                "mined_negatives": mined,
            },
        }
        write_ranker(run.path, ranker, settings)
        run.add_metrics("train", metrics)
        record_training(run.path)
    return ranker


ROADS["ranker"] = run_ranker_training


def train_ranker(
    data: Any,
    features: Sequence[str | os.PathLike[str]] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    options: RankerRecipe | None = None,
    mined_negatives: int = RankerRecipe.mined_negatives,
    verbose: Any = "auto",
    **settings: Any,
) -> Ranker:
    """Trains a ranker: `train` with a `RankerRecipe`, as in 0.2.0.

    Args:
        data: See `train`.
        features: Run folders, see `TrainingConfig`.
        output: See `train`.
        options: The recipe; `None` for the preset `"ranker"`.
        mined_negatives: Mined titles for each query of clicks. Default 20.
        verbose: Whether to print what is done; `"auto"` does.
        **settings: Attributes of `TrainingConfig`: `encoder`, `dev`,
            `select`, `seed`, `min_relevant`, `max_bad_lines`.

    Raises:
        InputError: There are no grades; a run of `features` is missing, of
            another kind, or named twice; LightGBM is not installed; data or
            folder are wrong.

    Example:
    >>> ranker = dssm.train_ranker("homedepot", ["TOWERS"], dev="homedepot")
    >>> ranker.score("angle bracket", ["12-Gauge Angle", "Wood glue"])
    array([ 0.9, -1.3], dtype=float32)
    """
    recipe: Any = (options or RankerRecipe()).replace(
        mined_negatives=mined_negatives
    )
    ranker: Any = train(
        data, recipe, output=output, verbose=verbose, features=features,
        **settings,
    )  # fmt: skip
    return ranker


def _dev_task(config: TrainingConfig) -> Task:
    dev, select = config.dev, config.select
    if not isinstance(dev, Task):
        if not isinstance(dev, Collection):
            dev = open_collection(os.fspath(dev))
        dev = Task.from_collection(dev, "dev", "rerank", config.min_relevant)
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

"""train_ranker: from grades or clicks and trained models to a ranker."""

import dataclasses
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.cards import record_training
from keras_lstm_dssm.data import Collection, absolute_spec, open_collection
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation import Index, Task
from keras_lstm_dssm.ranker import OverlapFeatures, PairFeatures, Ranker
from keras_lstm_dssm.ranker.feature_sources import TowerCosine
from keras_lstm_dssm.teacher.outside_encoder import absolute_encoder
from keras_lstm_dssm.training.dev_lists import DevLists
from keras_lstm_dssm.training.graded_lists import open_graded_lists
from keras_lstm_dssm.training.ranker_folder import (
    digest_of,
    digest_of_encoder,
    open_sources,
    write_ranker,
)
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_data import DataOptions, dev_spec
from keras_lstm_dssm.training.tree_training import (
    Chosen,
    Rows,
    TreeOptions,
    choose_trees,
)
from keras_lstm_dssm.version import __version__

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
            DataOptions(data, min_relevant, max_bad_lines),
            run,
            mined_negatives,
            (lambda titles: Index(towers[0], titles)) if towers else None,
            seed,
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
                "dev": dev_spec(dev, saved=True),
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

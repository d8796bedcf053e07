"""RankingEvaluation: rankings measured by `fit`, the best epoch kept."""

import shutil
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    BM25System,
    ClusterTask,
    DenseSystem,
    Task,
)
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.tower_training import TowerTraining
from tests.conftest import TOPICS
from tests.kit.equal import check_equal
from tests.training.small_trainings import EpochWeights

QUERIES, TITLES = (list(texts) for texts in zip(*TOPICS.values(), strict=True))
TASK = Task(
    {name: query for name, (query, _) in TOPICS.items()},
    {name: title for name, (_, title) in TOPICS.items()},
    {name: {name: 1} for name in TOPICS},
    depth=6,
)


@pytest.fixture(scope="module")
def model() -> dssm.TwoTower:
    """Traced once; each test trains it further."""
    model = dssm.TwoTower(dssm.DSSMEncoder([3]), dssm.DSSMEncoder([3]))
    model.compile(dssm.NesterovMomentum(0.3), dssm.CosineSoftmax())
    return model


@pytest.fixture
def figures(monkeypatch) -> Callable[..., None]:
    """Gives the next evaluations these figures."""

    def set_figures(*values: float) -> None:
        following = iter(values)
        monkeypatch.setattr(
            dssm.RankingEvaluation, "evaluate", lambda _: next(following)
        )

    return set_figures


def fit(model: dssm.TwoTower, epochs: int, *callbacks: Any) -> dict[str, list]:
    return model.fit(
        QUERIES, TITLES, 3, epochs, verbose=0, callbacks=list(callbacks)
    ).history


def test_the_figure_is_that_of_the_weights_after_the_epoch(model):
    ranking = dssm.RankingEvaluation(TASK, "ndcg@3", keep_best=False)
    history = fit(model, 2, ranking)
    system = DenseSystem(
        model.query_encoder.encode, model.document_encoder.encode
    )
    expected = TASK.evaluate(TASK.run(system))["ndcg@3"]
    assert history["dev_ndcg@3"][1] == expected
    assert model.history.history is history
    assert ranking.best == max(history["dev_ndcg@3"])
    assert ranking.best_weights is None


def test_the_whole_corpus_of_a_collection_is_searched(
    collection_folder, model, tmp_path
):
    ranking = dssm.RankingEvaluation(Collection(collection_folder))
    assert len(ranking.task.queries) == len(ranking.task.documents) == 6
    assert (ranking.task.depth, ranking.name) == (100, "dev_mrr@10")
    options = {"dev": str(collection_folder), "min_relevant": 2}
    config = TrainingConfig(str(collection_folder), "dssm", **options)
    training = TowerTraining(config, RunFolder(tmp_path))
    from_flags = training.best_epoch()
    assert from_flags is not None and from_flags.task.min_relevant == 2
    ranking.set_model(model)
    assert 1 / 6 <= ranking.evaluate() <= 1


@pytest.mark.parametrize(("values", "options", "epochs", "evaluated", "kept"), [
    # The first of equals is the best.
    ([0.2, 0.6, 0.6, 0.4], {}, 4, [1, 2, 3, 4], 2),
    ([0.6, 0.2], {"keep_best": False}, 2, [1, 2], 2),
    ([0.2, 0.6, 0.5, 0.6], {"every": 2, "patience": 2}, 20, [2, 4, 6, 8], 4),
    ([0.2, 0.6], {"every": 3}, 5, [3, 5], 5),  # the last one, too
])  # fmt: skip
def test_which_epochs_are_evaluated_and_kept(
    model, figures, values, options, epochs, evaluated, kept
):
    figures(*values)
    seen: list[int] = []
    watch = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: (
            seen.append(epoch + 1) if "dev_mrr@10" in logs else None
        )
    )
    ranking = dssm.RankingEvaluation(TASK, **options)
    history = fit(model, epochs, ranking, weights := EpochWeights(), watch)
    assert (history["dev_mrr@10"], seen) == (values, evaluated)
    check_equal(model, weights.of[kept])
    first, *_, last = weights.of.values()
    assert abs(first[0] - last[0]).max() > 1e-3
    best = values.index(max(values))
    assert (ranking.best, ranking.best_epoch) == (max(values), evaluated[best])
    assert len(weights.of) == evaluated[-1]


def test_figures_in_tensorboard_and_for_other_callbacks(
    model, figures, tmp_path
):
    figures(0.2, 0.6, 0.4, 0.3)
    stop = keras.callbacks.EarlyStopping("dev_mrr@10", mode="max", patience=1)
    history = fit(
        model, 9, dssm.RankingEvaluation(TASK), stop,
        keras.callbacks.TensorBoard(tmp_path, write_graph=False),
    )  # fmt: skip
    assert history["dev_mrr@10"] == [0.2, 0.6, 0.4]
    found = {}
    for path in tmp_path.rglob("events.out.tfevents.*"):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                if value.tag == "epoch_dev_mrr@10":
                    found[event.step] = float(tf.make_ndarray(value.tensor))
    assert found == pytest.approx({0: 0.2, 1: 0.6, 2: 0.4})


def test_wrong_arguments():
    for arguments, message in (
        ({"measure": "mrr@5"}, "measure is 'mrr@5': expected one of ndcg@1, "),
        ({"every": 0}, "every is 0: expected a whole number of 1 or more"),
        (
            {"patience": 0},
            "patience is 0: expected a whole number of 1 or more",
        ),
    ):
        with pytest.raises(InputError, match=message):
            dssm.RankingEvaluation(TASK, **arguments)


def test_a_collection_without_dev_queries(collection_folder, tmp_path):
    copy = shutil.copytree(collection_folder, tmp_path / "copy")
    (copy / "qrels/dev.tsv").unlink()
    with pytest.raises(InputError, match="dev.tsv: no such split"):
        dssm.RankingEvaluation(Collection(copy))


def test_clusters_of_a_model_of_documents():
    pytest.importorskip("sklearn")
    documents = {f"d{i}": "one\ntwo" if i % 2 else "one" for i in range(6)}
    task = ClusterTask.from_classes(documents, documents)
    clustering = dssm.RankingEvaluation(task, "ari")
    assert clustering.name == "dev_ari"

    class Lengths:
        def encode(
            self, documents: list[list[str]], progress: bool
        ) -> np.ndarray:
            return np.array([[len(one), 1.0] for one in documents])

    clustering.set_model(Lengths())
    assert clustering.evaluate() == 1.0
    with pytest.raises(InputError, match="expected one of f1, v, ari, ami"):
        dssm.RankingEvaluation(task)


def test_bm25_beside_what_is_kept(collection_folder):
    ranking = dssm.RankingEvaluation(Collection(collection_folder))
    ranking.set_model(dssm.build_model("lstm_32", 5))
    assert (
        ranking.describe(3) == "kept the last epoch, 3: no epoch was measured"
    )
    ranking.count(1, 0.25)
    ranking.count(2, 0.5)
    bm25 = ranking.task.evaluate(ranking.task.run(BM25System()))["mrr@10"]
    assert ranking.describe(3) == (
        f"kept epoch 2 of 3: dev_mrr@10 0.5 (BM25 {bm25:.4g})"
    )

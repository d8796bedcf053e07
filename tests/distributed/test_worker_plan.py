"""What each of several workers reads, and what they do."""

import pathlib
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest

from keras_lstm_dssm.callbacks import BestEpoch
from keras_lstm_dssm.data import ClickFrequencies, ClickLog
from keras_lstm_dssm.distributed.collectives import JointError
from keras_lstm_dssm.distributed.joint_step import JointStep
from keras_lstm_dssm.distributed.worker import (
    JointEvaluation,
    JointMetrics,
    StopTogether,
    Workers,
)
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training import mining
from keras_lstm_dssm.training.tower_training import TowerTraining
from tests.distributed.threads import run_workers

RECIPE = PRESETS["dssm"].replace(
    batch_size=10, epochs=2, negatives="in_batch", logq=True
)


def write(path: pathlib.Path, count: int) -> str:
    path.write_text(
        "".join(f"query {n} {path.stem}\ttitle {n % 7}\n" for n in range(count))
    )
    return str(path)


def shared(workers: Any, config: TrainingConfig) -> TowerTraining:
    """Opens the data of a training, and takes the part of a worker."""
    model = small_model()
    run = pathlib.Path(config.data.split(",")[0]).parent
    processes = Workers(workers)
    training = TowerTraining(config, RunFolder(run), processes=processes)
    training.prepare(model)
    processes.shard(training, model)
    return training


def small_model() -> Any:
    trigrams = SimpleNamespace(split="space")
    encoder = SimpleNamespace(trigrams=trigrams)
    return SimpleNamespace(query_encoder=encoder, document_encoder=encoder)


def trainings(
    paths: list[str], max_bad_lines: int = 0, **options: Any
) -> list[TowerTraining]:
    config = TrainingConfig(
        ",".join(paths), RECIPE.replace(**options), seed=3,
        max_bad_lines=max_bad_lines,
    )  # fmt: skip
    return run_workers(2, lambda workers: shared(workers, config))


def test_equal_steps_of_unequal_parts(tmp_path):
    """47 and 30 pairs in batches of 5: the first leaves 17 out, others each
    time."""
    paths = [write(tmp_path / "a.tsv", 47), write(tmp_path / "b.tsv", 30)]
    both = trainings(paths)
    assert [plan.steps_per_epoch for plan in both] == [6, 6]
    assert [plan.examples for plan in both] == [60, 60]
    assert both[0].describe() == "60 pairs, 2 workers"
    read = [
        [query for batch in plan.batches(0) for query in batch[0].numpy()]
        for plan in both
    ]
    assert [len(queries) for queries in read] == [60, 60]
    first, second = ({*read[0][:30]}, {*read[0][30:]})
    assert len(first) == len(second) == 30 and first != second
    assert {*read[1][:30]} == {*read[1][30:]}
    # A resumed run continues in the middle of an epoch.
    rest = [q for batch in both[0].batches(8) for q in batch[0].numpy()]
    assert rest == read[0][40:]


def test_click_frequencies_are_those_of_the_whole_log(tmp_path):
    paths = [write(tmp_path / "a.tsv", 47), write(tmp_path / "b.tsv", 30)]
    whole = ClickFrequencies.from_log(ClickLog(paths))
    for plan in trainings(paths):
        np.testing.assert_array_equal(plan.frequencies.log_q, whole.log_q)


def test_wrong_logs_and_sizes(tmp_path):
    paths = [write(tmp_path / "a.tsv", 12), str(tmp_path / "b.tsv")]
    (tmp_path / "b.tsv").write_text("bolt\ttitle\nno tab\n")
    for error in trainings(paths):
        assert isinstance(error, JointError)
        assert "worker 1 (host1:1): " in str(error)
        assert "b.tsv:2: found no tab" in str(error)
    for error in trainings(paths[:1], batch_size=1):
        assert "batch_size is 1: expected 2 or more" in str(error)


def test_bad_lines_of_all_workers_are_added(tmp_path):
    paths = [write(tmp_path / "a.tsv", 12), write(tmp_path / "b.tsv", 12)]
    for path in paths:
        with open(path, "a") as file:
            file.write("no tab\n")

    for plan in trainings(paths, 2):
        assert plan.bad_lines == {"no tab": 2}
        assert plan.examples == 24
    for error in trainings(paths, 1):  # each part has one, which is allowed
        assert isinstance(error, JointError)
        assert "found 2 bad lines in the data of all workers" in str(error)


def test_worker_0_mines_what_all_workers_read(tmp_path, monkeypatch):
    paths = [write(tmp_path / "a.tsv", 20), write(tmp_path / "b.tsv", 20)]
    minings = []

    def mine(model: Any, clicks: ClickLog, *_: Any, **__: Any) -> Any:
        minings.append(sorted(clicks.paths))
        return {query: [f"not {query}"] for query, _ in clicks}

    monkeypatch.setattr(mining, "mine_negatives", mine)
    config = TrainingConfig(
        ",".join(paths),
        RECIPE.replace(logq=False, hard_negatives=1, mine_every=1),
        seed=3,
    )

    def read(workers: Any) -> list[Any]:
        training, model = shared(workers, config), small_model()
        unmined, last = training.batches_of_fit(0, model)
        assert last == 1 and len(next(iter(unmined))) == 2
        batches, last = training.batches_of_fit(training.steps_per_epoch, model)
        assert last == 2
        return [*batches]

    for batches in run_workers(2, read):
        assert len(batches) == 4
        for query, _, extras in batches:
            expected = [[b"not " + text] for text in query.numpy()]
            assert extras["negatives"].numpy().tolist() == expected
    assert minings == [paths]


def test_each_worker_draws_other_negatives_of_the_whole_corpus(tmp_path):
    """Also if both have the same clicks, in the same order."""
    paths = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.tsv"
        lines = [f"q\ttitle {n} {name if n < 20 else 'c'}\n" for n in range(40)]
        path.write_text("".join(lines))
        paths.append(str(path))
    drawn = [
        [batch[2]["negatives"].numpy().astype(str) for batch in plan.batches(0)]
        for plan in trainings(paths, negatives="corpus", logq=False)
    ]
    assert [batch.shape for batch in drawn[0]] == [(5, 4)] * 16
    first, second = map(np.concatenate, drawn)
    assert (first == second).mean() < 0.1
    both = {f"title {n} {name}" for n in range(20) for name in "ab"}
    every = both | {f"title {n} c" for n in range(20, 40)}
    assert {*first.ravel()} == {*second.ravel()} == every


def test_workers_take_joint_steps(tmp_path):
    """What they do together is for the callbacks before all others."""
    joined: list[Any] = []

    def work(workers: Any) -> list[Any]:
        processes = Workers(workers)
        training = SimpleNamespace(
            recipe=RECIPE, run=RunFolder(tmp_path), config=None
        )
        model = SimpleNamespace(train_jointly=joined.append)
        return processes.join(model, training)  # type: ignore[arg-type]

    for callbacks in run_workers(2, work):
        assert [type(one) for one in callbacks] == [JointMetrics, StopTogether]
    assert [type(one) for one in joined] == [JointStep] * 2


class Small(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.rows = self.add_weight(shape=(2,), name="rows")
        self.built = True


def test_figures_are_those_of_all_pairs():
    """Means over 30 and 10 rows; unequal weights end the training."""

    def work(workers: Any) -> dict[str, float]:
        rank = workers.cluster.rank
        model = models[rank]
        callback = JointMetrics(workers)
        callback.set_model(model)
        callback.set_params({"steps": 1})
        for _ in range(30 - 20 * rank):
            model.loss_metric.update_state(1.0 + rank)
        callback.on_train_batch_end(0)
        logs = {"loss": 9.0, "val_loss": 5.0}
        callback.on_epoch_end(0, logs)
        return logs

    models = [Small(), Small()]
    for model in models:
        model.loss_metric = keras.metrics.Mean(name="loss")
        model.set_weights([np.ones(2)])
    assert (
        run_workers(2, work)
        == [{"loss": pytest.approx(1.25), "val_loss": 5.0}] * 2
    )
    models[1].set_weights([np.zeros(2)])
    for error in run_workers(2, work):
        assert isinstance(error, JointError)
        assert "worker 1 (host1:1) has other weights" in str(error)


class Rising(BestEpoch):
    name = "rising"

    def metrics(self) -> dict[str, float]:
        return {"rising": float(self.model.rows[0])}


def test_worker_0_evaluates_for_all():
    def work(workers: Any) -> JointEvaluation:
        first = workers.cluster.first
        best = JointEvaluation(
            workers, Rising(2, patience=3) if first else None
        )
        model = Small()
        model.set_weights([np.full(2, 4.0 if first else 0.0)])
        best.set_model(model)
        best.set_params({"epochs": 9})
        logs: dict[str, float] = {}
        best.on_epoch_end(1, logs)
        assert logs == {"rising": 4.0}
        return best

    for best in run_workers(2, work):
        assert (best.best, best.best_epoch, best.name) == (4.0, 2, "rising")
        assert (best.every, best.patience) == (2, 3)

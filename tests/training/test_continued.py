"""Trainings that start from the weights of another run, and old clicks."""

import gzip
import pathlib
from collections import Counter
from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.fingerprints import weights_hash
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training import tower_training
from keras_lstm_dssm.training.tower_training import (
    Replay,
    ReplaySpec,
    TowerTraining,
)
from tests.kit.equal import check_equal
from tests.kit.kinds import KEYVEC, KINDS, NEW, PARENT, SCORER
from tests.training.small_trainings import QUICK

pytestmark = pytest.mark.usefixtures("kinds_data", "eager")
CONTINUED = KINDS["continued with replay"]


class Start(keras.callbacks.Callback):
    """Keeps the model's weights, and the optimizer's, before the training."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.weights = self.model.get_weights()
        self.velocities = [
            v.numpy()
            for v in self.model.optimizer.variables
            if "velocity" in v.path
        ]
        self.steps = int(self.model.optimizer.iterations.numpy())


def test_a_run_starts_from_the_weights_of_its_parent(kinds_data):
    start = Start()
    child = CONTINUED.train(recipe=None, output="run", callbacks=[start])
    old = dssm.load_run("PARENT")
    check_equal(start.weights, old)
    # A new optimizer: velocities and training steps are zero.
    assert start.velocities and start.steps == 0
    assert not any(np.any(v) for v in start.velocities)
    # The document frequencies stay those of the parent's titles.
    check_equal(
        *(
            [v.numpy() for v in model.non_trainable_variables]
            for model in (old, child)
        )
    )
    config = RunFolder("run").read_config()
    assert config["init"] == {
        "path": str(kinds_data / "PARENT"), "sha256": weights_hash(old.weights),
    }  # fmt: skip
    assert config["replay"] == f"{kinds_data}/clicks.tsv:0.5"
    assert config["recipe"] == RunFolder("PARENT").read_config()["recipe"]
    # Mined before the first epoch: the parent is trained already.
    assert pathlib.Path("run/hard_negatives.json.gz").exists()


def test_a_model_is_a_parent_too():
    model = dssm.load_run("PARENT")
    before = model.get_weights()
    start = Start()
    child = dssm.train(
        NEW, PARENT.replace(epochs=1), init=model, verbose=0, callbacks=[start]
    )
    check_equal(start.weights, before)
    check_equal(model, before)  # the parent is not changed
    assert any(
        np.any(one != other)
        for one, other in zip(child.get_weights(), before, strict=True)
    )


def test_old_clicks_are_drawn_anew_in_each_epoch(tmp_path):
    log = tmp_path / "old.tsv.gz"
    with gzip.open(log, "wt") as file:
        file.writelines(f"query {n}\ttitle {n}\n" for n in range(2000))
    spec = ReplaySpec.parse(f"{log}:0.3")
    assert spec and spec.share == 0.3 and str(spec) == f"{log}:0.3"
    replay = Replay(spec, 1000, tmp_path, seed=1)
    epochs = [[*map(tuple, replay.of_epoch(epoch))] for epoch in range(2)]
    for pairs in epochs:
        assert len(set(pairs)) == 300
        # From all over the file: 30 expected in each tenth.
        tenths = Counter(int(query.split()[1]) // 200 for query, _ in pairs)
        assert min(tenths.values()) > 12
    assert len(set(epochs[0]) & set(epochs[1])) < 100
    again = Replay(spec, 1000, tmp_path, seed=1)
    assert [*map(tuple, again.of_epoch(0))] == epochs[0]
    other = Replay(spec, 1000, tmp_path, seed=2)
    assert [*map(tuple, other.of_epoch(0))] != epochs[0]
    most = Replay(spec._replace(share=9), 1000, tmp_path, seed=1)
    assert most.rows == 2000 == len(set(most.of_epoch(0)))


def test_old_clicks_are_drawn_once_in_an_epoch(monkeypatch):
    """Mining and batches read one file; the second epoch is not mined for."""
    written: list[str] = []

    def count(path: pathlib.Path) -> Any:
        written.append(path.name)
        return replacing(path)

    monkeypatch.setattr(tower_training, "replacing", count)
    CONTINUED.train()
    assert written == ["epoch_replay.tsv"] * 3


def test_log_q_counts_what_the_epoch_draws(tmp_path):
    config = TrainingConfig(
        ClickLog("new.tsv"), PARENT.replace(title_pairs=0, hard_negatives=0),
        seed=1, init="PARENT", replay=("clicks.tsv", 0.5),
    )  # fmt: skip
    plan = TowerTraining(config, RunFolder(tmp_path))
    plan.prepare(dssm.load_run("PARENT"))
    assert plan.steps_per_epoch == 2
    for first in (0, 2):
        rows = [
            (title.decode(), share)
            for _, titles, extras in plan.batches(first).as_numpy_iterator()
            for title, share in zip(
                titles, np.exp(extras["log_q"][:, 0]), strict=True
            )
        ]
        assert len(rows) == 24
        counts = Counter(title for title, _ in rows)
        for title, share in rows:
            assert share == pytest.approx(counts[title] / 24)


@pytest.mark.parametrize(("data", "new", "recipe"), [
    ("clicks.tsv", "new.tsv", SCORER.replace(words="stems")),
    ("documents", "documents", KEYVEC.replace(words="stems")),
], ids=["a scorer", "a KeyVec"])  # fmt: skip
def test_a_model_keeps_its_words(data, new, recipe):
    recipe = recipe.replace(epochs=1)
    dssm.train(data, recipe, output="RUN", verbose=0)
    start = Start()
    model = dssm.train(new, init="RUN", verbose=0, callbacks=[start])
    old = dssm.load_run("RUN")
    check_equal(start.weights, old)
    for name in ("vocabulary", "split"):
        assert getattr(model.words, name) == getattr(old.words, name)
    assert "brass" not in model.words.vocabulary
    assert model.words.split == "stems"
    if data == "documents":
        assert model.key_vocabulary == old.key_vocabulary
    with pytest.raises(dssm.InputError, match="words='stems', expected 'tri"):
        dssm.train(new, recipe.replace(words="trigrams"), init="RUN")


@pytest.mark.parametrize(("recipe", "message"), [
    (PARENT.with_encoder(cells=3), "query_encoder.cells=2, expected 3"),
    (PARENT.replace(towers="tied"), "expected None|found document_encoder"),
    (QUICK, "query_encoder='CombinedEncoder', expected 'DSSMEncoder'"),
    (SCORER, "found a TwoTower, expected a PairScorer"),
])  # fmt: skip
def test_another_network(recipe, message):
    with pytest.raises(dssm.InputError, match=message) as error:
        dssm.train(NEW, recipe, init="PARENT", verbose=0)
    assert "\n" not in str(error.value)

"""Trainings that start from the weights of another run, and old clicks."""

import gzip
import pathlib
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog, write_pairs
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.fingerprints import weights_hash
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools import train as program
from keras_lstm_dssm.training import replay as replay_module
from keras_lstm_dssm.training.replay import Replay, ReplaySpec
from keras_lstm_dssm.training.tower_training import TowerTraining
from tests.conftest import TOPICS
from tests.kit.eager import eager_steps
from tests.tools.conftest import Refused, refused  # noqa: F401
from tests.training.small_documents import QUICK_KEYVEC, write_small_documents
from tests.training.small_trainings import BEST, QUICK, StopAt, check_equal

NEW = [("brass lamp", "brass table lamp"), ("tin can", "tin can 1 gal")] * 20
OLD = list(TOPICS.values())
SMALL = BEST.replace(epochs=3, logq=True)
SCORER = dssm.ScorerRecipe(
    "RecurrentCosine", {"units": 2}, word_dimension=4, epochs=1, batch_size=7
)


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


@pytest.fixture(scope="module", autouse=True)
def eager() -> Iterator[None]:
    with eager_steps():
        yield


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("logs")
    write_pairs(NEW, folder / "new.tsv")
    write_pairs(OLD * 10, folder / "old.tsv")
    return folder


@pytest.fixture(scope="module")
def parent(logs) -> pathlib.Path:
    """Like `best`, adapted to the old titles."""
    dssm.train(str(logs / "old.tsv"), SMALL, output=logs / "RUN", verbose=0)
    return logs / "RUN"


def continued(
    logs: pathlib.Path, parent: Any, output: Any = None, *callbacks: Any
) -> Any:
    return dssm.train(
        str(logs / "new.tsv"), init=parent, replay=f"{logs}/old.tsv:0.5",
        output=output, seed=4, verbose=0, callbacks=callbacks,
    )  # fmt: skip


def test_the_run_starts_from_the_parent_and_resumes_bit_for_bit(
    logs, parent, tmp_path
):
    """Also when the parent has gone in the meantime."""
    start = Start()
    whole = continued(logs, parent, tmp_path / "whole", start)
    old = dssm.load_run(parent)
    check_equal(start.weights, old.get_weights())
    # A new optimizer: velocities and training steps are zero.
    assert start.velocities and start.steps == 0
    assert not any(np.any(v) for v in start.velocities)
    # The document frequencies stay those of the parent's titles.
    check_equal(
        *(
            [v.numpy() for v in model.non_trainable_variables]
            for model in (old, whole)
        )
    )
    config = RunFolder(tmp_path / "whole").read_config()
    assert config["init"] == {
        "path": str(parent), "sha256": weights_hash(old.weights),
    }  # fmt: skip
    assert config["replay"] == f"{logs}/old.tsv:0.5"
    assert config["recipe"] == RunFolder(parent).read_config()["recipe"]
    # 40 new clicks, one synthetic pair a title, half as many old as new.
    assert config["pairs"] == 40 + 2 + 20
    moved = shutil.copytree(parent, tmp_path / "parent")
    for step in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            if step == 1:
                continued(logs, moved, tmp_path / "cut", StopAt(step))
            else:
                dssm.resume(
                    tmp_path / "cut", verbose=0, callbacks=[StopAt(step)]
                )
        # Mined before the first epoch: the parent is trained already.
        assert (tmp_path / "cut" / "hard_negatives.json.gz").exists()
        shutil.rmtree(moved, ignore_errors=True)
    check_equal(
        dssm.resume(tmp_path / "cut", verbose=0).get_weights(),
        whole.get_weights(),
    )


def test_a_model_is_a_parent_too(logs, parent):
    model = dssm.load_run(parent)
    before = model.get_weights()
    start = Start()
    child = dssm.train(
        NEW, SMALL.replace(epochs=1), init=model, verbose=0, callbacks=[start]
    )
    check_equal(start.weights, before)
    check_equal(model.get_weights(), before)  # the parent is not changed
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


def test_old_clicks_are_drawn_once_in_an_epoch(logs, parent, monkeypatch):
    """Mining and batches read one file; the second epoch is not mined for."""
    written: list[str] = []

    def count(path: pathlib.Path) -> Any:
        written.append(path.name)
        return replacing(path)

    monkeypatch.setattr(replay_module, "replacing", count)
    recipe = SMALL.replace(epochs=3, mine_every=2)
    dssm.train(
        str(logs / "new.tsv"), recipe, init=parent, verbose=0,
        replay=f"{logs}/old.tsv:0.5",
    )  # fmt: skip
    assert written == ["epoch_replay.tsv"] * 3


def test_log_q_counts_what_the_epoch_draws(logs, parent, tmp_path):
    config = TrainingConfig(
        ClickLog(logs / "new.tsv"),
        SMALL.replace(title_pairs=0, hard_negatives=0),
        seed=1,
        init=parent,
        replay=(logs / "old.tsv", 0.5),
    )
    plan = TowerTraining(config, RunFolder(tmp_path))
    plan.prepare(dssm.load_run(parent))
    assert plan.steps_per_epoch == 2
    for first in (0, 2):
        rows = [
            (title.decode(), share)
            for _, titles, extras in plan.batches(first).as_numpy_iterator()
            for title, share in zip(
                titles, np.exp(extras["log_q"][:, 0]), strict=True
            )
        ]
        assert len(rows) == 60
        counts = Counter(title for title, _ in rows)
        for title, share in rows:
            assert share == pytest.approx(counts[title] / 60)


def test_a_scorer_keeps_its_words(tmp_path):
    stems = SCORER.replace(words="stems")
    dssm.train(OLD, stems, output=tmp_path, verbose=0)
    start = Start()
    model = dssm.train(NEW, init=tmp_path, verbose=0, callbacks=[start])
    old = dssm.load_run(tmp_path)
    check_equal(start.weights, old.get_weights())
    assert model.words.vocabulary == old.words.vocabulary
    assert "brass" not in model.words.vocabulary
    with pytest.raises(InputError, match="words='stems', expected 'tri"):
        dssm.train(NEW, SCORER.replace(words="trigrams"), init=tmp_path)
    with pytest.raises(InputError, match="replay is used by two towers only"):
        dssm.train(NEW, init=tmp_path, replay=(OLD, 0.1))


@pytest.mark.parametrize("words", ["vocabulary", "stems"])
def test_a_keyvec_keeps_its_words(tmp_path, words):
    folder = write_small_documents(tmp_path / "documents").folder
    recipe = QUICK_KEYVEC.replace(epochs=1, words=words)
    dssm.train(folder, recipe, output=tmp_path / "RUN", verbose=0)
    start = Start()
    model = dssm.train(
        folder, init=tmp_path / "RUN", verbose=0, callbacks=[start]
    )
    old = dssm.load_run(tmp_path / "RUN")
    check_equal(start.weights, old.get_weights())
    assert model.key_vocabulary == old.key_vocabulary
    assert model.words.vocabulary == old.words.vocabulary
    assert (model.words.split == "stems") == (words == "stems")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (SMALL.with_encoder(cells=3), r"query_encoder.cells=2, expected 3"),
        (SMALL.replace(towers="tied"), "expected None|found document_encoder"),
        (QUICK, "query_encoder='CombinedEncoder', expected 'DSSMEncoder'"),
        (SCORER, "found a TwoTower, expected a PairScorer"),
    ],
)
def test_another_network(recipe, message, parent):
    with pytest.raises(InputError, match=message) as error:
        dssm.train(NEW, recipe, init=parent, verbose=0)
    assert "\n" not in str(error.value)


def test_the_program(
    logs,
    parent,
    tmp_path,
    refused,  # noqa: F811
    capsys,
):
    run = tmp_path / "run"
    flags = [
        "train", f"--data={logs}/new.tsv", f"--init={parent}", "--seed=4",
        f"--replay={logs}/old.tsv:0.5", "--learning_rate=0.02",
    ]  # fmt: skip
    assert program.run([*flags, f"--output={run}", "--epochs=1"]) == 0
    recipe = RunFolder(run).read_config()["recipe"]
    assert (recipe["epochs"], recipe["learning_rate"]) == (1, 0.02)
    assert recipe["encoder"] == "CombinedEncoder"
    assert program.run([*flags, f"--output={run}", "--resume"]) == 0
    flags[2] = f"--init={run}"
    refused_by = [
        ([*flags, f"--output={run}", "--resume"], f"started with {parent}"),
        (
            [*flags, f"--output={tmp_path}/x", "--preset=lstm_32"],
            "query_encoder='CombinedEncoder', expected 'LSTMEncoder'",
        ),
        (
            [*flags[:2], *flags[4:], f"--output={tmp_path}/x"],
            "replay mixes old clicks into a training that is continued",
        ),
        (
            [*flags[:4], "--replay=old.tsv", f"--output={tmp_path}/x"],
            "replay is 'old.tsv': expected old clicks, a colon and a share",
        ),
        (
            [*flags[:2], "--init=nothing", f"--output={tmp_path}/x"],
            "nothing: no model here",
        ),
    ]
    capsys.readouterr()
    for arguments, message in refused_by:
        refused(program.run(arguments), message)
    assert not (tmp_path / "x").exists()

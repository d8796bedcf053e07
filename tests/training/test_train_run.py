"""A run goes on exactly where it was stopped, at any update."""

import csv
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.training import RunFolder

STEPS = 15  # 120 clicks in batches of 8


@pytest.mark.parametrize("at", [7, STEPS, 22])
def test_stopped_at_an_update_and_resumed(
    at: int,
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Weights, velocities and rows that are behind, equal bit for bit."""

    def run(*flags: str, output: pathlib.Path) -> int:
        return train.run(["lstm-dssm-train", *flags, f"--output={output}"])

    def stop(callback: dssm.NesterovSchedule, batch: int, logs: dict) -> None:
        if int(callback.model.optimizer.iterations.numpy()) == at:
            raise KeyboardInterrupt

    settings = [
        f"--data={collection_folder}",
        "--preset=lstm_32",
        "--epochs=2",
        "--batch_size=8",
        "--negatives=random",
    ]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(*settings, output=whole) == 0
    with monkeypatch.context() as patch:
        patch.setattr(dssm.NesterovSchedule, "on_train_batch_end", stop)
        assert run(*settings, output=parts) == 130
    stopped = RunFolder(parts).load_checkpoint()
    assert int(stopped.optimizer.iterations.numpy()) == at
    # What a user takes from the stopped run is the model, brought up to date.
    stopped.settle()
    for one, other in zip(
        stopped.weights, dssm.load_run(parts).weights, strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert run("--resume", output=parts) == 0
    first, second = (RunFolder(p).load_checkpoint() for p in (whole, parts))
    for model in (first, second):
        assert int(model.optimizer.iterations.numpy()) == 2 * STEPS
    for one, other in zip(
        first.weights + first.optimizer.variables,
        second.weights + second.optimizer.variables,
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    with (parts / "history.csv").open() as file:
        updates = [row["updates"] for row in csv.DictReader(file)]
    # At 15 it was stopped after the epoch's last update, before its figures.
    assert updates == (["30"] if at == STEPS else ["15", "30"])


def test_a_folder_without_what_is_asked_for(tmp_path: pathlib.Path) -> None:
    run = RunFolder(tmp_path)
    for load, message in (
        (run.load_model, "no model here"),
        (run.load_checkpoint, "nothing to resume"),
        (run.read_config, "no run here"),
    ):
        with pytest.raises(InputError, match=message):
            load()
    run.model.write_text("not a model")
    with pytest.raises(InputError, match=r"model\.keras: not a model"):
        run.load_model()


@pytest.mark.parametrize("content", ["{", "[]", "\udcff"])
def test_a_damaged_file_is_named(tmp_path: pathlib.Path, content: str) -> None:
    run = RunFolder(tmp_path)
    for file, read in (
        (run.config, run.read_config),
        (run.metrics, run.read_metrics),
        (run.metrics, lambda: run.add_metrics("dev", {})),
    ):
        file.write_text(content, errors="surrogateescape")
        with pytest.raises(InputError, match=f"{file.name}: .*damaged"):
            read()


@pytest.mark.parametrize(
    "content",
    [
        "loss\n0.5\n",
        "epoch,updates,loss\none,2,0.5\n",
        "epoch,updates,loss\n1,2\n",
        "epoch,updates,loss\n1,2,0.5,0.6\n",
        "\udcff",
    ],
)
def test_a_damaged_history_is_named(
    tmp_path: pathlib.Path, content: str
) -> None:
    run = RunFolder(tmp_path)
    assert run.read_history() == []
    text = "epoch,updates,loss\n1,2,0.5\n"
    run.history.write_text(text)
    assert run.read_history() == [{"epoch": 1, "updates": 2, "loss": 0.5}]
    run.history.write_text(content, errors="surrogateescape")
    with pytest.raises(InputError, match="history.csv: not the figures"):
        run.read_history()


def test_metrics_keep_what_other_programs_wrote(
    tmp_path: pathlib.Path,
) -> None:
    run = RunFolder(tmp_path)
    run.add_metrics("dev", {"mrr@10": 0.5})
    run.add_metrics("test", {"mrr@10": 0.4})
    run.add_metrics("dev", {"mrr@10": 0.6})
    assert run.metrics.read_text().split() == (
        '{ "dev": { "mrr@10": 0.6 }, "test": { "mrr@10": 0.4 } }'.split()
    )

"""Mined negatives: what is found, what is learnt, and runs that go on."""

import gzip
import json
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog, GivenNegatives, Pair
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.training import (
    HardNegatives,
    RunFolder,
    hard_negatives,
    mine_negatives,
)

CLICKS = [
    Pair("garden hose", "rubber garden hose"),
    Pair("garden hose", "hose, 50 ft"),
    Pair("desk lamp", "small desk lamp"),
    Pair("rope", "nylon rope"),
    Pair("lamp", "small desk lamp"),
]


def model() -> dssm.TwoTower:
    return dssm.TwoTower.from_preset("lstm_32", equal_start=True)


@pytest.mark.parametrize("at_once", [1, 2**24])
def test_the_nearest_titles_that_were_not_clicked(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hard_negatives, "_SCORES_AT_ONCE", at_once)
    towers = model()
    titles = sorted({title for _, title in CLICKS})
    cosine = (
        towers.query_encoder.encode(["garden hose", "lamp"])
        @ towers.document_encoder.encode(titles).T
    )
    found = mine_negatives(towers, CLICKS, top=2)
    assert list(found) == ["garden hose", "desk lamp", "rope", "lamp"]
    for row, (query, clicked) in enumerate(
        (("garden hose", [0, 2]), ("lamp", [3]))
    ):
        clicked_titles = {t for q, t in CLICKS if q == query}
        assert {titles[i] for i in clicked} == clicked_titles
        best = [titles[i] for i in np.argsort(-cosine[row]) if i not in clicked]
        assert found[query] == best[:2]


def test_as_many_as_there_are() -> None:
    found = mine_negatives(model(), CLICKS, top=30)
    assert {query: len(titles) for query, titles in found.items()} == {
        "garden hose": 2, "desk lamp": 3, "rope": 3, "lamp": 3,
    }  # fmt: skip
    one = [Pair("rope", "nylon rope")]
    assert mine_negatives(model(), one) == {"rope": []}


def write_log(path: pathlib.Path) -> str:
    path.write_text("".join(f"{q}\t{d}\n" for q, d in CLICKS * 8))
    return str(path)


def settings(log: str) -> list[str]:
    return [
        f"--data={log}",
        "--preset=lstm_32",
        "--epochs=3",
        "--batch_size=8",
        "--hard_negatives=2",
        "--logq",
    ]


def run(*flags: str, output: pathlib.Path) -> int:
    return train.run(["lstm-dssm-train", *flags, f"--output={output}"])


@pytest.mark.parametrize("at", [10, 13])  # 5 updates an epoch
def test_a_run_that_mines_goes_on_bit_for_bit(
    at: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(callback: dssm.NesterovSchedule, batch: int, logs: dict) -> None:
        if int(callback.model.optimizer.iterations.numpy()) == at:
            raise KeyboardInterrupt

    flags = settings(write_log(tmp_path / "clicks.tsv"))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(*flags, output=whole) == 0
    with monkeypatch.context() as patch:
        patch.setattr(dssm.NesterovSchedule, "on_train_batch_end", stop)
        assert run(*flags, output=parts) == 130
    assert run("--resume", output=parts) == 0
    first, second = (RunFolder(p).load_checkpoint() for p in (whole, parts))
    for one, other in zip(
        first.weights + first.optimizer.variables,
        second.weights + second.optimizer.variables,
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    # Mined before the third epoch.
    with gzip.open(parts / "hard_negatives.json.gz", "rt") as file:
        assert json.load(file)["epoch"] == 2


def test_the_file_of_a_resumed_run_is_missing(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(callback: dssm.NesterovSchedule, batch: int, logs: dict) -> None:
        if int(callback.model.optimizer.iterations.numpy()) == 13:
            raise KeyboardInterrupt

    flags = settings(write_log(tmp_path / "clicks.tsv"))
    with monkeypatch.context() as patch:
        patch.setattr(dssm.NesterovSchedule, "on_train_batch_end", stop)
        assert run(*flags, output=tmp_path / "run") == 130
    (tmp_path / "run" / "hard_negatives.json.gz").unlink()
    capsys.readouterr()
    assert run("--resume", output=tmp_path / "run") == 1
    error = capsys.readouterr().err
    assert "hard_negatives.json.gz: found no negatives mined before" in error
    assert "restore the file, or train anew" in error


def test_a_file_of_another_epoch(tmp_path: pathlib.Path) -> None:
    log = ClickLog(write_log(tmp_path / "clicks.tsv"))
    mined = HardNegatives(tmp_path / "mined.json.gz", log, k=1, every=2)
    assert mined.of_epoch(1, model(), begins=True) is None
    found = mined.of_epoch(2, model(), begins=True)
    assert isinstance(found, GivenNegatives)
    assert mined.of_epoch(3, model(), begins=True) is not None
    with pytest.raises(InputError, match="before epoch 7 .mined before epoch "):
        mined.of_epoch(7, model(), begins=True)
    assert [mined.next_mining(epoch) for epoch in range(4)] == [2, 2, 4, 4]


def test_a_log_in_which_there_is_nothing_to_mine(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "clicks.tsv"
    path.write_text("rope\tnylon rope\n" * 20)
    flags = [flag for flag in settings(str(path)) if flag != "--logq"]
    assert run(*flags, output=tmp_path / "run") == 0

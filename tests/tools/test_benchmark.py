"""lstm-dssm-benchmark as a user runs it, with small sizes and models."""

import json
from pathlib import Path

import pytest

from keras_lstm_dssm.tools import benchmark
from tests.benchmarks.conftest import small_towers  # noqa: F401  (fixture)


def run(*arguments: str) -> int:
    return benchmark.run(["lstm-dssm-benchmark", *arguments])


@pytest.mark.usefixtures("small_towers")
def test_suites(collection_folder: Path, tmp_path: Path) -> None:
    assert not run(
        "--suite=train,encode,serve,scale",
        f"--data={collection_folder}",
        "--batch_size=16",
        "--steps=1",
        "--rounds=1",
        "--titles=4",
        "--queries=3",
        "--pairs=64",
        f"--json={tmp_path / 'out.json'}",
    )
    results = json.loads((tmp_path / "out.json").read_text())
    machine, train, encode, serve, scale = results.values()
    assert machine["cpu"] and machine["cores"] >= 1
    for suite, unit in (
        (train, "pairs_per_second"),
        (encode, "titles_per_second"),
    ):
        ours, peer = suite["ours"][unit], suite["keras"][unit]
        assert suite["ratio_keras"] == pytest.approx(ours / peer)
    assert 0 < train["limit_fraction"] < 1
    assert encode["ratio_exported"] > 0
    for way in ("in_process", "grpc"):
        assert 0 < serve[way]["p50_ms"] <= serve[way]["p99_ms"]
    assert scale["logs"]["64"]["microseconds_per_pair"] > 0
    assert scale["cost_ratio"] == 1  # of one log, by itself
    assert scale["peak_gigabytes"] > 0.1
    assert scale["first_step_seconds"] > 0.5


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--suite=train,sing"], "all, or some of train, encode, serve, load"),
        (["--suite="], "all, or some of train, encode, serve, load"),
        (["--pairs=10k"], "--pairs=10k: expected numbers"),
        (["--clients=8,"], "such as 8,64"),
        (["--data=nowhere.tsv"], "nowhere.tsv"),
        (["--data={folder}", "--rounds=1"], "--batch_size"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_1(
    arguments: list[str],
    expected: str,
    collection_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run(*(a.format(folder=collection_folder) for a in arguments))
    errors = capsys.readouterr().err
    assert code == 1
    assert errors.count("\n") == 1
    assert expected in errors

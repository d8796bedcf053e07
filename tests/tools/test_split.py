import json
import pathlib

import pytest

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.tools import evaluate, split, train
from tests.tools.conftest import succeed
from tests.training.small_trainings import QUICK


@pytest.fixture
def clicks(tmp_path) -> pathlib.Path:
    """Writes 200 queries with two titles, of which one is clicked twice."""
    path = tmp_path / "clicks.tsv"
    path.write_text(
        "".join(
            f"query {i}\ttitle {i % 9}\nquery {i}\ttitle {(i + 1) % 9}\n"
            f"query {i}\ttitle {i % 9}\n"
            for i in range(200)
        )
    )
    return path


def test_split_train_evaluate(clicks, tmp_path, capsys, monkeypatch):
    folder, figures = tmp_path / "data", tmp_path / "out.json"
    flags = {"data": clicks, "output": folder, "json": figures}
    succeed(split, **flags, test_percent=20)
    result = json.loads(figures.read_text())
    collection = Collection(folder)
    dev, test = (len(collection.qrels(s)) for s in ("dev", "test"))
    assert result == {
        "titles": 9,
        "bad_lines": {},
        "train_clicks": 3 * (200 - dev - test),
        "dev_queries": dev,
        "test_queries": test,
    }
    assert capsys.readouterr().out.splitlines() == [
        f"9 titles, {dev + test} queries",
        f"train: {result['train_clicks']} clicks",
        f"dev: {dev} queries, {2 * dev} pairs",
        f"test: {test} queries, {2 * test} pairs",
    ]
    run = tmp_path / "run"
    monkeypatch.setitem(PRESETS, "dssm", QUICK)
    succeed(train, data=folder, preset="dssm", epochs=1, output=run)
    for mode in ("rerank", "retrieve"):
        succeed(evaluate, run=run, data=folder, mode=mode)
        out = capsys.readouterr().out
        assert f"test, {mode}: {test} queries, 9 documents in the corpus" in out


def test_bad_lines_are_skipped_and_reported(clicks, tmp_path, capsys):
    with clicks.open("a") as file:
        file.write("no tab\na\tb\tc\nno tab either\n")
    folder, figures = tmp_path / "data", tmp_path / "out.json"
    flags = [f"--data={clicks}", f"--output={folder}", f"--json={figures}"]
    assert split.run(["split", *flags]) == 1
    assert "clicks.tsv:601: found no tab" in capsys.readouterr().err
    flags.append("--on_bad_line=skip")
    assert split.run(["split", *flags, "--max_bad_lines=2"]) == 1
    assert "more than --max_bad_lines=2" in capsys.readouterr().err
    assert not folder.exists()
    assert split.run(["split", *flags, "--max_bad_lines=3"]) == 0
    assert "--data: left out bad lines: no tab: 2, 2 tabs: 1\n" in (
        capsys.readouterr().out
    )
    result = json.loads(figures.read_text())
    assert result["bad_lines"] == {"no tab": 2, "2 tabs": 1}
    assert result["titles"] == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output={new}"], "--data"),
        (["--data={clicks}"], "--output"),
        (["--data=none.tsv", "--output={new}"], "none.tsv: no such file"),
        (["--data=,", "--output={new}"], "no click file was given"),
        (["--data={here}", "--output={new}"], "found a folder, expected click"),
        (["--data={clicks}", "--output={here}"], "is already there"),
        (["--data={clicks}", "--output={clicks}/new"], "found a file, expect"),
        (["--data={clicks}", "--output={new}", "--test_percent=95"], "95 %"),
        (["--data={clicks}", "--output={new}", "--dev_percent=-1"], "-1"),
    ],
)
def test_wrong_input_is_one_line(clicks, tmp_path, refused, arguments, message):
    places = {"clicks": clicks, "here": tmp_path, "new": tmp_path / "new"}
    code = split.run(["split", *(a.format(**places) for a in arguments)])
    refused(code, message)
    assert list(tmp_path.iterdir()) == [clicks]

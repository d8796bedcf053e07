"""What lstm-dssm-train can learn from beside clicks, and what excludes what."""

import json
import pathlib
import shutil
from typing import Any

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distillation.teacher_vectors import teach
from keras_lstm_dssm.settings.fields import Settings
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.tools.settings_flags import flag_names
from tests.conftest import TOPICS
from tests.settings.other_values import other_values
from tests.training.small_trainings import QUICK


def run(data: object, output: pathlib.Path, *flags: str) -> int:
    given = ["--preset=dssm", "--epochs=1", "--batch_size=16", *flags]
    return train.run(["train", f"--data={data}", f"--output={output}", *given])


@pytest.fixture(autouse=True)
def small_preset(monkeypatch) -> None:
    """Makes a preset quick to train."""
    monkeypatch.setitem(dssm.PRESETS, "dssm", QUICK)


def config(output: pathlib.Path) -> dict:
    return json.loads((output / "config.json").read_text())


@pytest.fixture
def judged_folder(collection_folder, tmp_path) -> pathlib.Path:
    """Copies the collection, with grades for its training split."""
    folder = shutil.copytree(collection_folder, tmp_path / "judged")
    qrels = folder / "qrels"
    shutil.copy(qrels / "dev.tsv", qrels / "train.tsv")
    return folder


def test_pairs_of_titles_beside_the_clicks(collection_folder, tmp_path, capsys):
    output = tmp_path / "run"
    assert run(collection_folder, output, "--title_pairs=2") == 0
    pairs = (output / "title_pairs.tsv").read_text().splitlines()
    # Each of the six titles, not one of a single word, twice.
    assert len(pairs) == 12
    for query, title in (line.split("\t") for line in pairs):
        assert 0 < len(query.split()) < len(title.split())
    assert config(output)["pairs"] == 120 + 12
    assert "132 pairs" in capsys.readouterr().out
    # Made again, the same, when the run is taken up again.
    (output / "title_pairs.tsv").unlink()
    resumed = ["lstm-dssm-train", "--resume", f"--output={output}"]
    assert train.run(resumed) == 0
    assert "already finished" in capsys.readouterr().out


def values_of_flags(recipe: type[Settings]) -> dict[str, Any]:
    """Returns flag of a recipe -> a value that is not the default."""
    others = other_values(recipe)
    return {name: others[name] for name in flag_names([recipe])}


SCORER_FLAGS = values_of_flags(dssm.ScorerRecipe) | {
    "epochs": 2, "batch_size": 9, "words": "trigrams", "mined_negatives": 2,
}  # fmt: skip


def test_the_preset_of_a_teacher_without_one_is_warned_of(
    collection_folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(dssm.PRESETS, "taught", QUICK)
    (tmp_path / "encoder_of_lengths.py").write_text(
        "def encode(texts):\n    return [[len(text), 1] for text in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    encoder = "encoder_of_lengths:encode"
    teach(str(collection_folder), encoder, tmp_path / "TEACH")
    for name, flags, warnings in (
        ("alone", [], 1),
        ("alone", ["--resume"], 0),
        ("taught", ["--teacher=TEACH"], 0),
    ):
        output, preset = tmp_path / name, "--preset=taught"
        assert run(collection_folder, output, preset, *flags) == 0
        lines = capsys.readouterr().err.splitlines()
        found = [line for line in lines if line.startswith("warning: ")]
        assert len(found) == warnings, flags
        assert all("--preset=best is the recipe wi" in line for line in found)
    # Its path is absolute: a run may be resumed from another folder.
    assert config(output)["teacher"] == str(tmp_path / "TEACH")


def test_each_flag_changes_a_value_of_a_pair_scorers_recipe(
    collection_folder, tmp_path, monkeypatch, capsys
):
    """Trains a pair scorer on clicks, for which negatives are mined."""
    small = dssm.ScorerRecipe("RecurrentCosine", {"units": 2}, "vocabulary", 2)
    monkeypatch.setitem(dssm.SCORER_PRESETS, "lstm_rnn_50", small)
    clicks, output = tmp_path / "clicks.tsv", tmp_path / "run"
    clicks.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()))
    flags = [f"--{name}={value}" for name, value in SCORER_FLAGS.items()]
    preset = ["--preset=lstm_rnn_50", *flags]
    begin = ["lstm-dssm-train", f"--data={clicks}", f"--output={output}"]
    assert train.run([*begin, *preset]) == 0
    assert "12 triples of 6 queries" in capsys.readouterr().out
    assert dssm.ScorerRecipe.from_dict(
        config(output)["recipe"]
    ) == small.replace(**SCORER_FLAGS)
    resumed = ["lstm-dssm-train", "--resume", f"--output={output}"]
    assert train.run([*resumed, *preset]) == 0
    capsys.readouterr()
    for wrong, message in (
        ("--margin=2", "--margin=2.0: the run in"),
        ("--preset=lstm_96", "was started with RecurrentCosine({'units': 2})"),
    ):
        assert train.run([*resumed, wrong]) == 1
        assert message in capsys.readouterr().err
    assert train.run([*begin[:-1], f"--output={output}2", *preset, "--n=3"])
    error = capsys.readouterr().err
    assert "--n is not a flag of --preset=lstm_rnn_50" in error


def test_several_sources(collection_folder, judged_folder, tmp_path):
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("rope\tnylon rope\n" * 3)
    for name in ("clicks.train.tsv.gz", "clicks.train.tsv"):
        (judged_folder / name).unlink(missing_ok=True)
    output = tmp_path / "run"
    several = f"{collection_folder}, {clicks}, {judged_folder}"
    assert run(several, output) == 0
    # 120 clicks, 3, and the six titles that are judged to be right.
    assert config(output)["pairs"] == 129
    assert (output / "clicks.train3.tsv").exists()


def test_judged_negatives(judged_folder, tmp_path, monkeypatch):
    """Judged negatives replace the mined ones of the preset's recipe."""
    mined = QUICK.replace(
        negatives="in_batch", hard_negatives=2, mine_every=1, epochs=2
    )
    monkeypatch.setitem(dssm.PRESETS, "dssm", mined)
    output = tmp_path / "run"
    flags = ["--judged_negatives=2", "--epochs=2"]
    assert run(judged_folder, output, *flags) == 0
    recipe = config(output)["recipe"]
    assert (recipe["hard_negatives"], recipe["judged_negatives"]) == (0, 2)
    assert not (output / "hard_negatives.json.gz").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--hard_negatives=1", "--judged_negatives=1"],
            "hard_negatives and judged_negatives are both set: expected one",
        ),
        (
            ["--logq", "--negatives=random"],
            "logq corrects in-batch negatives, but negatives is 'random'",
        ),
        (
            ["--teacher_weight=2"],
            "--teacher_weight is used with --teacher only",
        ),
        (["--judged_negatives=1"], "found no title with a score below 1"),
    ],
)
def test_what_cannot_be_had(
    collection_folder, tmp_path, flags, message, refused
):
    refused(run(collection_folder, tmp_path / "run", *flags), message)
    assert not (tmp_path / "run").exists()

"""What lstm-dssm-train can learn from beside clicks, and what excludes what."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.tools import train


def run(data: object, output: pathlib.Path, *flags: str) -> int:
    return train.run(
        [
            "lstm-dssm-train",
            f"--data={data}",
            "--preset=lstm_32",
            "--epochs=1",
            "--batch_size=16",
            f"--output={output}",
            *flags,
        ]
    )


def config(output: pathlib.Path) -> dict:
    return json.loads((output / "config.json").read_text())


@pytest.fixture
def judged_folder(
    collection_folder: pathlib.Path, tmp_path: pathlib.Path
) -> pathlib.Path:
    """With a training split that is judged."""
    folder = shutil.copytree(collection_folder, tmp_path / "judged")
    qrels = folder / "qrels"
    shutil.copy(qrels / "dev.tsv", qrels / "train.tsv")
    return folder


def test_pairs_of_titles_beside_the_clicks(
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "run"
    assert run(collection_folder, output, "--title_pairs=2") == 0
    pairs = (output / "title_pairs.tsv").read_text().splitlines()
    # Each of the six titles, not one of a single word, twice.
    assert len(pairs) == 12
    for query, title in (line.split("\t") for line in pairs):
        assert 0 < len(query.split()) < len(title.split())
    assert config(output)["clicks"] == 120 + 12
    assert "132 clicks" in capsys.readouterr().out
    # Made again, the same, when the run is taken up again.
    (output / "title_pairs.tsv").unlink()
    resumed = ["lstm-dssm-train", "--resume", f"--output={output}"]
    assert train.run(resumed) == 0
    assert "already finished" in capsys.readouterr().out


@pytest.mark.parametrize("equal", [True, False])
def test_both_encoders_start_equal(
    equal: bool, collection_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    flag = f"--equal_start={str(equal).lower()}"
    # A step that changes nothing leaves the start to be seen.
    still = "--learning_rate=1e-9"
    assert run(collection_folder, tmp_path / "run", flag, still) == 0
    model = dssm.load_run(tmp_path / "run")
    query, document = (t.embedding.table.numpy() for t in model.towers)
    assert np.allclose(query, document, atol=1e-5) == equal


def test_several_sources(
    collection_folder: pathlib.Path,
    judged_folder: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("rope\tnylon rope\n" * 3)
    for name in ("clicks.train.tsv.gz", "clicks.train.tsv"):
        (judged_folder / name).unlink(missing_ok=True)
    output = tmp_path / "run"
    several = f"{collection_folder}, {clicks}, {judged_folder}"
    assert run(several, output) == 0
    # 120 clicks, 3, and the six titles that are judged to be right.
    assert config(output)["clicks"] == 129
    assert (output / "clicks.train3.tsv").exists()


def test_judged_negatives(
    judged_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    output = tmp_path / "run"
    # In place of the mined ones of the preset's recipe.
    flags = ["--preset=best", "--judged_negatives=2"]
    assert run(judged_folder, output, *flags) == 0
    assert config(output)["hard_negatives"] == 0
    assert not (output / "hard_negatives.json.gz").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--hard_negatives=1", "--judged_negatives=1"],
            "--hard_negatives and --judged_negatives: give one of them",
        ),
        (
            ["--logq", "--negatives=random"],
            "--logq corrects in-batch negatives; got --negatives=random",
        ),
        (["--judged_negatives=1"], "found no title with a score below 1"),
    ],
)
def test_what_cannot_be_had(
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
    flags: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(collection_folder, tmp_path / "run", *flags) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "run" / "config.json").exists()

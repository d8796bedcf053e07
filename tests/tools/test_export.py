"""lstm-dssm-export, -search and -encode as a user runs them."""

import json
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.tools import encode, export, search


@pytest.fixture(scope="module")
def models(
    trained_run: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("export")
    titles = folder / "titles.txt"
    titles.write_text(
        "t1\tsteel hex bolt zinc 3 in\nt2\tinterior wood glue 8 oz\n"
        "t3\t50 ft rubber garden hose\n"
    )
    code = export.run(
        [
            "lstm-dssm-export",
            f"--run={trained_run}",
            f"--documents={titles}",
            f"--output={folder / 'models'}",
        ]
    )
    assert code == 0
    return folder / "models"


def test_models_folder_is_complete(models: pathlib.Path) -> None:
    for name in ("query_encoder", "document_encoder", "retriever"):
        assert (models / name / "1" / "saved_model.pb").exists()
    for name in ("models.config", "batching.config", "README.md"):
        assert (models / name).read_text()


def test_search_finds_the_right_title(
    models: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = tmp_path / "hits.json"
    code = search.run(
        [
            "lstm-dssm-search",
            f"--models={models}",
            "--k=2",
            f"--json={results}",
            "wood glue",
            "hex bolt",
        ]
    )
    assert code == 0
    assert "t2" in capsys.readouterr().out
    glue, bolt = json.loads(results.read_text())["queries"]
    assert glue["query"] == "wood glue"
    assert glue["hits"][0]["id"] == "t2"
    assert bolt["hits"][0]["id"] == "t1"
    assert len(bolt["hits"]) == 2


def test_encode_writes_what_the_encoder_gives(
    models: pathlib.Path, trained_run: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    texts = ["wood glue", "", "中文", "a " * 300]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    code = encode.run(
        [
            "lstm-dssm-encode",
            f"--saved_model={models / 'document_encoder'}",
            f"--input={tmp_path / 'texts.txt'}",
            f"--output={tmp_path / 'vectors.npy'}",
        ]
    )
    assert code == 0
    expected = dssm.load_run(trained_run).document_encoder.encode(texts)
    vectors = np.load(tmp_path / "vectors.npy")
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("program", "arguments", "expected"),
    [
        (export, ["--run={tmp}/none", "--output={tmp}/m"], "no model here"),
        (export, ["--output={tmp}/m"], "--run"),
        (
            export,
            ["--run={run}", "--output={tmp}/m", "--documents={tmp}/no.txt"],
            "no.txt",
        ),
        (search, ["--models={tmp}", "glue"], "no SavedModel"),
        (search, ["--models={models}"], "no query"),
        (
            encode,
            ["--saved_model={models}/retriever", "--input={run}/config.json",
             "--output={tmp}/v.npy"],
            "expected ['text']",
        ),
        (
            encode,
            ["--saved_model={models}/query_encoder", "--input={tmp}/no.txt",
             "--output={tmp}/v.npy"],
            "no.txt",
        ),
        (
            encode,
            ["--saved_model={models}/query_encoder", "--input={tmp}/no.txt",
             "--output={tmp}/no/v.npy"],
            "v.npy: there is no folder",
        ),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_exit_code_1(
    program: object,
    arguments: list[str],
    expected: str,
    models: pathlib.Path,
    trained_run: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled = [
        a.format(tmp=tmp_path, run=trained_run, models=models)
        for a in arguments
    ]
    assert program.run(["program", *filled]) == 1  # type: ignore[attr-defined]
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert expected in errors
    assert not (tmp_path / "m").exists()

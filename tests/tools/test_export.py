"""lstm-dssm-export, -search, -encode and -index as a user runs them."""

import json
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export.documents import read_ids
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.tools import encode, export, index, search

TITLES = (
    "t1\tsteel hex bolt zinc 3 in\nt2\tinterior wood glue 8 oz\n"
    "t3\t50 ft rubber garden hose\n"
)


@pytest.fixture(scope="module")
def models(
    trained_run: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("export")
    titles = folder / "titles.txt"
    titles.write_text(TITLES)
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


def test_int8_retriever_finds_the_same_up_to_its_largest_k(
    trained_run: pathlib.Path, tmp_path: pathlib.Path, models: pathlib.Path
) -> None:
    (tmp_path / "titles.txt").write_text(TITLES)
    code = export.run(
        [
            "lstm-dssm-export",
            f"--run={trained_run}",
            f"--documents={tmp_path / 'titles.txt'}",
            "--vectors=int8",
            "--max_k=2",
            f"--output={tmp_path / 'models'}",
        ]
    )
    assert code == 0
    hits, rounded = (
        SavedRetriever(folder / "retriever").search(["wood glue"], k=3)[0]
        for folder in (models, tmp_path / "models")
    )
    assert len(hits) == 3
    assert [hit.id for hit in rounded] == [hit.id for hit in hits[:2]]
    differences = [
        abs(hit.score - other.score)
        for hit, other in zip(hits[:2], rounded, strict=True)
    ]
    assert 0 < max(differences) < 0.01


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


def test_each_line_has_its_vector_or_is_named(
    models: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts, vectors = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    flags = [
        f"--saved_model={models / 'query_encoder'}",
        f"--input={texts}",
        f"--output={vectors}",
    ]
    for content, rows in ((b"glue\n\nbolt\n\n \n", 5), (b"", 0)):
        texts.write_bytes(content)
        assert encode.run(["encode", *flags]) == 0
        assert np.load(vectors).shape == (rows, 32)
    texts.write_bytes(b"glue\ncaf\xe9\n")
    assert encode.run(["encode", *flags]) == 1
    assert "texts.txt:2: found invalid UTF-8" in capsys.readouterr().err


def test_titles_become_an_index(
    models: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    faiss = pytest.importorskip("faiss")
    (tmp_path / "titles.txt").write_text(TITLES)
    (tmp_path / "queries.txt").write_text("wood glue\nhex bolt\n")
    for model, name, more in (
        ("document_encoder", "titles", [f"--ids={tmp_path / 'titles.ids'}"]),
        ("query_encoder", "queries", []),
    ):
        code = encode.run(
            [
                "lstm-dssm-encode",
                f"--saved_model={models / model}",
                f"--input={tmp_path / name}.txt",
                f"--output={tmp_path / name}.npy",
                *more,
            ]
        )
        assert code == 0
    code = index.run(
        [
            "lstm-dssm-index",
            f"--vectors={tmp_path / 'titles.npy'}",
            f"--queries={tmp_path / 'queries.npy'}",
            "--factory=HNSW4",
            "--search=efSearch=8",
            f"--output={tmp_path / 'titles.faiss'}",
            f"--json={tmp_path / 'index.json'}",
        ]
    )
    assert code == 0
    assert "query_ms" in capsys.readouterr().out
    figures = json.loads((tmp_path / "index.json").read_text())
    assert figures["documents"] == 3
    assert figures["index_megabytes"] > 0
    assert "recall@10" not in figures  # of three
    found = faiss.read_index(str(tmp_path / "titles.faiss"))
    _, rows = found.search(np.load(tmp_path / "queries.npy"), 1)
    ids = read_ids(tmp_path / "titles.ids", found.ntotal)
    assert [ids[row] for row in rows[:, 0]] == ["t2", "t1"]


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
        (
            export,
            ["--run={run}", "--output={tmp}/m", "--vectors=int4"],
            "should be one of",
        ),
        (
            export,
            ["--run={run}", "--output={tmp}/m", "--max_k=0"],
            "--max_k=0: expected an integer",
        ),
        (
            export,
            ["--run={run}", "--output={run}/config.json/m"],
            "config.json: found a file, expected a folder to write in",
        ),
        (search, ["--models={tmp}", "glue"], "no SavedModel"),
        (
            search,
            ["--models={models}", "--k=3000000000", "glue"],
            "k is 3000000000",
        ),
        (
            search,
            ["--models={models}/retriever", "--model=../retriever", "glue"],
            "found the name '../retriever'",
        ),
        (
            index,
            ["--vectors={run}/config.json", "--output={tmp}/i.faiss"],
            "config.json: no array of numbers",
        ),
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

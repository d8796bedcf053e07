"""lstm-dssm-export, -search, -encode and -index as a user runs them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import read_ids
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.serving import PredictionServer, SavedRetriever
from keras_lstm_dssm.tools import encode, export, index, query, search
from tests.tools.conftest import succeed

TITLES = (
    "t1\tsteel hex bolt zinc 3 in\nt2\tinterior wood glue 8 oz\n"
    "t3\t50 ft rubber garden hose\n"
)
pytestmark = pytest.mark.usefixtures("remembered_graphs")


@pytest.fixture(scope="module")
def titles(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("export") / "titles.txt"
    path.write_text(TITLES)
    return path


@pytest.fixture(scope="module")
def models(trained_run, titles) -> Path:
    folder = titles.with_name("models")
    succeed(export, run=trained_run, documents=titles, output=folder)
    return folder


def test_int8_retriever_finds_the_same_up_to_its_largest_k(
    trained_run, tmp_path, models, titles
):
    small = tmp_path / "models"
    flags = {"run": trained_run, "documents": titles, "output": small}
    succeed(export, **flags, vectors="int8", max_k=2)
    hits, rounded = (
        SavedRetriever(folder / "retriever").search(["wood glue"], k=3)[0]
        for folder in (models, small)
    )
    assert len(hits) == 3
    assert [hit.id for hit in rounded] == [hit.id for hit in hits[:2]]
    differences = [
        abs(hit.score - other.score)
        for hit, other in zip(hits[:2], rounded, strict=True)
    ]
    assert 0 < max(differences) < 0.01


def test_one_file_is_searched_without_a_folder_of_models(
    trained_run, models, titles, tmp_path, capsys, refused
):
    file, report = tmp_path / "shop.safetensors", tmp_path / "report.json"
    flags = {"run": trained_run, "documents": titles, "portable": file}
    succeed(export, **flags, weights="float32", json=report)
    assert f"wrote {file}: " in capsys.readouterr().out
    assert json.loads(report.read_text())["bytes"] == file.stat().st_size
    printed = []
    for folder in (models, file):
        succeed(search, "wood glue", models=folder, k=2)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    parts = tmp_path / "parts"
    encoder = models / "document_encoder"
    succeed(encode, saved_model=encoder, input=titles, output=parts,
            shard="0/1")  # fmt: skip
    capsys.readouterr()
    for more, message in (
        (f"--output={parts}", "not used with --portable"),
        (f"--mix={trained_run}", "not used with --portable"),
        (f"--documents={parts}", "name the file"),
    ):
        words = [f"--portable={file}", f"--run={trained_run}", more]
        refused(export.run(["export", *words]), message)
    refused(export.run(["export", f"--portable={file}"]), "--run is missing")
    file.write_bytes(b"no model")
    code = search.run(["search", f"--models={file}", "x"])
    refused(code, "not a file that this version can read")


def test_the_card_follows_a_refresh(models, trained_run, tmp_path):
    refreshed = shutil.copytree(models, tmp_path / "models")
    before = (refreshed / "CARD.md").read_text()
    gone = tmp_path / "gone.txt"
    gone.write_text("t3\n")
    succeed(export, update=refreshed / "retriever", delete=gone)
    card = (refreshed / "CARD.md").read_text()
    for text, version, documents in ((before, 1, 3), (card, 2, 2)):
        (row,) = [r for r in text.splitlines() if r.startswith("| `retriever`")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert (cells[1], cells[3]) == (str(version), str(documents))
        assert cells[4] == trained_run.name
    assert card.count("| `query_encoder` | 1 |") == 1
    (refreshed / "card.json").unlink()  # as after an export from Python
    gone.write_text("t2\n")
    succeed(export, update=refreshed / "retriever", delete=gone)
    assert (refreshed / "CARD.md").read_text() == card


def test_search_finds_the_right_title(models, tmp_path, capsys):
    out = tmp_path / "hits.json"
    succeed(search, "wood glue", "hex bolt", models=models, k=2, json=out)
    assert "t2" in capsys.readouterr().out
    glue, bolt = json.loads(out.read_text())["queries"]
    assert glue["query"] == "wood glue"
    assert glue["hits"][0]["id"] == "t2"
    assert bolt["hits"][0]["id"] == "t1"
    assert len(bolt["hits"]) == 2


def test_encode_writes_what_the_encoder_gives(models, trained_run, tmp_path):
    lines, vectors = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    texts = ["wood glue", "", "中文", "a " * 300]
    lines.write_text("\n".join(texts) + "\n")
    encoder = models / "document_encoder"
    succeed(encode, saved_model=encoder, input=lines, output=vectors)
    expected = dssm.load_run(trained_run).document_encoder.encode(texts)
    np.testing.assert_allclose(np.load(vectors), expected, atol=1e-6)


def test_each_line_has_its_vector_or_is_named(models, tmp_path, refused):
    texts, vectors = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    flags = {"saved_model": models / "query_encoder", "input": texts}
    for content, rows in ((b"glue\n\nbolt\n\n \n", 5), (b"", 0)):
        texts.write_bytes(content)
        succeed(encode, **flags, output=vectors)
        assert np.load(vectors).shape == (rows, 32)
    texts.write_bytes(b"glue\ncaf\xe9\n")
    command = [f"--{name}={value}" for name, value in flags.items()]
    code = encode.run(["encode", *command, f"--output={vectors}"])
    refused(code, "texts.txt:2: found invalid UTF-8")


def test_titles_become_an_index(models, tmp_path, capsys):
    faiss = pytest.importorskip("faiss")
    lines, ids = tmp_path / "lines.txt", tmp_path / "titles.ids"
    titles, queries = tmp_path / "titles.npy", tmp_path / "queries.npy"
    encoders = models / "document_encoder", models / "query_encoder"
    lines.write_text(TITLES)
    succeed(
        encode, saved_model=encoders[0], input=lines, output=titles, ids=ids
    )
    lines.write_text("wood glue\nhex bolt\n")
    succeed(encode, saved_model=encoders[1], input=lines, output=queries)
    built, out = tmp_path / "titles.faiss", tmp_path / "index.json"
    flags = {"vectors": titles, "queries": queries, "output": built}
    succeed(index, **flags, factory="HNSW4", search="efSearch=8", json=out)
    assert "query_ms" in capsys.readouterr().out
    figures = json.loads(out.read_text())
    assert figures["documents"] == 3
    assert figures["index_megabytes"] > 0
    assert "recall@10" not in figures  # of three
    found = faiss.read_index(str(built))
    _, rows = found.search(np.load(queries), 1)
    names = read_ids(ids, found.ntotal)
    assert [names[row] for row in rows[:, 0]] == ["t2", "t1"]


def test_a_scorer_is_exported_beside_and_asked(
    models, titles, tmp_path, refused, capsys
):
    """Exports a pair scorer beside two towers, and orders titles by it."""
    both = shutil.copytree(models, tmp_path / "models")
    recipe = dssm.ScorerRecipe(
        "RecurrentCosine", {"units": 2}, word_dimension=4
    )
    model = recipe.build(0, ["bolt", "glue", "hose"])
    run = RunFolder(tmp_path / "run")
    run.create({}, model)
    run.save(model, run.model)
    flags = [f"--run={run.path}", f"--output={both}"]
    code = export.run(["export", *flags, f"--documents={titles}"])
    refused(code, "documents are for the retriever of a KeyVec or of two to")
    succeed(export, run=run.path, output=both)
    assert capsys.readouterr().out == f"wrote {both / 'scorer' / '2'}\n"
    wanted = ["steel hex bolt", "wood glue", "garden hose"]
    scores = model.score("glue", wanted)
    with PredictionServer(both, port=0) as server:
        address = f"127.0.0.1:{server.port}"
        succeed(query, "glue", *wanted, server=address, model="scorer")
    assert capsys.readouterr().out.splitlines() == [
        f"{scores[row]:.4f}\t{wanted[row]}" for row in np.argsort(-scores)
    ]
    assert np.diff(np.sort(scores)).min() > 1e-3


NEW = "--run={run} --output={tmp}/m"
VECTORS = "--input={tmp}/no.txt --output={tmp}"


@pytest.mark.parametrize(
    ("program", "arguments", "expected"),
    [
        (export, "--run={tmp}/none --output={tmp}/m", "no model here"),
        (export, "--output={tmp}/m", "--run"),
        (export, f"{NEW} --documents={{tmp}}/no.txt", "no.txt"),
        (export, f"{NEW} --vectors=int4", "should be one of"),
        (export, f"{NEW} --max_k=0", "--max_k=0: expected an integer"),
        (
            export,
            "--run={run} --output={run}/config.json/m",
            "config.json: found a file, expected a folder to write in",
        ),
        (search, "--models={tmp} glue", "no SavedModel"),
        (search, "--models={models} --k=3000000000 glue", "k is 3000000000"),
        (
            search,
            "--models={models}/retriever --model=../retriever glue",
            "found the name '../retriever'",
        ),
        (search, "--models={models}", "no query"),
        (
            index,
            "--vectors={run}/config.json --output={tmp}/i.faiss",
            "config.json: no array of numbers",
        ),
        (
            encode,
            "--saved_model={models}/retriever --input={run}/config.json"
            " --output={tmp}/v.npy",
            "expected ['text']",
        ),
        (
            encode,
            f"--saved_model={{models}}/query_encoder {VECTORS}/v.npy",
            "no.txt",
        ),
        (
            encode,
            f"--saved_model={{models}}/query_encoder {VECTORS}/no/v.npy",
            "v.npy: there is no folder",
        ),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_1(
    program, arguments, expected, models, trained_run, tmp_path, refused
):
    filled = arguments.format(tmp=tmp_path, run=trained_run, models=models)
    refused(program.run(["program", *filled.split()]), expected)
    assert not (tmp_path / "m").exists()

"""The Python on README and on the pages of docs/ runs as it stands."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import api_search
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.evaluation import Task, system_of
from keras_lstm_dssm.export import export_model
from keras_lstm_dssm.export.bulk.parts import write_ids, write_vectors
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.tools import evaluate
from tests.conftest import TOPICS
from tests.memory import release_graphs_if_large
from tests.test_pages import TEXTS, commands
from tests.tools.conftest import saved_run, write_graded
from tests.training.small_documents import (
    QUICK_KEYVEC,
    WORDS,
    write_small_documents,
)

pytestmark = pytest.mark.usefixtures("remembered_runs")


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", TEXTS[page], re.DOTALL | re.M)


@pytest.fixture
def run_blocks(tmp_path, monkeypatch, capsys) -> Iterator[Callable[..., Any]]:
    """Runs code in an empty folder; returns its names and what it prints."""
    monkeypatch.chdir(tmp_path)
    of_all: list[dict[str, Any]] = []

    def run(code: list[str]) -> tuple[dict[str, Any], str]:
        names: dict[str, Any] = {}
        of_all.append(names)
        capsys.readouterr()
        exec("\n".join(code), names)
        return names, capsys.readouterr().out

    yield run
    # Keras keeps the classes that a page registers, and these all names.
    for names in of_all:
        names.clear()
    release_graphs_if_large()


@pytest.fixture
def folders(run_blocks, collection_folder, trained_run) -> None:
    """Links the data and the run of the guides into the working directory."""
    for name in ("JUDGED", "FOLDER"):
        Path(name).symlink_to(collection_folder)
    shutil.copytree(trained_run, "RUN")  # evaluations write into it


def test_readme(run_blocks, tmp_path, monkeypatch):
    """The functions are those of the standard library, fewer than a user's."""
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(tmp_path))
    monkeypatch.setattr(api_search, "distributions", list)
    code = blocks("README")
    assert len(code) == 3
    names, printed = run_blocks(code)
    in_process, served, shape = [
        line
        for line in printed.splitlines()
        if line.startswith(("[[Hit", "(1,"))
    ]
    assert in_process.startswith("[[Hit(id='csv writer writerow")
    assert "csv writer writerow" in served  # by another model
    assert shape == "(1, 96)"
    assert len(names["clicks"]) > 2_000
    assert Path("models/retriever/1/saved_model.pb").exists()


@pytest.mark.parametrize(("page", "first", "count", "expected", "file"), [
    ("words", 0, 1, "['quikrete', 'mix', '3', '1', '2', 'lb', ", "."),
    ("negatives", 0, 1, "['titanium drill bits']", "."),
    ("optimizer", 0, 1, "[0.995, 0.9]", "."),
    ("rerank", 0, 1, "'t1'", "."),
    ("few_clicks", 0, 1, "", "."),
])  # fmt: skip
def test_pages_that_need_nothing(
    page, first, count, expected, file, run_blocks
):
    """The other blocks of these pages are below."""
    code = blocks(f"docs/{page}")[first:][:count]
    assert len(code) == count
    assert expected in run_blocks(code)[1]
    assert Path(file).exists()


def test_with_keras(run_blocks):
    code = blocks("docs/keras")
    assert len(code) == 6
    names, printed = run_blocks(code)
    history, hit, probabilities, states, vectors = printed.splitlines()
    assert history == str(sorted(
        f"{part}{name}" for part in ("", "val_")
        for name in ("accuracy", "loss", "top_2")
    ))  # fmt: skip
    assert hit == "Drill Bit Set"
    assert (probabilities, states, vectors) == ("(1, 4)", "(2, 8)", "(1, 16)")
    folders = Path("models"), Path("bag_models")
    assert [
        sorted(
            path.parent.parent.name
            for path in folder.glob("*/1/saved_model.pb")
        )
        for folder in folders
    ] == [
        ["document_encoder", "query_encoder", "retriever"],
        ["document_encoder", "query_encoder"],
    ]
    assert Path("encoder/saved_model.pb").exists()
    assert isinstance(names["model"].query_encoder, dssm.LayerEncoder)


def test_evaluate(folders, run_blocks, capsys):
    first, *_ = commands("docs/evaluate")
    assert evaluate.program.run([*first, "--mode=retrieve"]) == 0
    assert Path("RUN/CARD.md").exists()
    metrics = dssm.run_folder.RunFolder("RUN").read_metrics()
    assert metrics["test"] == metrics["test/retrieve"]
    assert "words of bm25: separated by white space" in capsys.readouterr().out
    (block,) = blocks("docs/evaluate")
    names, printed = run_blocks([block])
    test, robust = printed.splitlines()
    assert test.startswith("{'difference': ") and "'p_holm': " in test
    of_model = names["values"]["model"]
    mean = sum(of_model.values()) / len(TOPICS)
    assert mean == pytest.approx(metrics["test"]["model"]["mrr@10"])
    assert 0 < float(robust) <= 1
    assert names["wrong"] != names["task"].queries


def test_an_approximate_index_has_each_vector_once(run_blocks, trained_run):
    """All ids of equal titles are found, where faiss is installed."""
    pytest.importorskip("faiss")
    model = dssm.load_run(trained_run)
    export_model(model.query_encoder, "MODELS/query_encoder")
    titles = [title for _, title in TOPICS.values()]
    vectors = model.document_encoder.encode([*titles, titles[1], titles[0]])
    # The last bits depend on the batch in which a title is encoded.
    vectors[-1] = np.nextafter(vectors[-1], 1)
    write_vectors("titles.npy", vectors)
    ids = [*TOPICS, "glue 2", "bolt 2"]
    write_ids("titles.ids", ids)
    build, search = (b for b in blocks("docs/large") if "faiss" in b)
    query = TOPICS["bolt"][0]
    search = search.replace("angle bracket", query)
    names, printed = run_blocks([build, search])
    assert names["index"].ntotal == len(titles)
    found = [line.split(" ", 1) for line in printed.splitlines()]
    found_ids = [of_row for _, of_row in found]
    assert {*found_ids} == {"bolt bolt 2", "glue glue 2", *[*TOPICS][2:]}
    cosines = vectors @ model.query_encoder.encode([query])[0]
    expected = dict(zip(ids, cosines, strict=True))
    scores = [float(score) for score, _ in found]
    assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(
        scores, [expected[of_row.split()[0]] for of_row in found_ids], atol=1e-4
    )


def test_train(folders, run_blocks, monkeypatch):
    best = dssm.PRESETS["best"].replace(epochs=1)
    small = best.with_encoder(cells=2, bag=2, sketch=3)
    monkeypatch.setitem(dssm.PRESETS, "best", small)
    run_blocks(blocks("docs/train"))
    config = dssm.run_folder.RunFolder("RUN_097").read_config()
    assert config["recipe"]["momentum_middle"] == 0.97
    assert config["patience"] == 3


def test_rerank(tiny_models, run_blocks):
    block = next(b for b in blocks("docs/rerank") if "Client" in b)
    with PredictionServer(tiny_models, port=0) as server:
        _, printed = run_blocks([block.replace(":8500", f":{server.port}")])
    # The scorer of these models prefers short titles.
    ranked = printed.splitlines()[-1]
    assert ranked == "['bolt', 'steel angle', 'shelf bracket']"


def test_rerank_by_boosted_trees(trained_run, tmp_path, fresh_process):
    """Learns from grades, chooses on dev, and orders what the towers find."""
    lightgbm = pytest.importorskip("lightgbm")
    pytest.importorskip("snowballstemmer")
    write_graded(tmp_path / "JUDGED")
    (tmp_path / "RUN").symlink_to(trained_run)
    (block,) = [b for b in blocks("docs/rerank") if "lightgbm" in b]
    *_, towers, bm25, second, found = fresh_process(block, folder=tmp_path)
    task = Task.from_collection(
        dssm.data.open_collection(str(tmp_path / "JUDGED")), "test", "retrieve"
    )
    system = system_of(dssm.load_run(trained_run))
    of_towers = task.evaluate(task.run(system))["ndcg@3"]
    name, value = towers.split()
    assert name == "towers" and float(value) == pytest.approx(of_towers)
    # The towers were not trained on colours, which half of the grades are of.
    assert float(second.removeprefix("second stage")) > of_towers + 0.05
    assert 0 < float(bm25.removeprefix("BM25")) <= 1
    trees = lightgbm.Booster(model_file=tmp_path / "trees.txt")
    assert trees.num_feature() == 7 and trees.num_trees() > 1
    scores = [*eval(found).values()]
    assert len(scores) == len(task.documents)
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]


def test_the_cosine_of_several_teachers_is_the_sum_of_theirs(run_blocks):
    """Runs the function on docs/few_clicks.md that joins two encoders."""
    Path("two_encoders.py").write_text(
        "def small(texts): return [[len(t), 1.0] for t in texts]\n"
        "def large(texts): return [[1.0, t.count('e'), 2.0] for t in texts]\n"
    )
    code = [c for c in blocks("docs/few_clicks") if "def both(" in c]
    names, _ = run_blocks(code)
    weights = {"two_encoders:small": 0.7, "two_encoders:large": 0.3}
    names["WEIGHTS"] = weights
    texts = ["hex bolt", "wood glue", "e"]
    vectors = names["both"](texts)
    assert vectors.shape == (3, 5)
    each = [(w, open_outside_encoder(n)(texts)) for n, w in weights.items()]
    np.testing.assert_allclose(
        vectors @ vectors.T, sum(w * v @ v.T for w, v in each), atol=1e-6
    )


def test_analysis_of_towers(folders, run_blocks):
    *_, records, frames = blocks("docs/analysis")
    pytest.importorskip("pandas")
    printed = run_blocks([records, frames])[1]
    assert printed.startswith("('hotels', 'in', 'shanghai') (3, 32)\n")
    assert "Keyword(word='in', counts=(" in printed
    table = printed[printed.index("position") :]
    assert table.split()[:4] == ["position", "0", "1", "2"]
    assert len(table.splitlines()) == 3 + 32


def test_analysis_of_a_pair_scorer(run_blocks):
    recipe = dssm.ScorerRecipe("MVLSTM", words="trigrams", word_dimension=4)
    recipe = recipe.with_matcher(units=2, slices=3)
    saved_run(Path("RUN"), dssm.build_model(recipe))
    cells, matrix = run_blocks(blocks("docs/analysis")[:1])[1].splitlines()
    assert cells.count("(") == 3 * 5 and "'stick'" in cells
    assert matrix == "(3, 2, 3) 0.0"


def test_analysis_of_a_keyvec(run_blocks):
    folder = write_small_documents(Path("FOLDER"))
    model = dssm.build_model(QUICK_KEYVEC, vocabulary=WORDS["wear"])
    saved_run(Path("RUN"), model)
    lines = run_blocks(blocks("docs/analysis")[1:2])[1].splitlines()
    *sentences, predicted, nearest = lines
    first = next(iter(folder.of("test")))
    assert [line[6:] for line in sentences] == first.sentences
    assert sorted(eval(predicted)) == sorted(WORDS["wear"])
    assert len(eval(nearest)) == 3

"""The tables of Wan et al. on six judged lists, with tiny models."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.data import Triples, open_collection, write_collection
from keras_lstm_dssm.evaluation import PairSystem
from keras_lstm_dssm.files import read_csv, read_json
from keras_lstm_dssm.models import ScorerRecipe
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.baseline_rows import Baseline
from keras_lstm_dssm.papers.mv_lstm import MV_LSTM_ROWS
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.run_systems import TrainedSystem, run_system
from keras_lstm_dssm.papers.table import make_table
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.settings.papers import TableSettings
from keras_lstm_dssm.text import vocabulary_of
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from tests.conftest import TOPICS
from tests.papers.conftest import with_recipe

TINY = ScorerRecipe(
    "RecurrentCosine", {"units": 2}, word_dimension=4, skip_gram=False
)
ROWS = {
    name: MV_LSTM_ROWS[name] for name in ("random", "document_order", "bm25")
}
ROWS["lstm_rnn_50"] = with_recipe(MV_LSTM_ROWS["lstm_rnn_50"], TINY)


def others(name: str) -> list[str]:
    return [other for other in TOPICS if other != name]


@pytest.fixture(scope="module")
def lists(tmp_path_factory) -> Path:
    """Writes six queries a split, with six titles each, the right one first."""
    documents = {name: title for name, (_, title) in TOPICS.items()}
    queries = {f"test-{name}": query for name, (query, _) in TOPICS.items()}
    queries |= {f"train-{name}": f"the {name}" for name in TOPICS}
    queries |= {f"dev-{name}": f"a {name}" for name in TOPICS}
    qrels = {
        split: {
            f"{split}-{name}": {name: 1, **dict.fromkeys(others(name), 0)}
            for name in TOPICS
        }
        for split in ("train", "dev", "test")
    }
    folder = tmp_path_factory.mktemp("lists") / "tools"
    write_collection(folder, documents, queries, qrels, [])
    (folder / "clicks.train.tsv.gz").unlink()  # there are judgements only
    return folder


@pytest.fixture(scope="module")
def settings(lists) -> TableSettings:
    return TableSettings(
        str(lists), epochs=2, batch_size=16, learning_rates=(0.01, 0.3),
        gammas=(), search=0.5, dev_evaluations=2, misspelled=(1.0,),
        lists=True, select="mrr",
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(settings, tmp_path_factory) -> Path:
    """Runs the systems of a table, without its report."""
    output = tmp_path_factory.mktemp("table") / "out"
    settings.record(output, open_data(settings, output).sizes)
    for name, row in ROWS.items():
        run_system(output, name, row, settings, seeds=1)
    return output


@pytest.fixture(scope="module")
def report(table, settings, tmp_path_factory) -> Path:
    """Writes the report of the finished systems, and of two more rows.

    The results of these rows, ARC-I and MV-LSTM with k = 1, are copies of
    those of BM25 and LSTM-RNN: they are not trained here.
    """
    output = tmp_path_factory.mktemp("report") / "out"
    shutil.copytree(table, output)
    copies = {"arc_i": "bm25", "mv_lstm_cosine_k1": "lstm_rnn_50"}
    for name, source in copies.items():
        shutil.copytree(output / "systems" / source, output / "systems" / name)
    rows = {**ROWS, **{name: MV_LSTM_ROWS[name] for name in copies}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "keras_lstm_dssm.papers.table.run_systems",
            lambda *_: {"cntn": "no memory"},
        )
        summary, failed = make_table(
            output, PAPERS["mv_lstm"], rows, settings, 1
        )
    assert failed == {"cntn": "no memory"}
    assert summary == json.loads((output / "table.json").read_text())
    return output


def test_the_measure_of_choices(settings, tmp_path):
    data = open_data(settings, tmp_path)
    assert (data.dev_measure, list(data.tests)) == ("mrr", ["lists"])
    assert data.sizes == {
        "titles": 6, "clicks": 6, "dev_queries": 6, "lists_queries": 6
    }  # fmt: skip
    ours = dataclasses.replace(settings, select=None)
    assert open_data(ours, tmp_path).dev_measure == "p@1"
    folder = tmp_path / "several"
    shutil.copytree(settings.data, folder)
    dev = folder / "qrels/dev.tsv"
    two = dev.read_text().replace("dev-bolt\tglue\t0", "dev-bolt\tglue\t1")
    dev.write_text(two)
    ours = dataclasses.replace(ours, data=str(folder))
    assert open_data(ours, tmp_path).dev_measure == "map"


def test_sums_of_the_vectors_that_pair_scorers_start_with(
    settings, lists, tmp_path
):
    pytest.importorskip("gensim")
    data = open_data(settings, tmp_path)
    texts = Triples.from_collection(open_collection(str(lists))).texts
    vocabulary = vocabulary_of(texts)
    starts = skip_gram_vectors(texts, vocabulary, epochs=30, seed=3)
    glue, the = (starts[vocabulary.index(word)] for word in ("glue", "the"))
    assert sum("the" in text.split() for text in texts) == 6
    for name, expected in (
        ("skip_gram", 2 * glue + the),
        (
            "skip_gram_idf",
            2 * glue * np.log(len(texts) / sum("glue" in t for t in texts))
            + the * np.log(len(texts) / 6),
        ),
    ):
        trained = Baseline().train(name, {}, 3, data)
        assert trained.dev == data.measure_on_dev(trained.system) > 0.5
        vectors = trained.system.encode_query(["Glue the unheard glue", ""])
        np.testing.assert_allclose(vectors[0], expected, rtol=1e-5)
        assert not vectors[1].any()


def test_values_of_the_references(table):
    """The rows of BM25, document order and random order have these values.

    In this data the right title comes first in each list, and BM25 finds it,
    so that both are perfect.
    """
    found = {
        name: read_json(table / f"systems/{name}/seed_0/result.json")
        for name in ("random", "document_order", "bm25")
    }
    ordered = found["document_order"]["test"]["lists"]
    assert ordered == found["bm25"]["test"]["lists"]
    assert ordered == dict.fromkeys(
        ("p@1", "mrr", "map", "ndcg@3", "ndcg@5"), 1.0
    )
    for values in (
        found["random"]["test"],
        found["random"]["misspelled"]["1.0"],
    ):
        assert values["lists"]["p@1"] == pytest.approx(1 / 6)
        assert values["lists"]["mrr"] == pytest.approx(
            sum(1 / rank for rank in range(1, 7)) / 6
        )
    assert found["bm25"]["misspelled"]["1.0"]["lists"]["p@1"] < 1


def test_a_scorer_is_chosen_on_dev(table):
    folder = table / "systems/lstm_rnn_50"
    choice = read_json(folder / "choice.json")
    assert choice["measure"] == "dev mrr"
    assert [trial["learning_rate"] for trial in choice["tried"]] == [0.01, 0.3]
    best = max(choice["tried"], key=lambda trial: trial["dev"])
    result = read_json(folder / "seed_0/result.json")
    assert result["options"] == choice["options"]
    assert result["options"] == {"learning_rate": best["learning_rate"]}
    history = read_csv(folder / "seed_0/history.csv")
    dev = [float(row["dev"]) for row in history]
    assert len(dev) == 2
    assert result["dev"] == {"mrr": max(dev)}
    assert result["epoch"] == 1 + dev.index(max(dev))
    assert result["parameters"] == 4 * 2 * (4 + 2 + 1)
    assert result["pairs_per_second"] > 0
    queries = read_csv(folder / "seed_0/test.lists.queries.csv")
    assert result["test"]["lists"]["mrr"] == pytest.approx(
        np.mean([float(row["mrr"]) for row in queries])
    )


@pytest.fixture
def constant_training(monkeypatch) -> list[int]:
    """Replaces trained models by one with constant scores; lists the seeds."""
    seeds = []

    def train(self, name, options, seed, data) -> TrainedSystem:
        seeds.append(seed)
        system = PairSystem(lambda queries, _: np.zeros(len(queries)))
        dev = data.measure_on_dev(system)
        history = ({"epoch": 1, "loss": 1.0, "dev": dev},)
        return TrainedSystem(system, 1, dev, history=history)

    monkeypatch.setattr(Neural, "train", train)
    return seeds


def test_only_what_is_missing_is_run(
    table, settings, tmp_path, constant_training
):
    output, name = tmp_path / "out", "lstm_rnn_50"
    shutil.copytree(table, output)
    folder = output / "systems" / name
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
    run_system(output, name, ROWS[name], settings, seeds=1)
    assert constant_training == []
    run_system(output, name, ROWS[name], settings, seeds=3)
    assert constant_training == [1, 2]  # and the search is not repeated
    assert {path: path.stat().st_mtime_ns for path in before} == before
    results = [read_json(folder / f"seed_{s}/result.json") for s in range(3)]
    chosen = [result["options"] for result in results]
    assert chosen == [chosen[0]] * 3


def test_a_dead_network_shows_as_random_order(
    settings, table, tmp_path, constant_training
):
    """Constant scores are measured as random order, not document order."""
    output, name = tmp_path / "out", "mv_lstm_cosine"
    shutil.copytree(table, output)
    rows = {**ROWS, name: MV_LSTM_ROWS[name]}
    run_system(output, name, rows[name], settings, 1, {"learning_rate": 9.0})
    dead, chance = (
        read_json(output / f"systems/{system}/seed_0/result.json")
        for system in (name, "random")
    )
    assert dead["test"] == chance["test"]
    assert dead["dev"] == chance["dev"] == {"mrr": pytest.approx(0.40833, 1e-4)}
    make_table(output, PAPERS["mv_lstm"], rows, settings, 1)
    lines = (output / "table.md").read_text().splitlines()
    notes = [line for line in lines if "has exactly the values of" in line]
    assert len(notes) == 1 and notes[0].startswith("- MV-LSTM cosine, k = 5 ")


def test_all_files_are_written(report):
    names = {path.name for path in report.iterdir() if path.is_file()}
    assert names == {
        "settings.json", "clicks.train.tsv", "table.json", "table.md",
        "table.html", "chart.png", "dev.png", "dev.csv", "robustness.json",
        "robustness.md", "robustness.png",
    }  # fmt: skip


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_layout_of_the_paper(report):
    text = (report / "table.md").read_text()
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Tables 3 and 5: the models on tools",
        "## Table 2: the k of k-max pooling, on tools",
        "## Parameters, choices and speed",
    ]
    models, pooling, _ = text.split("## ")[1:]
    lines = {cells(line)[0]: cells(line) for line in models.splitlines()}
    assert lines["Model"] == [
        "Model", "P@1", "MRR", "MAP", "NDCG@3", "NDCG@5", "against BM25",
        "against LSTM-RNN 50", "paper, QA: P@1", "MRR", "paper, SC: P@1",
    ]  # fmt: skip
    assert lines["Random order"][1:3] == ["16.67", "40.83"]
    assert lines["BM25"][-3:] == ["57.9 †", "72.6 †", "-"]
    assert lines["ARC-I"][-3:] == ["58.1 †", "75.6 †", "47.5 †"]
    assert lines["ARC-I"][1:7] == ["100.00"] * 5 + ["+0.00"]
    assert "MV-LSTM cosine, k = 1" not in lines
    lines = {cells(line)[0]: cells(line) for line in pooling.splitlines()}
    assert lines["LSTM-RNN 50"][-2:] == ["69.0 †", "82.2 †"]
    assert lines["MV-LSTM cosine, k = 1"][-2:] == ["72.6", "84.3"]
    assert lines["MV-LSTM cosine, k = 1"][1:3] == lines["LSTM-RNN 50"][1:3]
    assert "- cntn failed: no memory" in text


def test_differences_are_of_p_at_1(report):
    table = read_json(report / "table.json")
    assert table["references"] == ["bm25", "lstm_rnn_50"]
    systems = table["systems"]
    test = systems["random"]["significance"]["lists"]["bm25"]
    assert test["difference"] == pytest.approx(1 / 6 - 1)
    # All six differences have one sign: 2 of the 64 combinations of signs are
    # as extreme. Six systems are compared with each reference.
    assert test["p"] == pytest.approx(2 / 64, abs=0.01)
    assert test["p_holm"] >= test["p"]
    ours = systems["lstm_rnn_50"]["test"]["lists"]["p@1"]["mean"]
    against = systems["arc_i"]["significance"]["lists"]["lstm_rnn_50"]
    assert against["difference"] == pytest.approx(1 - ours)


def test_misspelled_queries(report):
    robust = read_json(report / "robustness.json")
    values = robust["values"]["bm25"]["lists"]
    left = values["1.0"]["p@1"]["mean"]
    assert values["0"]["p@1"]["mean"] == 1.0 > left
    losses = robust["loss_percent"]["lists"]
    assert losses["bm25"]["1.0"] == pytest.approx(100 * (1 - left))
    assert losses["random"]["1.0"] == pytest.approx(0.0)

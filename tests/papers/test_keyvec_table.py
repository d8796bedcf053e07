"""The tables of Bi and Ma on a folder of few documents, with a tiny model."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.significance import holm
from keras_lstm_dssm.files import read_csv, read_json, write_json
from keras_lstm_dssm.models import KEYVEC_PRESETS, KeyVecRecipe
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.keyvec import KEYVEC_ROWS, PUBLISHED
from keras_lstm_dssm.papers.run_systems import (
    choose_rows,
    run_system,
    run_systems,
)
from keras_lstm_dssm.papers.table import make_table
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.settings.papers import TableSettings
from tests.papers.conftest import with_recipe

pytest.importorskip("sklearn")
pytest.importorskip("gensim")

WORDS = {
    "wear": "hat coat shoe wool scarf glove belt".split(),
    "tools": "hose pump saw nail drill lamp glue".split(),
}
TINY = KeyVecRecipe(
    word_dimension=4, min_count=1, filters=2, windows=(2,), units=2,
    dimension=4, skip_gram=False,
)  # fmt: skip


def row(split: str, name: str, number: int) -> dict[str, object]:
    words = np.random.default_rng(number).permutation(WORDS[name])
    pairs = [f"The {a} and the {b}." for a, b in pairwise(words)]
    return {
        "_id": f"{split}-{name}{number}",
        "sentences": [f"This is {name}{number}.", *pairs],
        "summary": f"It is about {name}{number}, {words[0]} and {words[1]}.",
        "class": name,
        "split": split,
    }


def write_folder(folder: Path, queries: bool = True) -> Path:
    """Writes documents; each query is the summary of one of its split."""
    folder.mkdir()
    rows = [
        row(split, name, number)
        for split in ("train", "dev", "test")
        for name in WORDS
        for number in range(6)
    ]
    lines = [json.dumps(line) + "\n" for line in rows]
    (folder / "documents.jsonl").write_text("".join(lines))
    if not queries:
        return folder
    (folder / "qrels").mkdir()
    with open(folder / "queries.jsonl", "w") as file:
        for split in ("dev", "test"):
            judged = [r for r in rows if r["split"] == split]
            with open(folder / "qrels" / f"{split}.tsv", "w") as qrels:
                for line in judged:
                    query = {"_id": f"q-{line['_id']}", "text": line["summary"]}
                    file.write(json.dumps(query) + "\n")
                    print(query["_id"], line["_id"], 1, sep="\t", file=qrels)
    return folder


ROWS = {
    **choose_rows(KEYVEC_ROWS, ["random", "bm25", "lsa", "word2vec"]),
    "keyvec_untrained": with_recipe(KEYVEC_ROWS["keyvec_untrained"], TINY),
    "keyvec": with_recipe(KEYVEC_ROWS["keyvec"], TINY, salience="lead"),
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> TableSettings:
    folder = write_folder(tmp_path_factory.mktemp("data") / "shop")
    return TableSettings(
        str(folder), epochs=2, batch_size=8, learning_rates=(0.01,),
        gammas=(), dev_evaluations=2, documents=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(settings, tmp_path_factory) -> Path:
    """Runs the systems of a table in this process; writes its report."""
    output = tmp_path_factory.mktemp("table") / "out"
    settings.record(output, open_data(settings, output).sizes)
    for name, of_name in ROWS.items():
        run_system(output, name, of_name, settings, 1, choices(name))
    make_table(output, PAPERS["keyvec"], ROWS, settings, 1)
    return output


def choices(name: str) -> dict[str, object] | None:
    """Returns the hyperparameters of systems that need no search on dev."""
    chosen = {
        "bm25": {"tokenizer": "alphanumeric"},
        "word2vec": {"min_count": 1},
    }
    return chosen.get(name)


def test_systems_share_their_skip_gram_vectors(settings, tmp_path):
    """Two processes train with one seed: the second one reads a file."""
    untrained = with_recipe(
        KEYVEC_ROWS["keyvec_untrained"], TINY.replace(skip_gram=True)
    )
    rows = {"first": untrained, "second": untrained}
    settings.record(tmp_path, open_data(settings, tmp_path).sizes)
    assert run_systems(tmp_path, {"first": rows["first"]}, settings, 1) == {}
    (file,) = (tmp_path / "skip_gram").iterdir()
    written = file.stat().st_mtime_ns
    assert run_systems(tmp_path, rows, settings, 1) == {}
    assert [*(tmp_path / "skip_gram").iterdir()] == [file]
    assert file.stat().st_mtime_ns == written
    results = [
        read_json(tmp_path / "systems" / name / "seed_0/result.json")["test"]
        for name in rows
    ]
    assert results[0] == results[1]


def test_the_data(settings, tmp_path):
    data = open_data(settings, tmp_path)
    assert data.sizes == {
        "documents": 36, "train_documents": 12, "dev_queries": 12,
        "retrieve_queries": 12, "cluster_documents": 12, "cluster_classes": 2,
        "cluster_single_document_classes": 0, "cluster_without_class": 0,
    }  # fmt: skip
    assert data.words() == {"sentences": 7.0, "words": 33.0}
    assert (data.dev_measure, list(data.tests)) == (
        "map", ["retrieve", "cluster"],
    )  # fmt: skip
    folder = tmp_path / "copy"
    shutil.copytree(settings.data, folder)
    (folder / "qrels" / "dev.tsv").unlink()
    wrong = TableSettings(str(folder), documents=True)
    with pytest.raises(InputError, match="found no qrels/dev.tsv, expected qu"):
        open_data(wrong, tmp_path)
    lines = (folder / "documents.jsonl").read_text().splitlines(True)
    rest = [line for line in lines if '"train"' not in line]
    (folder / "documents.jsonl").write_text("".join(rest))
    with pytest.raises(InputError, match="found no document of split 'train'"):
        open_data(wrong, tmp_path)


def test_results_of_the_references(table):
    results = {
        name: read_json(table / f"systems/{name}/seed_0/result.json")
        for name in ROWS
    }
    assert results["bm25"]["test"]["retrieve"]["mrr@10"] > 0.9
    assert list(results["bm25"]["test"]) == ["retrieve"]
    for name in ("random", "lsa", "keyvec"):
        assert list(results[name]["test"]) == ["retrieve", "cluster"]
    assert results["random"]["test"]["retrieve"]["p@10"] == (
        pytest.approx(1 / 12)
    )
    assert results["lsa"]["test"]["cluster"]["ari"] == 1
    seeds = read_csv(table / "systems/lsa/seed_0/test.cluster.queries.csv")
    assert [line["query"] for line in seeds] == ["0", "1", "2", "3", "4"]
    assert not (table / "systems/lsa/seed_0/test.cluster.trec.gz").exists()
    assert (table / "systems/lsa/seed_0/test.retrieve.trec.gz").exists()


def test_a_keyvec_is_trained_and_its_best_epoch_kept(table):
    folder = table / "systems/keyvec/seed_0"
    result = read_json(folder / "result.json")
    history = read_csv(folder / "history.csv")
    dev = [float(line["dev"]) for line in history]
    assert len(dev) == 2
    assert result["dev"] == {"map": max(dev)}
    assert result["epoch"] == 1 + dev.index(max(dev))
    assert float(history[1]["loss"]) < float(history[0]["loss"])
    assert result["options"] == {"learning_rate": 0.01}
    # Of seven sentences the first is key: K = max(1, 7 // 4).
    assert result["salience_base_rate"] == pytest.approx(1 / 7)
    assert 1 / 7 <= result["salience_average_precision"] <= 1
    assert result["salience_order_average_precision"] == 1
    other = read_json(table / "systems/keyvec_untrained/seed_0/result.json")
    assert "salience_base_rate" not in other
    assert other["parameters"] == result["parameters"]
    assert other["epoch"] is None and other["train_seconds"] == 0


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_layout_of_the_paper(table):
    text = (table / "table.md").read_text()
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Table 1: retrieval on shop", "## Differences of retrieval",
        "## Table 2: clusters on shop",
        "## Key sentences of the test documents",
        "## Parameters, choices and speed",
    ]  # fmt: skip
    retrieval, differences, clusters, key, _ = [
        {cells(line)[0]: cells(line) for line in part.splitlines()}
        for part in text.split("## ")[1:]
    ]
    assert retrieval["System"] == [
        "System", "P@10", "MAP", "MRR", "MRR@10", "RECALL@10",
        "paper's P@10", "paper's MAP", "paper's MRR",
    ]  # fmt: skip
    assert retrieval["Random order, random clusters"][1] == "8.33"
    word2vec = "Averaged word2vec, own corpus"
    assert retrieval[word2vec][-3:] == ["22.3", "19.3", "54.6"]
    assert retrieval["BM25"][-3:] == ["-"] * 3
    assert clusters["System"] == [
        "System", "F1", "V", "ARI", "AMI", "paper's F1", "paper's V",
        "paper's ARI",
    ]  # fmt: skip
    assert clusters["TF-IDF, SVD 100"][1:5] == ["100.00"] * 4
    assert clusters["KeyVec"][-3:] == ["9.0", "59.7", "7.9"]
    assert "BM25" not in clusters
    assert differences["System"] == [
        "System",
        *(
            f"{measure} against {reference}"
            for measure in ("MRR@10", "RECALL@10")
            for reference in (word2vec, "TF-IDF, SVD 100", "KeyVec")
        ),
    ]
    assert differences[word2vec][1::3] == ["-", "-"]
    assert differences["KeyVec"][3::3] == ["-", "-"]
    assert "-" not in differences["KeyVec, untrained"]
    assert key["System"] == [
        "System", "Average precision of p",
        "Average precision of sentence order", "R-precision of p",
        "Share of key sentences",
    ]  # fmt: skip
    result = read_json(table / "systems/keyvec/seed_0/result.json")
    assert key["KeyVec"][1:] == [
        f"{100 * result['salience_average_precision']:.2f}", "100.00",
        f"{100 * result['salience_precision']:.2f}", "14.29",
    ]  # fmt: skip
    assert "KeyVec, untrained" not in key
    assert "Clusters: k-means of 12 test documents, k = 2" in text
    assert "MRR@10 and on recall@10, averaged over seeds" in text


def test_the_files_and_significance(table):
    names = {path.name for path in table.iterdir() if path.is_file()}
    assert names == {
        "settings.json", "table.json", "table.md", "table.html", "chart.png",
        "dev.png", "dev.csv",
    }  # fmt: skip
    summary = read_json(table / "table.json")
    assert summary["references"] == ["word2vec", "lsa", "keyvec"]
    assert list(summary["published"]) == ["word2vec", "keyvec"]
    tests = summary["systems"]["bm25"]["significance"]
    assert list(tests) == ["retrieve", "recall@10"]
    systems = summary["systems"]
    for key, measure in (("retrieve", "mrr@10"), ("recall@10", "recall@10")):
        means = {
            name: system["test"]["retrieve"][measure]["mean"]
            for name, system in systems.items()
        }
        assert tests[key]["lsa"]["difference"] == pytest.approx(
            means["bm25"] - means["lsa"]
        )
        # Holm's correction is over all systems that keyvec is compared with.
        against = {
            name: system["significance"][key]["keyvec"]
            for name, system in systems.items()
            if name != "keyvec"
        }
        assert "keyvec" not in systems["keyvec"]["significance"][key]
        assert means["keyvec"] - means["keyvec_untrained"] == pytest.approx(
            -against["keyvec_untrained"]["difference"]
        )
        p_values = np.array([test["p"] for test in against.values()])
        assert 0 < p_values.min() < 1
        assert [test["p_holm"] for test in against.values()] == pytest.approx(
            holm(p_values)
        )
    assert summary["random"]["cluster"]["ari"] == pytest.approx(0, abs=0.2)
    assert summary["settings"]["salience"] == "bm25"


def test_results_from_before_have_no_precision_of_the_order(
    table, settings, tmp_path
):
    output = tmp_path / "out"
    shutil.copytree(table, output)
    path = output / "systems/keyvec/seed_0/result.json"
    result = read_json(path)
    del result["salience_order_average_precision"]
    write_json(path, result)
    make_table(output, PAPERS["keyvec"], ROWS, settings, 1)
    (row,) = [
        cells(line)
        for line in (output / "table.md").read_text().splitlines()
        if line.startswith("| KeyVec |") and line.endswith("| 14.29 |")
    ]
    assert len(row) == 4  # the column is left out


def test_a_folder_without_queries_has_table_2_only(tmp_path, capsys):
    folder = write_folder(tmp_path / "news", queries=False)
    ours = TableSettings(str(folder), documents=True, gammas=())
    output = tmp_path / "out"
    rows = {name: ROWS[name] for name in ("random", "bm25", "lsa")}
    run_system(output, "random", rows["random"], ours, 1)
    run_system(output, "lsa", rows["lsa"], ours, 1)
    assert read_json(output / "systems/lsa/choice.json")["measure"] == "dev ari"
    make_table(output, PAPERS["keyvec"], rows, ours, 1)
    printed = capsys.readouterr().out
    assert "bm25: left out, has no vectors to cluster" in printed
    text = (output / "table.md").read_text()
    assert "Table 1" not in text and "Table 2: clusters on news" in text


def test_rows_and_published_figures():
    assert set(PUBLISHED) < set(KEYVEC_ROWS)
    systems: dict[str, Any] = {n: r.system for n, r in KEYVEC_ROWS.items()}
    assert systems["keyvec_lead"].salience == "lead"
    assert systems["keyvec_lead"].recipe == systems["keyvec"].recipe
    printed = systems["keyvec_printed"]  # not with --epochs of the table
    assert printed.recipe == KEYVEC_PRESETS["keyvec_printed"]
    assert not printed.tuned and not printed.recipe.normalize
    assert systems["lsa"].group == "baseline"
    assert systems["keyvec"].group == "recurrent"
    # F1 is above ARI by about the chance level of F1 in every row.
    for figures in PUBLISHED.values():
        f1, _, ari = figures.clustering
        assert 0.010 < f1 - ari < 0.017

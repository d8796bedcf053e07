import dataclasses
import gzip
import json
import math
import shutil
from pathlib import Path

import ir_measures
import pytest

from keras_lstm_dssm.files import read_csv
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.results import read_results
from keras_lstm_dssm.papers.run_systems import Row, run_system
from keras_lstm_dssm.papers.table_data import open_data
from tests.papers.conftest import ROWS, SMALL


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def test_each_seed_leaves_its_files(table_folder):
    found = {
        str(path.relative_to(table_folder / "systems"))
        for path in (table_folder / "systems").rglob("*")
        if path.is_file()
    }
    runs = {f"test.{m}.trec.gz" for m in ("rerank", "retrieve")}
    both = {f"test.{m}.queries.csv" for m in ("rerank", "retrieve")}
    both.add("result.json")
    expected = {f"random/seed_0/{f}" for f in both}
    expected |= {f"bm25/seed_0/{f}" for f in both | runs} | {"bm25/choice.json"}
    for seed in (0, 1):
        files = both | runs | {"history.csv"}
        expected |= {f"dssm/seed_{seed}/{f}" for f in files}
    assert found == expected


def test_the_best_epoch_is_kept(table_folder):
    folder = table_folder / "systems/dssm/seed_0"
    rows = read_csv(folder / "history.csv")
    dev_figures = {int(r["epoch"]): float(r["dev"]) for r in rows if r["dev"]}
    assert len(rows) == 3 and list(dev_figures) == [2, 3]
    result = read(folder / "result.json")
    assert result["dev"] == {"ndcg@10": max(dev_figures.values())}
    assert dev_figures[result["epoch"]] == max(dev_figures.values())
    # Dev and test are the same here: it is this epoch that was measured.
    tested = result["test"]["rerank"]["ndcg@10"]
    assert tested == pytest.approx(max(dev_figures.values()), abs=1e-12)
    assert result["parameters"] == 37**3 * 8 + 9 * 4


def test_runs_agree_with_ir_measures(table_folder, settings, tmp_path):
    gains = {0: 0, 1: 1, 2: 3}
    theirs = {
        ir_measures.nDCG(gains=gains) @ 10: "ndcg@10",
        ir_measures.nDCG(gains=gains) @ 5: "ndcg@5",
        ir_measures.AP: "map",
        ir_measures.RR @ 10: "mrr@10",
        ir_measures.R @ 100: "recall@100",
    }
    tests = open_data(settings, tmp_path).tests
    paths = sorted(table_folder.rglob("*.trec.gz"))
    assert len(paths) == 6
    for path in paths:
        mode = path.name.split(".")[1]
        figures = read(path.parent / "result.json")["test"][mode]
        run = ir_measures.read_trec_run(str(path))
        values = ir_measures.calc_aggregate(theirs, tests[mode].qrels, run)
        for measure, value in values.items():
            assert figures[theirs[measure]] == pytest.approx(value, abs=1e-9)
        rows = read_csv(path.with_name(f"test.{mode}.queries.csv"))
        mean = math.fsum(float(row["map"]) for row in rows) / len(rows)
        assert mean == pytest.approx(figures["map"], abs=1e-12)


def test_one_seed_gives_one_run(table_folder, settings, tmp_path):
    run_system(tmp_path, "dssm", ROWS["dssm"], settings, seeds=1)
    names = [f"test.{mode}.trec.gz" for mode in ("rerank", "retrieve")]
    for name in names:
        old, new = (
            (folder / "systems/dssm/seed_0" / name).read_bytes()
            for folder in (table_folder, tmp_path)
        )
        assert gzip.decompress(old) and old == new
    other = table_folder / "systems/dssm/seed_1" / names[0]
    assert other.read_bytes() != old


def test_what_is_finished_is_not_run_again(table_folder, settings):
    paths = list((table_folder / "systems").rglob("*"))
    before = {path: path.stat().st_mtime_ns for path in paths}
    for name, row in ROWS.items():
        run_system(table_folder, name, row, settings, seeds=2)
    assert {path: path.stat().st_mtime_ns for path in paths} == before


def test_random_order_is_exact(table_folder, settings, tmp_path):
    tests = open_data(settings, tmp_path).tests
    result = read(table_folder / "systems/random/seed_0/result.json")
    assert result["test"] == {m: task.random() for m, task in tests.items()}


def test_results_are_averaged(table_folder):
    found = read_results(table_folder, ROWS, 2)["dssm"]
    folders = [table_folder / f"systems/dssm/seed_{s}" for s in (0, 1)]
    seeds = [read(f / "result.json") for f in folders]
    for rate, part in ((0.0, "test"), (0.5, "misspelled")):
        a, b = (
            (s[part]["0.5"] if rate else s[part])["rerank"]["map"]
            for s in seeds
        )
        value = found.value("rerank", "map", rate)
        assert value.mean == pytest.approx((a + b) / 2)
        assert value.std == pytest.approx(abs(a - b) / math.sqrt(2))
    queries = found.queries("rerank", "map")
    assert len(queries) == 6
    mean = math.fsum(queries.values()) / 6
    assert mean == pytest.approx(found.value("rerank", "map").mean)
    assert found.row is ROWS["dssm"]


def test_towers_learn_from_judged_negatives(
    settings, collection_folder, tmp_path
):
    folder = tmp_path / "judged"
    shutil.copytree(collection_folder, folder)
    qrels = folder / "qrels"
    shutil.copy(qrels / "dev.tsv", qrels / "train.tsv")
    first_loss = {}
    for k in (0, 2):
        ours = dataclasses.replace(
            settings, data=str(folder), judged_negatives=k, misspelled=()
        )
        output = tmp_path / str(k)
        data = open_data(ours, output)
        # Of six titles, one answers the query.
        if k:
            judged = data.training["judged"]
            assert [len(found) for found in judged.values()] == [5] * 6
        else:
            assert "judged" not in data.training
        ours.record(output, data.sizes)
        run_system(output, "dssm", ROWS["dssm"], ours, seeds=1)
        rows = read_csv(output / "systems/dssm/seed_0/history.csv")
        first_loss[k] = float(rows[0]["loss"])
    # Of the same start and the same clicks: the candidates are others.
    assert abs(first_loss[2] - first_loss[0]) > 0.01


def test_a_recipe_decides_the_epochs(settings, tmp_path):
    recipe = SMALL.replace(
        negatives="in_batch", epochs=2, gamma=7.0, hard_negatives=1,
        title_pairs=1,
    )  # fmt: skip
    row = Row("Own recipe", Neural(recipe, tuned=False))
    # In an epoch are 120 clicks and a synthetic pair from each of 6 titles:
    # 2 epochs of 309 clicks and these pairs are 5 of 120.
    for updates_of, epochs in ((None, 2), (309, 5)):
        ours = dataclasses.replace(
            settings, updates_of=updates_of, misspelled=()
        )
        output = tmp_path / str(epochs)
        run_system(output, "best", row, ours, seeds=1)
        folder = output / "systems/best"
        assert len(read_csv(folder / "seed_0/history.csv")) == epochs
        assert not (folder / "choice.json").exists()
        options = read(folder / "seed_0/result.json")["options"]
        assert options == {"learning_rate": recipe.learning_rate, "gamma": 7.0}

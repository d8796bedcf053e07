"""Systems of a table: chosen on dev, trained, measured, and not run again."""

import dataclasses
import json
import math
import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import PairSystem, read_run
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.baseline_rows import BASELINE_GRIDS, baseline_grid
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.report import SystemResults, read_results
from keras_lstm_dssm.papers.run_systems import (
    Row,
    TrainedSystem,
    choose_on_dev,
    run_system,
    run_systems,
)
from keras_lstm_dssm.papers.table import (
    check_pairs,
    make_table,
    run_learning_curve,
)
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.papers.table_iv import (
    TABLE_IV_ROWS,
    best_with_gamma,
    train_with_one_gamma,
)
from keras_lstm_dssm.plain_files import read_csv, read_json
from keras_lstm_dssm.settings.programs import TableSettings
from tests.papers.conftest import KEYVEC, ROWS, SMALL, Table, with_recipe

NEURAL = {"table_iv": "dssm", "mv_lstm": "lstm_rnn_50", "keyvec": "keyvec"}


def copied(table: Table, tmp_path) -> Table:
    shutil.copytree(table.folder, tmp_path / "out")
    return table._replace(folder=tmp_path / "out")


def changed_at(table: Table, system: str = "") -> dict[Any, int]:
    paths = (table.folder / "systems" / system).rglob("*")
    return {path: path.stat().st_mtime_ns for path in paths}


def test_each_seed_leaves_its_files(table_iv, keyvec):
    modes = ("rerank", "retrieve")
    both = {"result.json", *(f"test.{mode}.queries.csv" for mode in modes)}
    runs = both | {f"test.{mode}.trec.gz" for mode in modes}
    systems = table_iv.folder / "systems"
    found = {path for path in systems.rglob("*") if path.is_file()}
    assert found == {
        systems / "bm25/choice.json",
        *(table_iv.file("random", name) for name in both),
        *(table_iv.file("bm25", name) for name in runs),
        *(table_iv.file("dssm", name, seed)
          for name in runs | {"history.csv"} for seed in (0, 1)),
    }  # fmt: skip
    # Each seed of k-means is a line of the clusters, which have no run.
    seeds = read_csv(keyvec.file("lsa", "test.cluster.queries.csv"))
    assert [line["query"] for line in seeds] == ["0", "1", "2", "3", "4"]
    assert not keyvec.file("lsa", "test.cluster.trec.gz").exists()
    assert keyvec.file("lsa", "test.retrieve.trec.gz").exists()


def test_the_best_epoch_is_kept(table):
    name = NEURAL[table.paper]
    result = read_json(table.file(name))
    history = read_csv(table.file(name, "history.csv"))
    dev = {int(r["epoch"]): float(r["dev"]) for r in history if r["dev"]}
    assert len(history) == table.settings.epochs and len(dev) == 2
    assert list(result["dev"].values()) == [max(dev.values())]
    assert dev[result["epoch"]] == max(dev.values())
    assert float(history[1]["loss"]) < float(history[0]["loss"])
    for mode, measures in result["test"].items():
        rows = read_csv(table.file(name, f"test.{mode}.queries.csv"))
        for measure, value in measures.items():
            mean = np.mean([float(row[measure]) for row in rows])
            assert value == pytest.approx(mean, abs=1e-12)
    if table.paper == "table_iv":
        # Dev and test are the same here: it is this epoch that was measured.
        tested = result["test"]["rerank"]["ndcg@10"]
        assert tested == pytest.approx(max(dev.values()), abs=1e-12)


def test_runs_are_those_that_were_measured(table):
    tests = open_data(table.settings, table.folder).tests
    paths = sorted(table.folder.rglob("systems/*/*/*.trec.gz"))
    assert len(paths) == {"table_iv": 6, "mv_lstm": 3, "keyvec": 5}[table.paper]
    for path in paths:
        mode = path.name.split(".")[1]
        found = read_json(path.parent / "result.json")["test"][mode]
        assert tests[mode].evaluate(read_run(path)) == pytest.approx(found)


def test_one_seed_gives_one_run(table_iv, settings, tmp_path):
    again = table_iv._replace(folder=tmp_path)
    run_system(tmp_path, "dssm", ROWS["table_iv"]["dssm"], settings, seeds=1)
    for mode in ("rerank", "retrieve"):
        name = f"test.{mode}.trec.gz"
        old, new = (
            t.file("dssm", name).read_bytes() for t in (table_iv, again)
        )
        assert old == new != table_iv.file("dssm", name, 1).read_bytes()


def test_random_order_is_exact(table):
    tests = open_data(table.settings, table.folder).tests
    result = read_json(table.file("random"))
    assert result["test"] == {m: task.random() for m, task in tests.items()}
    for of_rate in result["misspelled"].values():
        for mode, measures in of_rate.items():
            assert measures == pytest.approx(result["test"][mode])


def test_results_are_averaged(tmp_path):
    folders = [tmp_path / "seed_0", tmp_path / "seed_1"]
    for folder, of_a, of_b in zip(folders, (0.1, 0.4), (0.3, 0.8), strict=True):
        folder.mkdir()
        test = {"rerank": {"map": (of_a + of_b) / 2}}
        misspelled = {"0.5": {"rerank": {"map": of_a}}}
        result = {"test": test, "misspelled": misspelled}
        write_json(folder / "result.json", result)
        (folder / "test.rerank.queries.csv").write_text(
            f"query,map\na,{of_a}\nb,{of_b}\n"
        )
    found = SystemResults(TABLE_IV_ROWS["dssm"], folders)
    for rate, seeds in ((0.0, (0.2, 0.6)), (0.5, (0.1, 0.4))):
        value = found.value("rerank", "map", rate)
        assert value.mean == pytest.approx(sum(seeds) / 2)
        assert value.std == pytest.approx((seeds[1] - seeds[0]) / math.sqrt(2))
    queries = found.queries("rerank", "map")
    assert queries == pytest.approx({"a": 0.25, "b": 0.55})


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
    table_iv, mv_lstm, tmp_path, constant_training
):
    before = changed_at(table_iv)
    for name, row in table_iv.rows.items():
        run_system(table_iv.folder, name, row, table_iv.settings, seeds=2)
    assert changed_at(table_iv) == before
    table, name = copied(mv_lstm, tmp_path), "lstm_rnn_50"
    before = changed_at(table, f"{name}/seed_0")
    for seeds in (1, 3):
        run_system(table.folder, name, table.rows[name], table.settings, seeds)
    assert constant_training == [1, 2]  # and the search is not repeated
    assert changed_at(table, f"{name}/seed_0") == before
    results = [read_json(table.file(name, seed=seed)) for seed in range(3)]
    chosen = [result["options"] for result in results]
    assert chosen == [chosen[0]] * 3


def test_a_dead_network_shows_as_random_order(
    mv_lstm, tmp_path, constant_training
):
    """Constant scores are measured as random order, not document order."""
    table, name = copied(mv_lstm, tmp_path), "mv_lstm_cosine"
    rows = {**table.rows, name: PAPERS["mv_lstm"].rows[name]}
    choice = {"learning_rate": 9.0}
    run_system(table.folder, name, rows[name], table.settings, 1, choice)
    dead, chance = (read_json(table.file(n)) for n in (name, "random"))
    assert dead["test"] == chance["test"]
    assert dead["dev"] == chance["dev"] == {"mrr": pytest.approx(0.40833, 1e-4)}
    make_table(table.folder, PAPERS["mv_lstm"], rows, table.settings, 1)
    lines = (table.folder / "table.md").read_text().splitlines()
    notes = [line for line in lines if "has exactly the values of" in line]
    assert len(notes) == 1 and notes[0].startswith("- MV-LSTM cosine, k = 5 ")


def test_systems_share_their_skip_gram_vectors(keyvec, tmp_path):
    """Two processes train with one seed: the second one reads a file."""
    untrained = with_recipe(
        PAPERS["keyvec"].rows["keyvec_untrained"],
        KEYVEC.replace(skip_gram=True),
    )
    rows, settings = (
        dict.fromkeys(("first", "second"), untrained),
        keyvec.settings,
    )
    settings.record(tmp_path, open_data(settings, tmp_path).sizes)
    assert run_systems(tmp_path, {"first": untrained}, settings, 1) == {}
    (file,) = (tmp_path / "skip_gram").iterdir()
    written = file.stat().st_mtime_ns
    assert run_systems(tmp_path, rows, settings, 1) == {}
    assert [*(tmp_path / "skip_gram").iterdir()] == [file]
    assert file.stat().st_mtime_ns == written
    table = keyvec._replace(folder=tmp_path)
    first, second = (read_json(table.file(name))["test"] for name in rows)
    assert first == second


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
        run_system(output, "dssm", ROWS["table_iv"]["dssm"], ours, seeds=1)
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
        options = read_json(folder / "seed_0/result.json")["options"]
        assert options == {"learning_rate": recipe.learning_rate, "gamma": 7.0}


def test_towers_choose_the_learning_rate_and_then_gamma():
    settings = TableSettings(
        "api", learning_rates=(0.1, 0.2, 0.3), gammas=(5.0, 10.0, 3.0)
    )
    figures = [0.4, 0.6, 0.5, 0.7, 0.1]
    tried: list[dict[str, float]] = []
    while options := Neural(SMALL).next_trial("dssm", settings, tried):
        tried.append({**options, "dev": figures[len(tried)]})
    assert [tuple(trial.values())[:2] for trial in tried] == [
        (0.1, 5.0), (0.2, 5.0), (0.3, 5.0), (0.2, 10.0), (0.2, 3.0)
    ]  # fmt: skip


def test_nothing_is_tried_where_there_is_no_choice(tmp_path):
    path, recipe = tmp_path / "choice.json", PRESETS["best"]
    one = TableSettings("none", learning_rates=(0.1,), gammas=(5.0,))
    several = TableSettings("none")  # whatever there is to try
    for name, settings, choice in (
        ("dssm", one, (0.1, 5.0)),
        ("best", several, (recipe.learning_rate, recipe.gamma)),
        ("random", one, ()),
    ):
        nothing: Any = SimpleNamespace(settings=settings)  # no data is needed
        found = choose_on_dev(name, TABLE_IV_ROWS[name], nothing, path)
        names = ("learning_rate", "gamma")
        assert found == dict(zip(names, choice, strict=False))
    assert not path.exists()


def test_the_best_on_dev_is_chosen(table_iv, mv_lstm):
    for table, name, measure, searched in (
        (table_iv, "bm25", "ndcg@10", BASELINE_GRIDS["bm25"]),
        (mv_lstm, "lstm_rnn_50", "mrr", {"learning_rate": [0.01, 0.3]}),
    ):
        choice = read_json(table.folder / f"systems/{name}/choice.json")
        assert choice["measure"] == f"dev {measure}"
        for option, values in searched.items():
            assert {trial[option] for trial in choice["tried"]} == {*values}
        best = max(choice["tried"], key=lambda trial: trial["dev"])
        options = {option: best[option] for option in searched}
        result = read_json(table.file(name))
        assert result["options"] == choice["options"] == options
        if name == "bm25":  # a scorer is then trained for more epochs
            assert result["dev"] == {measure: best["dev"]}


def test_a_learning_rate_that_diverges_is_not_chosen(settings, tmp_path):
    settings = dataclasses.replace(settings, learning_rates=(1e38, 0.1))
    path = tmp_path / "choice.json"
    data = open_data(settings, tmp_path)
    chosen = choose_on_dev("dssm", ROWS["table_iv"]["dssm"], data, path)
    assert chosen["learning_rate"] == 0.1
    first, second = (trial["dev"] for trial in read_json(path)["tried"])
    assert first == 0 < second


def test_an_interrupted_search_goes_on(settings, tmp_path):
    path = tmp_path / "choice.json"
    grid = baseline_grid("ulm")
    tried = [{**options, "dev": 0.5, "seconds": 9.0} for options in grid[:-1]]
    tried[7]["dev"] = 2.0  # no trial that is run again could find this
    path.write_text(json.dumps({"tried": tried}))
    data = open_data(settings, tmp_path)
    assert choose_on_dev("ulm", TABLE_IV_ROWS["ulm"], data, path) == grid[7]
    found = read_json(path)["tried"]
    assert found[:-1] == tried
    assert found[-1]["dev"] == 1.0


def test_the_rnn_is_trained_with_the_gamma_of_the_lstm(
    table_iv, tmp_path, monkeypatch
):
    """With the learning rate that was best on dev with this gamma."""
    rows = {name: TABLE_IV_ROWS[name] for name in ("rnn_288", "lstm_96")}
    table = table_iv._replace(folder=tmp_path)
    for name, gamma in (("rnn_288", 5.0), ("lstm_96", 10.0)):
        of_system = tmp_path / "systems" / name
        shutil.copytree(table_iv.folder / "systems/dssm", of_system)
        result = read_json(table.file(name))
        result["options"]["gamma"] = gamma
        write_json(table.file(name), result)
    tried = [
        {"learning_rate": rate, "gamma": gamma, "dev": dev}
        for rate, gamma, dev in (
            (0.1, 5.0, 0.9), (0.01, 10.0, 0.2), (0.3, 10.0, 0.4),
        )
    ]  # fmt: skip
    folder = tmp_path / "systems/rnn_288"
    write_json(folder / "choice.json", {"tried": tried})
    best = {"learning_rate": 0.3, "gamma": 10.0}
    assert best_with_gamma(10.0, folder) == best
    calls = []

    def run_systems(folder, rows, settings, seeds, options):
        calls.append((list(rows), seeds, options))
        return {"rnn_288": "no memory"}

    monkeypatch.setattr(
        "keras_lstm_dssm.papers.table_iv.run_systems", run_systems
    )
    results = read_results(tmp_path, rows, 2)
    data: Any = SimpleNamespace(settings=table.settings, sizes={})
    shown, failed = train_with_one_gamma(tmp_path, data, results)
    assert calls == [(["rnn_288"], 2, {"rnn_288": best})]
    assert list(shown) == ["lstm_96"]
    assert failed == {"rnn_288": "no memory"}


def test_what_fails_is_named_and_left_out_of_the_curve(
    table_iv, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "keras_lstm_dssm.papers.table.run_systems",
        lambda folder, rows, *_: dict.fromkeys(rows, "no memory"),
    )
    data = open_data(table_iv.settings, tmp_path)
    results = read_results(table_iv.folder, table_iv.rows, 2)
    pictures, failed = run_learning_curve(data, results, 2, [40])
    assert failed == {"dssm with 40 clicks": "no memory"}
    modes = ("rerank", "retrieve")
    assert list(pictures) == [f"Learning curve, {mode}" for mode in modes]
    sizes = {
        (row["system"], row["pairs"])
        for row in read_csv(tmp_path / "curve.csv")
    }
    whole = {(name, "120") for name in table_iv.rows}
    assert sizes == {("random", "40"), ("bm25", "40")} | whole
    part = read_json(tmp_path / "pairs/40/settings.json")
    assert (part["pairs"], part["clicks"], part["updates_of"]) == (40, 40, 120)
    # A part is smaller than the whole.
    check_pairs([119], data)
    with pytest.raises(InputError, match="--pairs=120: found a log of 120"):
        check_pairs([40, 120], data)

"""The report of each paper's table, against a page with what it must say."""

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from keras_lstm_dssm.evaluation.significance import holm
from keras_lstm_dssm.evaluation.task import MAIN_MEASURES
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.table import make_table
from keras_lstm_dssm.plain_files import read_csv, read_json
from tests.papers.conftest import Table

PAGES = Path(__file__).with_name("pages")
"""Paper -> its `table.md`, in which "…" is any text: what is trained, or of a
machine."""
ROBUSTNESS = "robustness.json robustness.md robustness.png "


class Expected(NamedTuple):
    """What the report of a paper has beside its text."""

    copies: dict[str, str]  # a row that is not trained -> whose results it gets
    files: str  # beside those that each report has
    pictures: list[str]  # of the page, in order
    references: list[str]  # systems that others are compared with
    compared: dict[str, tuple[str, str]]  # `significance` -> mode, measure
    published: list[str]  # systems in `published` of `table.json`
    drawn: set[str]  # systems with values on dev by epoch


EXPECTED = {
    "table_iv": Expected(
        dict.fromkeys(("lstm_96", "clsm_win3", "best"), "dssm"),
        ROBUSTNESS + "figure_7.png figure_7.csv",
        ["chart", "figure_7", "dev", "robustness"],
        ["bm25", "clsm_win3", "dssm"],
        {"rerank": ("rerank", "ndcg@10"), "retrieve": ("retrieve", "mrr@10"),
         "ndcg@1": ("rerank", "ndcg@1"), "ndcg@3": ("rerank", "ndcg@3")},
        [], {"lstm_96", "best"},
    ),
    "mv_lstm": Expected(
        {"arc_i": "bm25", "mv_lstm_cosine_k1": "lstm_rnn_50"},
        ROBUSTNESS + "clicks.train.tsv", ["chart", "dev", "robustness"],
        ["bm25", "lstm_rnn_50"], {"lists": ("lists", "p@1")},
        ["random", "bm25", "lstm_rnn_50", "arc_i", "mv_lstm_cosine_k1"],
        {"lstm_rnn_50"},
    ),
    "keyvec": Expected(
        {}, "", ["chart", "dev"],
        ["word2vec", "lsa", "keyvec"],
        {"retrieve": ("retrieve", "mrr@10"),
         "recall@10": ("retrieve", "recall@10")},
        ["word2vec", "keyvec"], {"keyvec"},
    ),
}  # fmt: skip


class Report(NamedTuple):
    """A written report, and what it should have."""

    table: Table
    summary: dict[str, Any]
    expected: Expected

    @property
    def folder(self) -> Path:
        return self.table.folder


@pytest.fixture(scope="module", params=EXPECTED)
def report(request, finished_table, tmp_path_factory) -> Report:
    paper, expected = request.param, EXPECTED[request.param]
    table = finished_table(paper)
    output = tmp_path_factory.mktemp("report") / "out"
    shutil.copytree(table.folder, output)
    for name, source in expected.copies.items():
        shutil.copytree(output / "systems" / source, output / "systems" / name)
    rows = table.rows | {n: PAPERS[paper].rows[n] for n in expected.copies}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "keras_lstm_dssm.papers.table.run_systems",
            lambda *_: {"doc2vec": "no such luck"},
        )
        summary, failed = make_table(
            output, PAPERS[paper], rows, table.settings, table.seeds
        )
    assert failed == {"doc2vec": "no such luck"}
    written = read_json(output / "table.json")
    assert json.loads(json.dumps(summary)) == written
    return Report(table._replace(folder=output), written, expected)


of_table_iv = pytest.mark.parametrize("report", ["table_iv"], indirect=True)


def test_the_text(report):
    page = (PAGES / f"{report.table.paper}.md").read_text().splitlines()
    found = (report.folder / "table.md").read_text().splitlines()
    for line, expected in zip(found, page, strict=True):
        pattern = re.escape(expected).replace("…", ".+")
        assert re.fullmatch(pattern, line), line
        assert line.count("|") == expected.count("|")


def test_all_files_are_written(report):
    names = {path.name for path in report.folder.iterdir() if path.is_file()}
    each = (
        "settings.json table.json table.md table.html chart.png dev.png dev.csv"
    )
    assert names == {*each.split(), *report.expected.files.split()}
    page = (report.folder / "table.html").read_text()
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    for name, picture in zip(report.expected.pictures, pictures, strict=True):
        data = (report.folder / f"{name}.png").read_bytes()
        assert base64.b64decode(picture) == data
        assert data.startswith(b"\x89PNG\r\n")
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_the_summary_has_means_and_deviations(report):
    summary, expected = report.summary, report.expected
    assert summary["references"] == expected.references
    assert [*summary.get("published", ())] == expected.published
    assert summary["settings"]["data"] in ("hardware", "tools", "shop")
    lines = (report.folder / "table.md").read_text().splitlines()
    for name, system in summary["systems"].items():
        seeds = system["seeds"]
        files = [report.table.file(name, seed=seed) for seed in range(seeds)]
        for mode, measures in system["test"].items():
            values = [read_json(file)["test"][mode] for file in files]
            for measure, found in measures.items():
                each = [100 * of_seed[measure] for of_seed in values]
                mean, std = np.mean(each), np.std(each, ddof=seeds > 1)
                assert 100 * found["mean"] == pytest.approx(mean)
                assert 100 * found["std"] == pytest.approx(std, abs=1e-9)
                if measure == MAIN_MEASURES[mode]:
                    spread = f" ± {std:.2f}" if seeds > 1 else ""
                    cell, row = (
                        f" {mean:.2f}{spread} |",
                        f"| {system['label']} |",
                    )
                    assert any(cell in x for x in lines if x.startswith(row))


def test_significance(report):
    """Holm's correction is over all systems that one is compared with."""
    systems, compared = report.summary["systems"], report.expected.compared
    for key, (mode, measure) in compared.items():
        mean = {
            name: system["test"][mode][measure]["mean"]
            for name, system in systems.items()
        }
        for reference in report.expected.references:
            against = {
                name: system["significance"][key].get(reference)
                for name, system in systems.items()
            }
            assert against.pop(reference) is None
            for name, test in against.items():
                difference = mean[name] - mean[reference]
                assert test["difference"] == pytest.approx(difference)
            p_values = np.array([test["p"] for test in against.values()])
            assert 0 < p_values.min() <= 1
            assert [test["p_holm"] for test in against.values()] == (
                pytest.approx(holm(p_values))
            )
    assert all([*s["significance"]] == [*compared] for s in systems.values())


def test_dev_by_epoch_is_the_mean_over_seeds(report):
    found: dict[str, dict[str, float]] = {}
    for row in read_csv(report.folder / "dev.csv"):
        mean = pytest.approx(float(row["mean"]))
        found.setdefault(row["system"], {})[row["epoch"]] = mean
    assert found.keys() == report.expected.drawn
    for name, by_epoch in found.items():
        seeds = range(report.summary["systems"][name]["seeds"])
        histories = [
            {
                row["epoch"]: 100 * float(row["dev"])
                for row in read_csv(report.table.file(name, "history.csv", s))
                if row["dev"]
            }
            for s in seeds
        ]
        assert by_epoch == {
            epoch: np.mean([history[epoch] for history in histories])
            for epoch in histories[0]
        }


@pytest.mark.parametrize(("report", "mode", "measure"), [
    ("table_iv", "retrieve", "mrr@10"), ("mv_lstm", "lists", "p@1"),
], indirect=["report"])  # fmt: skip
def test_loss_by_misspelling(report, mode, measure):
    robust = read_json(report.folder / "robustness.json")
    whole, left = (
        robust["values"]["bm25"][mode][rate][measure]["mean"]
        for rate in ("0", "1.0")
    )
    assert whole == 1.0 > left
    losses = robust["loss_percent"][mode]
    assert losses["bm25"]["1.0"] == pytest.approx(100 * (1 - left))
    rates = map(str, report.table.settings.misspelled)
    assert losses["random"] == dict.fromkeys(rates, pytest.approx(0.0))


@of_table_iv
def test_figure_7_is_the_mean_cost(report):
    rows = read_csv(report.folder / "figure_7.csv")
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    files = [report.table.file("dssm", "history.csv", s) for s in (0, 1)]
    first = [float(read_csv(file)[0]["loss"]) for file in files]
    assert float(rows[0]["mean"]) == pytest.approx(sum(first) / 2)


@of_table_iv
def test_a_system_does_not_differ_from_its_copy(report):
    dssm = report.summary["systems"]["dssm"]["significance"]["rerank"]
    assert dssm["clsm_win3"] == {"difference": 0.0, "p": 1.0, "p_holm": 1.0}
    page = (report.folder / "table.html").read_text()
    assert page.count(">DSSM 288/96</th>") == 6  # tables


@pytest.mark.parametrize("report", ["mv_lstm"], indirect=True)
def test_six_differences_of_one_sign(report):
    """2 of the 64 combinations of signs are as extreme."""
    tests = report.summary["systems"]["random"]["significance"]["lists"]
    assert tests["bm25"]["difference"] == pytest.approx(1 / 6 - 1)
    assert tests["bm25"]["p"] == pytest.approx(2 / 64, abs=0.01)

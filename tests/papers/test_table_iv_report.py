import base64
import json
import re
import shutil
from pathlib import Path

import pytest

from keras_lstm_dssm.files import read_csv
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers.results import read_results
from keras_lstm_dssm.papers.table import make_table
from keras_lstm_dssm.papers.table_iv import TABLE_IV, TABLE_IV_ROWS
from tests.papers.conftest import ROWS

PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def report(table_folder, settings, tmp_path_factory) -> Path:
    """Writes the report; three more rows are copies of the system dssm."""
    output = tmp_path_factory.mktemp("report") / "out"
    shutil.copytree(table_folder, output)
    for name in ("lstm_96", "clsm_win3", "best"):
        shutil.copytree(output / "systems/dssm", output / "systems" / name)
    rows = ROWS | {
        name: TABLE_IV_ROWS[name] for name in ("clsm_win3", "lstm_96", "best")
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "keras_lstm_dssm.papers.table.run_systems",
            lambda *_: {"doc2vec": "no such luck"},
        )
        make_table(output, TABLE_IV, rows, settings, 2)
    return output


def test_all_files_are_written(report):
    names = {path.name for path in report.iterdir() if path.is_file()}
    assert names == {
        "settings.json", "table.json", "table.md", "table.html", "chart.png",
        "figure_7.png", "figure_7.csv", "dev.png", "dev.csv",
        "robustness.json", "robustness.md", "robustness.png",
    }  # fmt: skip
    for path in report.glob("*.png"):
        assert path.read_bytes().startswith(PNG)


def test_table_holds_the_results(report, table_folder):
    table = json.loads((report / "table.json").read_text())
    assert table["references"] == ["bm25", "clsm_win3"]
    assert table["settings"]["data"] == "hardware"  # a name, not a path
    dssm = table["systems"]["dssm"]
    found = read_results(table_folder, ROWS, 2)["dssm"]
    assert dssm["test"]["rerank"]["ndcg@5"] == (
        found.value("rerank", "ndcg@5")._asdict()
    )
    # Its results are those of the copy it is compared with.
    test = dssm["significance"]["rerank"]["clsm_win3"]
    assert test == {"difference": 0.0, "p": 1.0, "p_holm": 1.0}
    against = dssm["significance"]["rerank"]["bm25"]
    ours, bm25 = (
        table["systems"][name]["test"]["rerank"]["ndcg@10"]["mean"]
        for name in ("dssm", "bm25")
    )
    assert against["difference"] == pytest.approx(ours - bm25)


def test_text_has_every_system(report):
    text = (report / "table.md").read_text()
    table = json.loads((report / "table.json").read_text())
    value = table["systems"]["dssm"]["test"]["retrieve"]["mrr@10"]
    cell = f"{100 * value['mean']:.2f} ± {100 * value['std']:.2f}"
    line = next(
        x for x in text.split("Documents retrieved")[1].splitlines()
        if x.startswith("| DSSM 288/96 |")
    )  # fmt: skip
    assert f" {cell} |" in line
    assert "| 31.0 | 34.4 | 41.7 |" in text  # the paper's
    assert "- doc2vec failed: no such luck" in text
    assert "- Best (not of the paper): trained by its own recipe; only" in text
    assert f"hard_negatives {PRESETS['best'].hard_negatives}" in text
    widths = {
        len(re.findall(r"\|", x)) for x in text.split("##")[1].splitlines()
        if x.startswith("|")
    }  # fmt: skip
    assert len(widths) == 1


def test_page_needs_no_other_file(report):
    text = (report / "table.html").read_text()
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert [base64.b64decode(p) for p in pictures] == [
        (report / f"{name}.png").read_bytes()
        for name in ("chart", "figure_7", "dev", "robustness")
    ]
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert text.count("DSSM 288/96</th>") == 5  # sheets


def test_figure_7_is_the_mean_cost(report, table_folder):
    rows = read_csv(report / "figure_7.csv")
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    first = [
        float(read_csv(table_folder / f"systems/dssm/{s}/history.csv")[0][
            "loss"
        ])
        for s in ("seed_0", "seed_1")
    ]  # fmt: skip
    assert float(rows[0]["mean"]) == pytest.approx(sum(first) / 2)


def test_dev_by_epoch_is_the_mean_over_seeds(report, table_folder):
    dev_values = [
        {
            int(row["epoch"]): 100 * float(row["dev"])
            for row in read_csv(table_folder / f"systems/dssm/{s}/history.csv")
            if row["dev"]
        }
        for s in ("seed_0", "seed_1")
    ]
    rows = read_csv(report / "dev.csv")
    assert {row["system"] for row in rows} == {"lstm_96", "best"}
    means = {
        int(row["epoch"]): float(row["mean"])
        for row in rows
        if row["system"] == "lstm_96"
    }
    assert means == {
        epoch: pytest.approx((dev_values[0][epoch] + dev_values[1][epoch]) / 2)
        for epoch in dev_values[0]
    }


def test_loss_by_misspelling(report):
    robust = json.loads((report / "robustness.json").read_text())
    whole, left = (
        robust["values"]["bm25"]["retrieve"][rate]["mrr@10"]["mean"]
        for rate in ("0", "1.0")
    )
    assert whole == 1.0 > left
    losses = robust["loss_percent"]["retrieve"]
    assert losses["bm25"]["1.0"] == pytest.approx(100 * (1 - left))
    assert losses["random"] == {"0.5": 0.0, "1.0": 0.0}

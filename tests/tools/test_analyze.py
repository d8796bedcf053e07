"""lstm-dssm-analyze as a user runs it, after training with bad lines."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm import load_run
from keras_lstm_dssm.analysis.claims import CLAIM_LABELS
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.encoders.activations import each_activations
from keras_lstm_dssm.tools import analyze, train
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.conftest import TOPICS
from tests.tools.conftest import succeed
from tests.training.histogram_events import read_histograms

TITLES = [title for _, title in TOPICS.values()]
QUERIES = [query for query, _ in TOPICS.values()]


@pytest.fixture(scope="module")
def run(collection_folder, tmp_path_factory) -> Path:
    """Trains the run that is analysed.

    One line of its clicks has no tab: the report must read the data as the
    training did, without that line. The run has histograms of its gates.
    """
    folder = tmp_path_factory.mktemp("analyze")
    data = shutil.copytree(collection_folder, folder / "data")
    with gzip.open(data / "clicks.train.tsv.gz", "at") as file:
        file.write("a line without a tab\n")
    flags = {"epochs": 2, "batch_size": 16, "output": folder / "run"}
    bad_lines = {"on_bad_line": "skip", "max_bad_lines": 1}
    words = {"data": data, "preset": "lstm_32", "histograms": True}
    succeed(train, **words, **flags, **bad_lines)
    return folder / "run"


def test_program(run, tmp_path, capsys):
    output, queries = tmp_path / "report.html", tmp_path / "queries.txt"
    queries.write_text("hex bolt\n\ngarden hose\n")
    texts = {"query": "wood glue", "document": TITLES[1], "queries": queries}
    files = {"output": output, "json": tmp_path / "out.json"}
    parts = {"map": "pca", "claims": True, "projector": True}
    succeed(analyze, run=run, **texts, **files, **parts)
    page = HtmlPage(output.read_text())
    check_self_contained(page, output.read_text())
    assert "words of 2 queries" in " ".join(page.of("p"))
    assert TITLES[1] in page.of("strong")  # among the nearest
    assert page.of("h2")[-1] == "The paper's claims as numbers"
    out = json.loads((tmp_path / "out.json").read_text())
    claims = [
        one
        for name in CLAIM_LABELS
        for one in out["claims"]
        if one["claim"] == name
    ]
    rows = [text for text in page.of("th") if "trained" in text]
    assert rows == [f"{one['side']}, {one['model']}" for one in claims]
    labels = [
        CLAIM_LABELS[name] for name in dict.fromkeys(c["claim"] for c in claims)
    ]
    assert page.of("h3")[-len(labels) :] == labels
    assert [one["word"] for one in out["query"]] == ["wood", "glue"]
    assert {one["model"] for one in claims} == {"trained", "untrained"}
    lines = (run / "logs/projector/titles.labels.tsv").read_text().splitlines()
    assert lines == TITLES
    printed = capsys.readouterr().out
    assert "skipped bad lines: no tab: 1" in printed
    assert f"wrote {output}" in printed
    assert f"{CLAIM_LABELS['stop_words_keywords']}\n  query  " in printed


def test_training_wrote_histograms_of_what_it_saved(run, trained_run):
    histograms = read_histograms(run / "logs/gates")
    assert set(histograms) == {
        (f"{tower}/{name}", epoch)
        for tower in ("query", "document")
        for name in "icoy"
        for epoch in (0, 1)
    }
    queries = QUERIES * 20  # all clicks, fewer than 256
    encoder = load_run(run).query_encoder
    i = np.concatenate([read.i for read in each_activations(encoder, queries)])
    last = histograms["query/i", 1]
    assert last[:, 2].sum() == i.size
    np.testing.assert_allclose(
        [last[0, 0], last[-1, 1]], [i.min(), i.max()], rtol=1e-6
    )
    assert not (trained_run / "logs/gates").exists()  # without --histograms


def test_training_without_gates_has_no_histograms(
    collection_folder, tmp_path, capsys
):
    command = [
        "train", f"--data={collection_folder}", "--histograms",
        "--preset=dssm", f"--output={tmp_path / 'run'}",
    ]  # fmt: skip
    assert train.run(command) == 1
    assert "no activations by word" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()  # before anything is written


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--output={tmp}/no/report.html"], "there is no folder"),
        (["--run={tmp}"], "no model here"),
        (["--data={tmp}/none.tsv"], "none.tsv: no such file"),
        (["--on_bad_line=stop"], "clicks.train.tsv.gz:121: found no tab"),
        (["--queries={tmp}/none.txt"], "none.txt: cannot be read"),
        (["--queries={tmp}/blank.txt"], "blank.txt: found an empty file"),
        (["--data={tmp}/unjudged", "--claims"], "no query with a relevant"),
        (["--share=2"], "--share=2"),
        (["--map=circle"], "--map=circle"),
    ],
)
def test_wrong_input_is_one_line(run, tmp_path, refused, flags, message):
    (tmp_path / "blank.txt").write_text("\n \n")
    unjudged = tmp_path / "unjudged"
    write_collection(
        unjudged, {"a": "glue"}, {"q": "wood"}, {"test": {"q": {"a": 0}}}, []
    )
    (unjudged / "clicks.train.tsv.gz").unlink()
    command = ["analyze", f"--run={run}", f"--output={tmp_path}/r.html"]
    flags = [flag.format(tmp=tmp_path) for flag in flags]
    refused(analyze.run([*command, *flags]), message)
    assert not (tmp_path / "r.html").exists()

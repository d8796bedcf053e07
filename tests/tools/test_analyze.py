"""lstm-dssm-analyze of each kind of model: the report as a user makes it."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.analysis import strongest_words
from keras_lstm_dssm.analysis.claims import CLAIM_LABELS
from keras_lstm_dssm.analysis.scorer_report import (
    example_answers,
    lists_and_titles,
)
from keras_lstm_dssm.data import DocumentFolder
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import analyze
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.conftest import TOPICS
from tests.tools.conftest import results_of, saved_run
from tests.training.small_documents import WORDS

TITLES = dict(TOPICS.values())
DOCUMENTS = [*TITLES.values()]


def report(tmp_path: Path, **flags: Any) -> tuple[HtmlPage, Any]:
    """Makes a report; returns its page and the results as JSON."""
    output = tmp_path / "report.html"
    results = results_of(analyze, tmp_path / "out.json", output=output, **flags)
    page = HtmlPage(output.read_text())
    check_self_contained(page, output.read_text())
    return page, results


@pytest.fixture
def run(trained_run, collection_folder, tmp_path) -> Path:
    """The run of towers whose clicks have one line without a tab.

    The report must read the data as the training did, without that line.
    """
    data = shutil.copytree(collection_folder, tmp_path / "data")
    with gzip.open(data / "clicks.train.tsv.gz", "at") as file:
        file.write("a line without a tab\n")
    run = RunFolder(shutil.copytree(trained_run, tmp_path / "run"))
    known = {"data": str(data), "max_bad_lines": 1, "bad_lines": 1}
    write_json(run.config, run.read_config() | known)
    return run.path


def test_towers(run, tmp_path, capsys, refused):
    queries = tmp_path / "queries.txt"
    queries.write_text("hex bolt\n\ngarden hose\n")
    page, out = report(
        tmp_path, run=run, query="wood glue", document=DOCUMENTS[1],
        queries=queries, map="pca", claims=True, projector=True,
    )  # fmt: skip
    words = "The table has words of 2 queries. A word belongs to a cell if the"
    assert words in " ".join(page.of("p"))
    assert DOCUMENTS[1] in page.of("strong")  # among the nearest
    assert page.of("h2")[-1] == "The paper's claims as numbers"
    # What a reader can act on comes first; no query fails.
    assert page.of("h2")[:3] == [
        "How good it is, beside BM25", "Training, epoch by epoch (Fig. 7)",
        "What was trained, and how good it is",
    ]  # fmt: skip
    assert page.of("p")[1].startswith(out["verdict"]["sentence"])
    assert out["failures"] == {"measure": "ndcg@10", "worst": []}
    assert page.of("a") == page.of("h2")  # the contents
    claims = sorted(
        out["claims"], key=lambda one: [*CLAIM_LABELS].index(one["claim"])
    )
    rows = [text for text in page.of("th") if "trained" in text]
    assert rows == [f"{one['side']}, {one['model']}" for one in claims]
    names = dict.fromkeys(one["claim"] for one in claims)
    labels = [CLAIM_LABELS[name] for name in names]
    assert page.of("h3")[-len(labels) :] == labels
    assert [one["word"] for one in out["query"]] == ["wood", "glue"]
    assert {one["model"] for one in claims} == {"trained", "untrained"}
    lines = (run / "logs/projector/titles.labels.tsv").read_text().splitlines()
    assert lines == DOCUMENTS
    printed = capsys.readouterr().out
    assert "skipped bad lines: no tab: 1" in printed
    assert f"wrote {tmp_path / 'report.html'}" in printed
    assert f"{CLAIM_LABELS['stop_words_keywords']}\n  query  " in printed
    flags = [f"--output={tmp_path}/new.html", "--max_bad_lines=0"]
    code = analyze.program.run(["analyze", f"--run={run}", *flags])
    refused(code, "clicks.train.tsv.gz:121: found no tab")


def test_pair_scorer(scorer_run, collection_folder, tmp_path):
    model = dssm.load_run(scorer_run)
    pictures = tmp_path / "new"
    page, results = report(
        tmp_path, run=scorer_run, data=collection_folder, examples=2,
        pictures=pictures, query="desk lamp", document="a <desk> with gizmo",
    )  # fmt: skip
    pairs = results["pairs"]
    kinds = ["right answer", "wrong answer"]
    assert [one["kind"] for one in pairs] == ["document", *kinds * 2]
    failing = [query["query"] for query in results["failures"]["worst"]]
    assert failing and {*failing} <= {*TITLES}
    assert page.of("h2") == [
        "How good it is, beside BM25", "Worst queries",
        "Training, epoch by epoch", "What was trained, and how good it is",
        "All queries of the data", "desk lamp", pairs[1]["query"],
        pairs[3]["query"],
    ]  # fmt: skip
    assert page.of("p")[1].startswith(results["verdict"]["sentence"])
    assert "gizmo" in " ".join(page.of("li"))  # not in the vocabulary
    for right, wrong in (pairs[1:3], pairs[3:5]):
        assert right["document"] == TITLES[right["query"]]
        others = [t for t in DOCUMENTS if t != right["document"]]
        assert wrong["document"] in others
        best = max(model.score(right["query"], others))
        assert wrong["score"] == pytest.approx(best, rel=1e-5)
    for one in pairs:
        expected = strongest_words(model, one["query"], one["document"])
        assert one["cells"] == [
            {name: pytest.approx(value) for name, value in c._asdict().items()}
            for c in expected
        ]
        assert f"{expected[0].value:.2f}" in page.of("td")
    names = ["loss.png", "matrix_1.png", "matrix_2.png", "matrix_3.png"]
    assert sorted(p.name for p in pictures.iterdir()) == names
    assert results["positions"]["pairs"] == len(TITLES)


def test_pair_scorer_against_another(scorer_run, collection_folder, tmp_path):
    model = dssm.load_run(scorer_run)
    kernel, bias, *last = model.matcher.mlp.get_weights()
    model.matcher.mlp.set_weights([kernel, bias, *(-w for w in last)])
    other = saved_run(tmp_path / "other", model)
    page, results = report(
        tmp_path, run=scorer_run, data=collection_folder, against=other
    )
    counts = results["against"]
    assert counts["both"] == 0  # of one right answer among six
    assert sum([*counts.values()][1:5]) == counts["queries"] == len(TITLES)
    shown = min(3, counts["only_this"])
    assert len(results["pairs"]) == 2 * shown
    assert "only this" in page.of("th")


def test_clicks_have_the_nearest_titles_as_wrong_answers(scorer_run, tmp_path):
    """The wrong answer is the nearest title by BM25 that was not clicked."""
    paint, lamp = "interior white paint", "White  lamp"
    clicks = tmp_path / "more.tsv"
    clicks.write_text(f"white paint\t{paint}\nwhite lamp\t{lamp}\n")
    found = example_answers(
        dssm.load_run(scorer_run), *lists_and_titles(str(clicks))
    )
    assert {compared.query: compared.documents for compared in found} == {
        "white paint": {"right answer": paint, "wrong answer": lamp},
        "white lamp": {"right answer": lamp, "wrong answer": paint},
    }


def test_keyvec(keyvec_run, tmp_path, capsys):
    run = shutil.copytree(keyvec_run, tmp_path / "run")
    page, found = report(
        tmp_path, run=run, examples=2, map="pca", projector=True,
        csv=tmp_path / "csv",
    )  # fmt: skip
    folder = DocumentFolder(keyvec_run.parent / "data")
    documents = {one.id: one for one in folder.of("test")}
    assert [one["id"] for one in found["map"]] == list(documents)
    assert len(found["documents"]) == 2
    for one in found["documents"]:
        document = documents[one["id"]]
        # The summary is the second sentence.
        salient = [s["salient"] for s in one["sentences"]]
        assert salient == [row == 1 for row in range(len(salient))]
        words = {w["word"] for w in one["key_words"]}
        assert words == set(document.summary[0].split())
        assert words < set(WORDS[document.label])
    assert [tag for tag, _ in page.tags].count("img") == 2
    text = " ".join(page.of("p"))
    assert "4 documents of the split test" in text
    assert "the teacher (trigrams)" in text
    assert page.of("h2")[:5] == [
        "How good it is, beside BM25", "Worst queries", "Most frequent titles",
        "Training, epoch by epoch", "What was trained, and how good it is",
    ]  # fmt: skip
    titles = {one.title or one.sentences[0] for one in documents.values()}
    for query in found["failures"]["worst"]:
        assert {*query["clicked"], *query["found"]} <= titles
    assert len((tmp_path / "csv/map.csv").read_text().splitlines()) == 5
    lines = (run / "logs/projector/titles.labels.tsv").read_text().splitlines()
    assert lines == [one.sentences[0] for one in documents.values()]
    assert f"wrote {tmp_path / 'report.html'}" in capsys.readouterr().out

    # With `key_words_of="document"`, the words of all sentences are key words.
    config = json.loads((run / "config.json").read_text())
    config["recipe"]["key_words_of"] = "document"
    (run / "config.json").write_text(json.dumps(config))
    _, found = report(tmp_path, run=run, map="pca", examples=4)
    for one in found["documents"]:
        words = set(" ".join(documents[one["id"]].sentences).split())
        assert {word["word"] for word in one["key_words"]} == words
        assert len(words) > 3  # as many has a summary


def test_keyvec_with_another_teacher_and_other_data(keyvec_run, tmp_path):
    """Leaves out bad lines; shows the split train if there is no other."""
    line = '"sentences": ["hat coat", "saw", "nail", "drill"], "summary": "saw"'
    lines = [f'{{"_id": "n{n}", {line}}}\n' for n in range(3)]
    data = tmp_path / "data"
    data.mkdir()
    (data / "documents.jsonl").write_text("".join([*lines, "no JSON\n"]))
    _, found = report(
        tmp_path, run=keyvec_run, data=data, map="pca", salience="lead",
        max_bad_lines=1,
    )  # fmt: skip
    assert len(found["documents"]) == 3
    for one in found["documents"]:
        salient = [s["salient"] for s in one["sentences"]]
        assert salient == [True, False, False, False]
    text = (tmp_path / "report.html").read_text()
    assert "3 documents of the split train" in text

"""lstm-dssm-analyze of a pair scorer: the report as a user makes it."""

import json
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.analysis import strongest_words
from keras_lstm_dssm.analysis.scorer_report import example_answers
from keras_lstm_dssm.tools import analyze
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.conftest import TOPICS
from tests.tools.conftest import succeed

RECIPE = dssm.ScorerRecipe(
    "MVLSTM", {"interaction": "cosine", "units": 2, "hidden": 3}, "vocabulary",
    word_dimension=3, epochs=1, mined_negatives=2, skip_gram=False,
)  # fmt: skip
TITLES = dict(TOPICS.values())


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Trains a pair scorer on clicks."""
    folder = tmp_path_factory.mktemp("scorer")
    clicks = folder / "clicks.tsv"
    clicks.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()))
    dssm.train(clicks, RECIPE, output=folder / "run", verbose=0)
    return folder / "run"


def test_report(run, collection_folder, tmp_path):
    output, values = tmp_path / "report.html", tmp_path / "out.json"
    model = dssm.load_run(run)
    pair = {"query": "desk lamp", "document": "a <desk> with gizmo"}
    files = {"output": output, "json": values, "pictures": tmp_path / "new"}
    succeed(
        analyze, run=run, data=collection_folder, examples=2, **files, **pair
    )
    page = HtmlPage(output.read_text())
    check_self_contained(page, output.read_text())
    pairs = json.loads(values.read_text())["pairs"]
    kinds = ["right answer", "wrong answer"]
    assert [one["kind"] for one in pairs] == ["document", *kinds * 2]
    assert page.of("h2") == [
        "desk lamp", pairs[1]["query"], pairs[3]["query"], "Loss by epoch",
        "What was trained, and how good it is",
    ]  # fmt: skip
    assert "gizmo" in " ".join(page.of("li"))  # not in the vocabulary
    for right, wrong in (pairs[1:3], pairs[3:5]):
        assert right["document"] == TITLES[right["query"]]
        others = [t for t in TITLES.values() if t != right["document"]]
        best = max(model.score(right["query"], others))
        assert wrong["document"] in others
        assert wrong["score"] == pytest.approx(best, rel=1e-5)
    for one in pairs:
        expected = strongest_words(model, one["query"], one["document"])
        assert one["cells"] == [
            {name: pytest.approx(value) for name, value in c._asdict().items()}
            for c in expected
        ]
        assert f"{expected[0].value:.2f}" in page.of("td")
    names = ["loss.png", "matrix_1.png", "matrix_2.png", "matrix_3.png"]
    assert sorted(p.name for p in files["pictures"].iterdir()) == names


def test_clicks_have_the_nearest_titles_as_wrong_answers(run):
    """The wrong answer is the nearest title by BM25 that was not clicked."""
    clicks = run.parent / "more.tsv"
    clicks.write_text(
        "white paint\tinterior white paint\nwhite lamp\tWhite  lamp\n"
    )
    found = {
        compared.query: compared.documents
        for compared in example_answers(dssm.load_run(run), str(clicks))
    }
    kinds = ("right answer", "wrong answer")
    paint, lamp = "interior white paint", "White  lamp"
    assert found == {
        "white paint": dict(zip(kinds, (paint, lamp), strict=True)),
        "white lamp": dict(zip(kinds, (lamp, paint), strict=True)),
    }


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--claims"], "--claims is about the vectors of two towers"),
        (["--projector"], "--projector is about the vectors of two towers"),
        (["--data={tmp}/one.tsv"], "no query with a right and a wrong answer"),
        (["--run={tmp}/arc"], "ARCI has no interaction matrix of words"),
    ],
)
def test_wrong_input_is_one_line(run, tmp_path, refused, flags, message):
    (tmp_path / "one.tsv").write_text("glue\twood glue\n")
    arc = dssm.ScorerRecipe("ARCI", words="trigrams", word_dimension=2)
    folder = dssm.run_folder.RunFolder(tmp_path / "arc")
    folder.path.mkdir()
    folder.save(arc.build(), folder.model)
    command = ["analyze", f"--run={run}", f"--output={tmp_path}/r.html"]
    flags = [flag.format(tmp=tmp_path) for flag in flags]
    refused(analyze.run([*command, *flags]), message)
    assert not (tmp_path / "r.html").exists()

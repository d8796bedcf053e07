"""lstm-dssm-analyze of a KeyVec: the report as a user makes it."""

import functools
import json
import shutil
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import DocumentFolder
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.tools import analyze
from keras_lstm_dssm.training.document_targets import TARGETS_FILE
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.tools.conftest import succeed
from tests.training.small_documents import (
    QUICK_KEYVEC,
    WORDS,
    write_small_documents,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Trains a KeyVec whose key sentences `trigrams` chooses."""
    folder = tmp_path_factory.mktemp("keyvec")
    write_small_documents(folder / "data")
    recipe = QUICK_KEYVEC.replace(epochs=1, skip_gram=False)
    with pytest.MonkeyPatch.context() as patch:
        # Three steps take less time than their trace.
        eagerly = functools.partialmethod(KeyVec.compile, run_eagerly=True)
        patch.setattr(KeyVec, "compile", eagerly)
        dssm.train(
            folder / "data", recipe, output=folder / "run", verbose=0,
            salience="trigrams",
        )  # fmt: skip
    return folder / "run"


def test_report(run, tmp_path, capsys):
    output, values = tmp_path / "report.html", tmp_path / "out.json"
    files = {"output": output, "json": values, "csv": tmp_path / "csv"}
    succeed(analyze, run=run, examples=2, map="pca", projector=True, **files)
    page = HtmlPage(output.read_text())
    assert len(check_self_contained(page, output.read_text())) == 2
    folder = DocumentFolder(run.parent / "data")
    documents = {one.id: one for one in folder.of("test")}
    found = json.loads(values.read_text())
    assert [one["id"] for one in found["map"]] == list(documents)
    model = dssm.load_run(run)
    assert len(found["documents"]) == 2
    for one in found["documents"]:
        document = documents[one["id"]]
        (p,) = model.probabilities([document.sentences])
        assert [s["probability"] for s in one["sentences"]] == pytest.approx(p)
        # The summary is the second sentence.
        salient = [s["salient"] for s in one["sentences"]]
        assert salient == [row == 1 for row in range(len(salient))]
        predicted = [w["word"] for w in one["predicted"]]
        assert predicted == [w for w, _ in model.key_words(document.sentences)]
        words = {w["word"] for w in one["key_words"]}
        assert words == set(document.summary[0].split())
        assert words < set(WORDS[document.label])
    text = " ".join(page.of("p"))
    assert "4 documents of the split test" in text
    assert "the teacher (trigrams)" in text
    assert page.of("h2")[-2:] == [
        "Loss by epoch", "What was trained, and how good it is"
    ]  # fmt: skip
    assert len((files["csv"] / "map.csv").read_text().splitlines()) == 5
    lines = (run / "logs/projector/titles.labels.tsv").read_text().splitlines()
    assert lines == [one.sentences[0] for one in documents.values()]
    assert f"wrote {output}" in capsys.readouterr().out


def test_key_words_are_those_of_the_recipe(run, tmp_path):
    """The report takes key words from the text that the recipe names.

    With `key_words_of="document"`, that is all sentences, not the summary.
    """
    of_all, values = tmp_path / "run", tmp_path / "out.json"
    shutil.copytree(run, of_all)
    config = json.loads((of_all / "config.json").read_text())
    config["recipe"]["key_words_of"] = "document"
    (of_all / "config.json").write_text(json.dumps(config))
    output = tmp_path / "report.html"
    succeed(
        analyze, run=of_all, output=output, json=values, map="pca", examples=4
    )
    documents = DocumentFolder(run.parent / "data").of("test")
    expected = {
        one.id: set(" ".join(one.sentences).split()) for one in documents
    }
    found = json.loads(values.read_text())["documents"]
    assert {
        one["id"]: {word["word"] for word in one["key_words"]} for one in found
    } == expected
    assert {len(words) for words in expected.values()} != {3}  # of a summary


def test_another_teacher_and_other_data(run, tmp_path):
    """Leaves out bad lines; shows the split train if there is no other."""
    data = tmp_path / "data"
    data.mkdir()
    lines = [
        {"_id": f"n{n}", "sentences": ["hat coat", "saw", "nail", "drill"],
         "summary": "saw"}
        for n in range(3)
    ]  # fmt: skip
    (data / "documents.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines) + "no JSON\n"
    )
    output, values = tmp_path / "report.html", tmp_path / "out.json"
    succeed(
        analyze, run=run, data=data, output=output, json=values, map="pca",
        salience="lead", on_bad_line="skip",
    )  # fmt: skip
    found = json.loads(values.read_text())["documents"]
    assert len(found) == 3
    for one in found:
        salient = [s["salient"] for s in one["sentences"]]
        assert salient == [True, False, False, False]
    assert "3 documents of the split train" in output.read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--claims"], "--claims is about the vectors of two towers"),
        (["--query=glue"], "--query is about a query and a title"),
        (["--salience=none"], "salience is 'none': found no such folder"),
        (["--data={tmp}/none"], "none: found nothing there"),
        (["--data={tmp}/two"], "found 2 documents, a map needs 3 or more"),
        (["--run={tmp}/run"], "found no targets of documents"),
    ],
)
def test_wrong_input_is_one_line(run, tmp_path, refused, flags, message):
    shutil.copytree(run, tmp_path / "run", ignore=lambda *_: [TARGETS_FILE])
    (tmp_path / "two").mkdir()
    (tmp_path / "two/documents.jsonl").write_text(
        '{"_id": 1, "text": "hat", "summary": "hat"}\n'
        '{"_id": 2, "text": "saw", "summary": "saw"}\n'
    )
    command = ["analyze", f"--run={run}", f"--output={tmp_path}/r.html"]
    flags = [flag.format(tmp=tmp_path) for flag in flags]
    refused(analyze.run([*command, *flags]), message)
    assert not (tmp_path / "r.html").exists()


def test_other_models_have_no_key_sentences(trained_run, tmp_path, refused):
    for flag in ("csv=new", "salience=bm25"):
        command = ["analyze", f"--run={trained_run}", f"--{flag}"]
        refused(
            analyze.run([*command, f"--output={tmp_path}/r.html"]),
            f"--{flag.split('=')[0]} is about the key sentences of a KeyVec",
        )

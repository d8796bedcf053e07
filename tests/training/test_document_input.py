"""What a KeyVec cannot be trained on, and what documents lack."""

import pathlib
from collections import Counter

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Document, write_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.document_targets import DocumentTargets, Target
from keras_lstm_dssm.training.keyvec_training import KeyVecTraining
from tests.training.small_documents import (
    QUICK_KEYVEC,
    documents,
    write_small_documents,
)

pytest.importorskip("gensim")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("documents") / "folder"
    write_small_documents(path)
    return path


def test_what_documents_lack_is_told(tmp_path, capsys, monkeypatch):
    """No summary, one of unknown words, no similar sentence, and no dev."""
    lookups: Counter[str] = Counter()
    target_of = DocumentTargets.of

    def of(self: DocumentTargets, document: Document) -> Target:
        lookups[document.id] += 1
        return target_of(self, document)

    monkeypatch.setattr(DocumentTargets, "of", of)
    few = documents({"train": 8})
    few[0] = few[0]._replace(summary=[])
    few[1] = few[1]._replace(summary=["unheard"])
    write_documents(tmp_path / "data", few, {}, {})
    recipe = QUICK_KEYVEC.replace(skip_gram=False)
    config = TrainingConfig(str(tmp_path / "data"), recipe, salience="bm25")
    work = KeyVecTraining(config, RunFolder(tmp_path))
    model = work.new_model()
    assert work.describe() == (
        "8 documents; salient: 20.5% of 39 sentences, theta 0.999995; of 8"
        " documents 12.5% have none above theta and keep their most similar"
        " sentence, 100.0% have the largest number; 1 without a summary: the"
        " first ones"
    )
    work.warn(model)
    error = capsys.readouterr().err
    start = f"warning: {tmp_path / 'data'}: 12.5% of 8 documents to train on"
    lines = error.splitlines()
    assert lines[0].startswith(f"{start} have no summary: their first")
    assert lines[1].startswith(f"{start} have a summary, but no word of it")
    assert lines[2].startswith(f"{start} have no sentence above theta (0.99")
    assert "found no document of the split dev: without" in lines[3]
    assert "all 3 epochs" in lines[3]
    assert len(lines) == 4
    # To count key words once, to train, and to find documents without any:
    # that without a summary is not one of these.
    assert lookups == {few[0].id: 2, **{one.id: 3 for one in few[1:]}}


def test_words_of_the_document_need_no_summary(tmp_path, capsys):
    few = documents({"train": 8, "dev": 2})
    few[0] = few[0]._replace(summary=[])
    few[1] = few[1]._replace(summary=["unheard"])
    write_documents(tmp_path / "data", few, {}, {})
    recipe = QUICK_KEYVEC.replace(key_words_of="document", skip_gram=False)
    config = TrainingConfig(str(tmp_path / "data"), recipe, salience="bm25")
    work = KeyVecTraining(config, RunFolder(tmp_path))
    assert all(target.key_words for target in work.targets.targets.values())
    work.warn(work.new_model())
    error = capsys.readouterr().err.splitlines()
    assert error[0].endswith("summary: their first sentences are salient")
    assert "above theta" in error[1] and len(error) == 2


def test_documents_without_any_summary(tmp_path, capsys):
    """They can be trained on if key words are taken from all the text.

    One warning says that their first sentences are the salient ones.
    """
    few = documents({"train": 4, "dev": 2})
    none = [one._replace(summary=[]) for one in few]
    write_documents(tmp_path / "data", none, {}, {})
    recipe = QUICK_KEYVEC.replace(key_words_of="document", skip_gram=False)
    config = TrainingConfig(str(tmp_path / "data"), recipe, salience="bm25")
    run = RunFolder(tmp_path)
    work = KeyVecTraining(config, run)
    work.warn(work.new_model())
    (line,) = capsys.readouterr().err.splitlines()
    assert "100.0% of 4 documents to train on have no summary" in line
    for target in work.targets.targets.values():
        assert target.salient == [0] and target.key_words
    with pytest.raises(InputError, match="no training document with a summ"):
        KeyVecTraining(config.replace(recipe=QUICK_KEYVEC), run)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("{}", {"salience": "bm52"}, "salience is 'bm52': found no such fold"),
        ("{}", {"titles": ["a"]}, "titles is used by two towers only: leave"),
        ("{}", {"validation": "x.tsv"}, "measured on the documents of the s"),
        ("{}", {"histograms": True}, "and a KeyVec has none"),
        ("{}", {"patience": -1}, "patience is -1: expected a whole number"),
        ("{}", {"dev": "{}", "select": "p@7"}, "measure is 'p@7': expected"),
        ("{}", {"recipe": "dssm"}, "found documents of many sentences, expec"),
        ("{}", {"recipe": "arc_i"}, "found documents of many sentences, expec"),
        ("api", {}, "expected 'api_documents' or a folder of documents"),
        ([("a", "b")], {}, "learns from documents: found list, expected a Doc"),
        ("api_documents", {"recipe": "best"}, "train a KeyVec on them"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_input_leaves_no_folder(data, options, message, folder, tmp_path):
    options = {"recipe": QUICK_KEYVEC, "verbose": 0, **options}
    if options.get("dev") == "{}":
        options["dev"] = folder
    with pytest.raises(InputError, match=message) as caught:
        dssm.train(
            folder if data == "{}" else data, output=tmp_path / "run", **options
        )
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_titles_are_no_documents(collection_folder, folder):
    with pytest.raises(InputError, match=r"documents\.jsonl: no such file"):
        dssm.train(collection_folder, QUICK_KEYVEC, verbose=0)
    with pytest.raises(InputError, match="salience is used by a KeyVec only"):
        dssm.train([("a", "b")], "dssm", salience="lead", verbose=0)

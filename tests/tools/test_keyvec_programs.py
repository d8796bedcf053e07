"""lstm-dssm-train and lstm-dssm-evaluate of a KeyVec."""

import json
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import DocumentFolder
from keras_lstm_dssm.evaluation import system_of
from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES
from keras_lstm_dssm.evaluation.task import DOCUMENT_MEASURES, document_tasks
from keras_lstm_dssm.files import read_json
from keras_lstm_dssm.models import KEYVEC_PRESETS
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import evaluate, train
from tests.training.small_documents import QUICK_KEYVEC, write_small_documents

pytest.importorskip("gensim")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("documents") / "folder"
    write_small_documents(path)
    return path


@pytest.fixture
def small_preset(monkeypatch) -> None:
    quick = QUICK_KEYVEC.replace(epochs=2)
    monkeypatch.setitem(KEYVEC_PRESETS, "keyvec", quick)


def test_python_and_program_give_one_model_that_is_measured(
    small_preset, folder, tmp_path, capsys, refused
):
    """Resumes, evaluates and compares with `dssm.train` of the same flags."""
    run, out = tmp_path / "run", tmp_path / "out.json"
    flags = ["--preset=keyvec", "--salience=lead", "--seed=3", "--patience=1"]
    begin = ["train", f"--data={folder}", f"--output={run}", *flags]
    assert train.run(begin) == 0
    assert (
        "10 documents; salient: 20.4% of 49 sentences"
        in capsys.readouterr().out
    )
    model = dssm.train(
        folder, "keyvec", seed=3, salience="lead", patience=1, verbose=0
    )
    found = dssm.load_run(run)
    for ours, theirs in zip(
        model.get_weights(), found.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert train.run([*begin, "--resume"]) == 0
    assert "already finished" in capsys.readouterr().out
    for flag, message in (
        ("--salience=bm25", "--salience=bm25: the run in"),
        ("--patience=2", "was started with 1; leave the flag out"),
        ("--dimension=4", "was started with 3; leave the flag out"),
        ("--preset=lstm_96", "was started with KeyVec({'weighted': True"),
    ):
        refused(train.run([*begin, "--resume", flag]), message)

    measure = ["evaluate", f"--run={run}", f"--data={folder}"]
    assert evaluate.run([*measure, f"--json={out}"]) == 0
    results = json.loads(out.read_text())["test"]
    names = [
        "model", "bm25", "tfidf", "lsa", "word2vec", "doc2vec",
        "random_vectors", "random",
    ]  # fmt: skip
    assert list(results["retrieve"]) == names
    assert list(results["cluster"]) == [n for n in names if n != "bm25"]
    tasks = document_tasks(DocumentFolder(folder))
    for name, measures in (
        ("retrieve", DOCUMENT_MEASURES),
        ("cluster", CLUSTER_MEASURES),
    ):
        _, of_queries = tasks[name].measure(system_of(found))
        assert results[name]["model"] == pytest.approx(
            {
                measure: np.mean([v[measure] for v in of_queries.values()])
                for measure in measures
            }
        )
    # The words of a class are those of its query.
    assert results["retrieve"]["bm25"]["map"] == 1
    printed = capsys.readouterr().out
    assert "test, retrieve: 2 queries, 4 documents" in printed
    assert "test, cluster: 4 documents in 2 classes" in printed
    metrics = RunFolder(run).read_metrics()
    assert metrics["test/cluster"] == results["cluster"]
    assert metrics["test"] == results
    card = (run / "CARD.md").read_text()
    assert "## Figures" in card and "Not evaluated yet" not in card
    assert "queries, 4 documents" in card and "the 5 runs of k-means" in card
    for name, of_card in (("retrieve", "p@10"), ("cluster", "ami")):
        entry = read_json(run / "card.json")["evaluations"][f"test/{name}"]
        assert list(entry["systems"]) == list(results[name])
        assert entry["systems"]["model"][of_card][0] == pytest.approx(
            results[name]["model"][of_card], abs=1e-6
        )
    assert "| difference to bm25 |" in card
    assert "first 10 documents: Latin 100.0 %" in card
    assert "Half of the documents have at most 5 sentences" in card
    assert "Half of the sentences have at most 3 words" in card
    assert "teacher of key sentences" in card
    for flag, message in (
        ("--mode=rerank", "--mode is about rankings of titles: leave it out"),
        ("--split=tset", "found split 'tset', expected one of train, dev, t"),
        ("--data=api", "expected 'api_documents' or a folder of documents"),
    ):
        refused(evaluate.run([*measure, flag]), message)


def test_what_is_given_to_another_model(
    small_preset, folder, collection_folder, tmp_path, refused
):
    begin = ["train", f"--output={tmp_path / 'run'}"]
    keyvec = [*begin, "--preset=keyvec"]
    for flags, message in (
        ([*begin, f"--data={folder}"], "found documents of many sentences"),
        ([*keyvec, f"--data={collection_folder}"], "jsonl: no such file"),
        ([*keyvec, f"--data={folder}", "--gamma=3"], "--gamma is not a flag"),
        (
            [*keyvec, f"--data={folder}", "--salience=word2vec"],
            "salience is 'word2vec': found no such folder, expected one of",
        ),
        (
            [*begin, f"--data={collection_folder}", "--salience=lead"],
            "salience is used by a KeyVec only: leave it out for two towers",
        ),
    ):
        refused(train.run(flags), message)
        assert not (tmp_path / "run").exists()

"""lstm-dssm-evaluate of a KeyVec."""

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
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import evaluate
from tests.training.small_documents import QUICK_KEYVEC, write_small_documents

pytest.importorskip("gensim")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("documents") / "folder"
    write_small_documents(path)
    return path


def test_a_keyvec_is_measured(folder, tmp_path, capsys, refused, eager):
    run, out = tmp_path / "run", tmp_path / "out.json"
    recipe = QUICK_KEYVEC.replace(epochs=1)
    found = dssm.train(folder, recipe, output=run, salience="lead", verbose=0)
    command = ["evaluate", f"--run={run}", f"--data={folder}"]
    assert evaluate.run([*command, f"--json={out}"]) == 0
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
        for measure in measures:
            mean = np.mean([v[measure] for v in of_queries.values()])
            assert results[name]["model"][measure] == pytest.approx(mean)
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
        refused(evaluate.run([*command, flag]), message)

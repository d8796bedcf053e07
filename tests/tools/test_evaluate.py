"""lstm-dssm-evaluate: what is measured, printed and kept."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import evaluation
from keras_lstm_dssm.data import Collection, DocumentFolder, write_collection
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.evaluation import system_of
from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES
from keras_lstm_dssm.evaluation.task import DOCUMENT_MEASURES, document_tasks
from keras_lstm_dssm.plain_files import read_json
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import evaluate
from tests.kit.flags import last_of_each
from tests.tools.conftest import results_of, succeed
from tests.training.small_documents import QUICK_KEYVEC, write_small_documents


@pytest.fixture
def run(trained_run, tmp_path) -> Path:
    """A copy, for an evaluation writes into the run."""
    return shutil.copytree(trained_run, tmp_path / "run")


@pytest.fixture
def hats(tmp_path) -> Path:
    """A collection in which white space divides other words than letters."""
    folder, queries = tmp_path / "hats", {"q1": "red", "q2": "hat"}
    titles = {"a": "red hat", "b": "blue-hat", "c": "red shoe", "d": "sock"}
    qrels = {"q1": {"a": 1, "c": 2, "d": 0}, "q2": {"b": 2, "d": 0}}
    write_collection(folder, titles, queries, {"test": qrels}, [])
    return folder


def test_figures_of_both_modes_are_kept(
    run, collection_folder, tmp_path, capsys
):
    stored, file = {}, tmp_path / "out.trec"
    for mode, documents in (("retrieve", 3), ("rerank", 6)):
        results = results_of(
            evaluate, tmp_path / "out.json", run=run, data=collection_folder,
            mode=mode, run_file=file, depth=3, html=tmp_path / "page.html",
        )  # fmt: skip
        assert list(results) == ["test"]
        found = results["test"]
        printed = capsys.readouterr().out
        sentence = found.pop("verdict")["sentence"]
        assert found.pop("failures")["measure"] in sentence
        assert sentence in printed
        assert sentence in (tmp_path / "page.html").read_text()
        stored |= {"test": found, f"test/{mode}": found}
        names = [name for name in found if name != "pages"]
        assert names == ["mode", "bm25_words", "model", "bm25", "random"]
        assert ("pages" in found) == (mode == "retrieve")
        assert (found["mode"], found["bm25_words"]) == (mode, "space")
        collection = Collection(collection_folder)
        task = evaluation.Task.from_collection(
            collection, "test", mode, depth=3
        )
        ranked = evaluation.read_run(file)
        assert found["random"] == task.random()
        assert found["model"] == task.evaluate(ranked)
        assert list(found["model"]) == list(evaluation.MEASURES)
        assert {len(of_query) for of_query in ranked.values()} == {documents}
        assert f"test, {mode}: 6 queries, 6 documents in the cor" in printed
        assert f"{100 * found['model']['map']:.2f}" in printed
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics.pop("train")["epoch"] == 3
    assert metrics == stored


def test_words_of_bm25(run, hats, tmp_path, capsys):
    recall = {}
    for words in ("space", "alphanumeric", "model"):
        found = results_of(
            evaluate, tmp_path / "out.json", run=run, data=hats,
            mode="retrieve", bm25_words=words, min_relevant=2,
        )["test"]  # fmt: skip
        recall[words] = found["bm25"]["recall@10"]
    assert recall == {"space": 0.5, "alphanumeric": 1.0, "model": 0.5}
    assert found["bm25_words"] == "space"  # as the model's are
    printed = capsys.readouterr().out
    assert printed.count("separated by white space (as the model reads") == 2
    assert "runs of letters and digits (not as the model reads" in printed


def test_numbers_of_clicks_are_named(run, hats, capsys):
    (hats / "qrels/test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\ta\t9\nq1\tc\t40\n"
    )
    succeed(evaluate, run=run, data=hats)
    assert "grades: 0 to 4, computed from" in capsys.readouterr().out


def test_the_training_split_leaves_the_figures_of_training(
    run, collection_folder, tmp_path
):
    data = shutil.copytree(collection_folder, tmp_path / "data")
    shutil.copy(data / "qrels" / "dev.tsv", data / "qrels" / "train.tsv")
    succeed(evaluate, run=run, data=data, split="train")
    metrics = json.loads((run / "metrics.json").read_text())
    assert set(metrics) == {"train", "train/rerank"}
    assert metrics["train"]["epoch"] == 3


def test_an_encoder_that_this_package_did_not_train(
    collection_folder, tmp_path, monkeypatch
):
    """Measures the encoder, each text once, and stores nothing."""
    (tmp_path / "letters_of_texts.py").write_text(
        "def encode(texts):\n"
        "    return [[t.count(c) for c in 'abdeghilnorst'] for t in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    name = "letters_of_texts:encode"
    found = results_of(
        evaluate, Path("out.json"), data=collection_folder, run=name,
        mode="retrieve", min_relevant=2,
    )["test"]  # fmt: skip
    task = evaluation.Task.from_collection(
        Collection(collection_folder), "test", "retrieve"
    )._replace(min_relevant=2)
    encode = open_outside_encoder(name)
    expected = task.evaluate(task.run(evaluation.DenseSystem(encode, encode)))
    assert found["model"] == pytest.approx(expected)
    assert found["texts_per_second"] > 0
    assert {path.name for path in tmp_path.iterdir()} <= {
        "letters_of_texts.py", "out.json", "__pycache__",
    }  # fmt: skip


def test_a_keyvec_is_measured(tmp_path, capsys, refused, eager):
    pytest.importorskip("gensim")
    pytest.importorskip("sklearn")
    folder, run, out = (tmp_path / name for name in ("data", "run", "out.json"))
    write_small_documents(folder)
    recipe = QUICK_KEYVEC.replace(epochs=1)
    found = dssm.train(folder, recipe, output=run, salience="lead", verbose=0)
    command = ["evaluate", f"--run={run}", f"--data={folder}"]
    assert evaluate.program.run([*command, f"--json={out}"]) == 0
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
        argv = ["evaluate", *last_of_each(*command[1:], flag)]
        refused(evaluate.program.run(argv), message)

import json
import shutil
import types
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.analysis.evaluate import measure_titles
from keras_lstm_dssm.data import Collection, write_collection
from keras_lstm_dssm.evaluation import MEASURES, Task, read_run
from keras_lstm_dssm.evaluation.task import means
from keras_lstm_dssm.tools import evaluate

DOCUMENTS = {"a": "red hat", "b": "blue-hat", "c": "red shoe", "d": "sock"}
QUERIES = {"q1": "red", "q2": "hat"}
QRELS = {"q1": {"a": 1, "c": 2, "d": 0}, "q2": {"b": 2, "d": 0}}


class LetterEncoder:
    """Counts letters: a small encoder with the methods of the real one."""

    trigrams = types.SimpleNamespace(split="alphanumeric")

    def encode(self, texts, batch_size, progress) -> np.ndarray:
        letters = "abcdehlorstuk"
        return np.array([[t.count(c) for c in letters] for t in texts])


class LetterModel:
    query_encoder = document_encoder = LetterEncoder()


@pytest.fixture
def folder(tmp_path) -> Path:
    write_collection(tmp_path / "data", DOCUMENTS, QUERIES, {"test": QRELS}, [])
    return tmp_path / "data"


@pytest.fixture
def run(folder):
    """Returns lstm-dssm-evaluate, with `LetterModel` as the run's model."""

    def main(argv: list[str]):
        _, by_query, about = measure_titles(
            LetterModel(),
            Collection(folder),
            evaluate.FLAGS.split,
            evaluate.FLAGS.min_relevant,
            report=print,
            **evaluate.flags_of_titles(),
        )
        return {evaluate.FLAGS.split: {**about, **means(by_query)}}

    inner = evaluate.program.main(main)
    return lambda *flags: inner(
        ["evaluate", "--run=none", f"--data={folder}", *flags]
    )


@pytest.mark.parametrize("mode", ["rerank", "retrieve"])
def test_results(run, folder, tmp_path, capsys, mode):
    files = [tmp_path / "out.json", tmp_path / "out.trec"]
    flags = [f"--json={files[0]}", f"--run_file={files[1]}", "--depth=3"]
    assert run(f"--mode={mode}", *flags) == 0
    results = json.loads(files[0].read_text())
    assert list(results) == ["test"]
    assert results["test"].pop("bm25_words") == "alphanumeric"
    assert list(results["test"]) == ["model", "bm25", "random"]
    assert all(list(v) == list(MEASURES) for v in results["test"].values())
    task = Task.from_collection(Collection(folder), "test", mode, depth=3)
    assert results["test"]["random"] == task.random()
    model = read_run(files[1])
    assert results["test"]["model"] == task.evaluate(model)
    assert [len(r) for r in model.values()] == (
        [3, 2] if mode == "rerank" else [3, 3]
    )
    out = capsys.readouterr().out
    assert f"test, {mode}: 2 queries, 4 documents in the corpus" in out
    assert f"{100 * results['test']['model']['map']:.2f}" in out


def test_words_of_bm25(run, tmp_path, capsys):
    path = tmp_path / "out.json"
    recall = {}
    for words in ("space", "alphanumeric", "model"):
        flags = ["--mode=retrieve", f"--json={path}", f"--bm25_words={words}"]
        assert run(*flags, "--min_relevant=2") == 0
        figures = json.loads(path.read_text())["test"]
        recall[words] = figures["bm25"]["recall@10"]
    assert recall == {"space": 0.5, "alphanumeric": 1.0, "model": 1.0}
    assert figures["bm25_words"] == "alphanumeric"  # as the model's are
    out = capsys.readouterr().out
    assert "bm25: separated by white space (not as the model reads" in out
    assert out.count("runs of letters and digits (as the model reads") == 2


def test_numbers_of_clicks_are_named(run, folder, capsys):
    (folder / "qrels/test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\ta\t9\nq1\tc\t40\n"
    )
    assert run() == 0
    assert "grades: 0 to 4, computed from" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--split=tset", "tset.tsv: no such split, expected one of test"),
        ("--mode=rank", "--mode=rank: value should be one of <rerank|retr"),
        (
            "--bm25_words=stems",
            "should be one of <model|space|alphanumeric|stemmed>",
        ),
        ("--min_relevant=3", "split 'test' has no query to rerank"),
        ("--batch_size=0", "--batch_size=0"),
        ("--run_file=/nowhere/out.trec", "No such file or directory"),
    ],
)
def test_wrong_input_is_one_line(run, refused, flag, message):
    refused(run(flag), message)


def test_metrics_of_both_modes_are_kept(
    trained_run, collection_folder, tmp_path
):
    for name in ("config.json", "model.keras", "metrics.json"):
        shutil.copy(trained_run / name, tmp_path)
    answers = {}
    for mode in ("retrieve", "rerank"):
        out = tmp_path / f"{mode}.json"
        command = ["evaluate", f"--run={tmp_path}", f"--mode={mode}"]
        data = f"--data={collection_folder}"
        assert evaluate.run([*command, data, f"--json={out}"]) == 0
        answers[mode] = json.loads(out.read_text())["test"]
        systems = ["model", "bm25", "random"]
        assert list(answers[mode]) == ["mode", "bm25_words", *systems]
        assert answers[mode]["mode"] == mode
        assert answers[mode]["bm25_words"] == "space"  # the encoder's split
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics.pop("train")["epoch"] == 3
    assert metrics == {
        "test": answers["rerank"],
        "test/rerank": answers["rerank"],
        "test/retrieve": answers["retrieve"],
    }


def test_the_training_split_leaves_the_figures_of_training(
    trained_run, collection_folder, tmp_path
):
    run = shutil.copytree(trained_run, tmp_path / "run")
    data = shutil.copytree(collection_folder, tmp_path / "data")
    shutil.copy(data / "qrels" / "dev.tsv", data / "qrels" / "train.tsv")
    command = ["evaluate", f"--run={run}", f"--data={data}", "--split=train"]
    assert evaluate.run(command) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert set(metrics) == {"train", "train/rerank"}
    assert metrics["train"]["epoch"] == 3


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--json={run}/no/out.json", "out.json: there is no folder"),
        ("--run_file={run}/no/out.trec", "out.trec: there is no folder"),
        ("--depth=1", "metrics.json: "),
    ],
)
def test_what_would_fail_at_the_end_fails_first(
    folder, tmp_path, refused, flag, message
):
    (tmp_path / "metrics.json").write_text("{")  # and there is no model
    flags = [f"--run={tmp_path}", f"--data={folder}"]
    refused(
        evaluate.run(["evaluate", *flags, flag.format(run=tmp_path)]), message
    )


@pytest.mark.parametrize("missing", ["run", "data"])
def test_missing_input_is_one_line(folder, tmp_path, refused, missing):
    paths = {"run": tmp_path, "data": folder} | {missing: tmp_path / "none"}
    flags = [f"--{name}={path}" for name, path in paths.items()]
    refused(evaluate.run(["evaluate", *flags]), str(paths["run"]))

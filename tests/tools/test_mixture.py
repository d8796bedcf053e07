"""--mix and --hybrid of lstm-dssm-evaluate, and --hybrid of -export."""

import json
import shutil
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.data.sources import training_queries
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate.hybrid import fit_hybrid
from keras_lstm_dssm.evaluate.titles import open_system
from keras_lstm_dssm.evaluation import Task, choose_weights, read_run
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.tools import evaluate, export
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from tests.conftest import TOPICS
from tests.tools.conftest import TITLES, results_of, succeed

ENCODER = "outside_letters:encode"


@pytest.fixture(autouse=True)
def outside_encoder(tmp_path, monkeypatch) -> None:
    """Writes a module with an encoder into the working directory."""
    (tmp_path / "outside_letters.py").write_text(
        "def encode(texts):\n"
        "    return [[t.count(c) for c in 'abcdefghilmnoprstu'] for t in texts]"
    )
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run_copy(trained_run, tmp_path) -> Path:
    return shutil.copytree(trained_run, tmp_path / "run")


@pytest.mark.parametrize(
    ("mode", "measure"), [("retrieve", "mrr@10"), ("rerank", "ndcg@10")]
)
def test_evaluate_gives_what_python_gives(
    mode, measure, run_copy, other_run, scorer_run, collection_folder, capsys
):
    """Only reranking takes a pair scorer as a part."""
    parts = {
        "model": dssm.load_run(run_copy),
        "bm25": BM25System(),
        ENCODER: open_outside_encoder(ENCODER),
        str(other_run): dssm.load_run(other_run),
    }
    if mode == "rerank":
        parts[str(scorer_run)] = dssm.load_run(scorer_run)
    _, *names = parts
    flags = {
        "run": run_copy, "data": collection_folder, "mode": mode,
        "mix": ",".join(names), "run_file": "out.trec", "queries": 0,
    }  # fmt: skip
    results = results_of(evaluate, Path("out.json"), **flags)["test"]
    collection = Collection(collection_folder)
    dev = Task.from_collection(collection, "dev", mode)
    chosen = choose_weights(parts, dev, measure)
    assert results["mixture_weights"] == pytest.approx(chosen.weights)
    assert results["mixture_dev"] == {
        measure: chosen.value,
        "alone": chosen.alone,
        "queries": len(TOPICS),
    }
    task = Task.from_collection(collection, "test", mode)
    run = task.run(dssm.Mixture(parts, chosen.weights))
    assert results["mixture"] == task.evaluate(run)
    ranked = read_run("out.trec")
    assert {q: [*of] for q, of in ranked.items()} == {
        q: [*of] for q, of in run.items()
    }
    for name, part in parts.items():
        alone = task.run(dssm.Mixture({name: part}))
        assert results[name] == pytest.approx(task.evaluate(alone))
    rows = ["model", *names, "mixture", "random"]
    assert [name for name in results if name in rows] == rows
    metrics = json.loads((run_copy / "metrics.json").read_text())
    assert metrics[f"test/{mode}"] == results
    printed = capsys.readouterr().out
    assert f"mixture: {measure} on the {len(TOPICS)} queries of d" in printed
    # The printed flag gives the same mixture, without dev.
    weights = printed.partition("(--mix_weights=")[2].partition(")")[0]
    again = results_of(
        evaluate, Path("out.json"), **flags, split="dev", mix_weights=weights
    )["dev"]
    assert "mixture_dev" not in again
    assert again["mixture"][measure] == pytest.approx(chosen.value)


def test_a_folder_with_a_config_of_another_library_is_no_run(tmp_path):
    """The folder of an outside encoder may have a config.json, too."""
    for config, message in (
        ('{"model_type": "bert"}', "is not bm25, nor the folder of a"),
        ("{}", "no model here"),
    ):
        (tmp_path / "config.json").write_text(config)
        with pytest.raises(dssm.InputError, match=message):
            open_system(str(tmp_path), BM25System())


def test_weights_of_dev_are_kept_and_exported(
    trained_run, collection_folder, tmp_path, capsys
):
    run = shutil.copytree(trained_run, tmp_path / "run")
    succeed(
        evaluate, run=run, data=collection_folder, mode="retrieve",
        hybrid=True, split="dev",
    )  # fmt: skip
    line = "hybrid: weights by default, because dev is measured\n"
    assert line in capsys.readouterr().out
    results = results_of(
        evaluate, tmp_path / "out.json", run=run, data=collection_folder,
        hybrid=True, run_file=tmp_path / "out.trec", queries=0,
    )["test"]  # fmt: skip
    rows = ["model", "towers", "bm25", "hybrid", "random"]
    assert [*results][-5:] == rows
    assert results["towers"] == results["model"]  # an LSTM has no sketch
    stored = RunFolder(run).read_hybrid()
    assert stored is not None and stored.bm25_words == "stems"
    settings = json.loads((run / "hybrid.json").read_text())
    assert settings == stored.to_dict()
    collection = Collection(collection_folder)
    dev = Task.from_collection(collection, "dev", "retrieve")
    parts = HybridParts.of(dssm.load_run(run)).systems()
    queries = training_queries(RunFolder(run).read_config())
    fitted, _ = fit_hybrid(parts, HybridSettings(), dev, "mrr@10", queries)
    assert fitted.settings == stored
    titles = tmp_path / "titles.tsv"
    titles.write_text(
        "".join(f"{i}\t{t}\n" for i, t in collection.documents.items())
    )
    capsys.readouterr()
    succeed(
        export, run=run, hybrid=True, documents=titles, output=tmp_path / "m"
    )
    printed = capsys.readouterr().out
    assert "words 0 (no such part)" in printed and "terms are stems" in printed
    task = Task.from_collection(collection, "test", "retrieve")
    measured = read_run(tmp_path / "out.trec")
    assert task.evaluate(task.run(fitted)) == task.evaluate(measured)


def test_bm25_needs_no_run(tmp_path, capsys):
    titles = tmp_path / "titles.tsv"
    titles.write_text(TITLES)
    succeed(export, hybrid=True, documents=titles, output=tmp_path / "m")
    assert "hybrid: towers 0 (no such part)" in capsys.readouterr().out
    models = {path.name for path in (tmp_path / "m").iterdir() if path.is_dir()}
    assert models == {"retriever"}
    hits = SavedRetriever(tmp_path / "m" / "retriever").search(
        ["bolted hoses", "lamp"], 3
    )
    assert {hit.id for hit in hits[0]} == {"t1", "t3"} and hits[1] == []


def test_a_damaged_choice_is_one_line(tmp_path):
    values = HybridSettings().to_dict() | {"towers": -1}
    (Path(tmp_path) / "hybrid.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="hybrid.json: towers is -1.* choose"):
        RunFolder(tmp_path).read_hybrid()

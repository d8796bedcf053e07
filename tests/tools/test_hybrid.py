"""--hybrid in lstm-dssm-evaluate and -export, as a user gives it."""

import json
import shutil
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.analysis.hybrid import bm25_part, read_hybrid
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task, choose_weights, read_run
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.tools import evaluate, export
from tests.tools.conftest import TITLES, results_of, succeed


def test_weights_of_dev_are_kept_and_exported(
    trained_run, collection_folder, tmp_path, capsys
):
    """The retriever ranks as the hybrid that was measured."""
    run = shutil.copytree(trained_run, tmp_path / "run")
    results = results_of(
        evaluate, tmp_path / "out.json", run=run, data=collection_folder,
        mode="retrieve", hybrid=True, run_file=tmp_path / "out.trec",
    )["test"]  # fmt: skip
    assert [*results][3:] == ["model", "towers", "bm25", "hybrid", "random"]
    assert results["towers"] == results["model"]  # an LSTM has no sketch
    stored = read_hybrid(run)
    assert stored is not None and stored.bm25_words == "stems"
    settings = json.loads((run / "hybrid.json").read_text())
    assert settings == stored.to_dict()
    collection = Collection(collection_folder)
    dev = Task.from_collection(collection, "dev", "retrieve")
    parts = {"towers": dssm.load_run(run), "bm25": bm25_part(stored)}
    weights = choose_weights(parts, dev).weights
    assert weights == {name: settings[name] for name in parts}
    titles = tmp_path / "titles.tsv"
    titles.write_text(
        "".join(f"{i}\t{t}\n" for i, t in collection.documents.items())
    )
    capsys.readouterr()
    succeed(
        export, run=run, hybrid=True, documents=titles, output=tmp_path / "m"
    )
    printed = capsys.readouterr().out
    assert "words 0 (no such part)" in printed and "bm25 of stems" in printed
    task = Task.from_collection(collection, "test", "retrieve")
    measured = read_run(tmp_path / "out.trec")
    mixture = dssm.Mixture(parts, weights)
    assert task.evaluate(task.run(mixture)) == task.evaluate(measured)
    hits = SavedRetriever(tmp_path / "m" / "retriever").search(
        [*task.queries.values()], 3
    )
    for of_query, ranked in zip(hits, measured.values(), strict=True):
        scores = [*ranked.values()][:3]
        assert [hit.score for hit in of_query] == pytest.approx(
            scores, abs=1e-6
        )


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
    (Path(tmp_path) / "hybrid.json").write_text('{"towers": -1}')
    with pytest.raises(InputError, match="hybrid.json: towers is -1.* choose"):
        read_hybrid(tmp_path)

"""The table of a teacher: mixtures, hybrids, and their curve."""

import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest

from keras_lstm_dssm import InputError, evaluation
from keras_lstm_dssm.data.sources import open_collection
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.distillation.teacher_vectors import teach
from keras_lstm_dssm.evaluate.hybrid import measure_hybrid
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.papers import baseline_rows
from keras_lstm_dssm.papers.baseline_rows import Baseline
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.run_systems import run_system
from keras_lstm_dssm.papers.table import make_table, run_learning_curve
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.papers.table_iv import FEW_CLICKS, FEW_CLICKS_ROWS
from keras_lstm_dssm.plain_files import read_csv, read_json
from keras_lstm_dssm.settings.fields import HYBRID_PARTS
from keras_lstm_dssm.settings.programs import TableSettings, TitleSettings
from tests.papers.conftest import SMALL, with_recipe

ENCODER = "encoder_of_few_clicks:encode"
NAMES = (
    "bm25", "teacher", "best", "best_bm25_teacher", "words_bm25", "hybrid"
)  # fmt: skip


MODULE = """
import zlib
import numpy as np
def encode(texts):
    vectors = np.full([len(texts), 32], 0.01)
    for vector, text in zip(vectors, texts):
        for word in text.split():
            vector[zlib.crc32(word.encode()) % 32] += 1
    return vectors
"""
"""Encodes a title as the counts of its words' hashes."""


@pytest.fixture(scope="module", autouse=True)
def encoder_module(tmp_path_factory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "encoder_of_few_clicks.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield


@pytest.fixture(scope="module")
def settings(collection_folder, tmp_path_factory) -> TableSettings:
    folder = tmp_path_factory.mktemp("few") / "teach"
    teach(str(collection_folder), ENCODER, folder)
    return TableSettings(
        str(collection_folder), depth=100, dev_evaluations=1,
        dev_mode="retrieve", teacher=str(folder),
    )  # fmt: skip


def small_rows() -> dict:
    recipe = SMALL.replace(epochs=2, negatives="in_batch", batch_size=16)
    rows = {n: r for n, r in FEW_CLICKS_ROWS.items() if n in NAMES}
    neural = {n: r for n, r in rows.items() if isinstance(r.system, Neural)}
    return rows | {n: with_recipe(row, recipe) for n, row in neural.items()}


@pytest.fixture
def in_this_process(monkeypatch) -> None:
    def run(output, rows, settings, seeds, options=None):  # type: ignore
        for name, row in rows.items():
            chosen = (options or {}).get(name)
            run_system(output, name, row, settings, seeds, chosen)
        return {}

    for function in (make_table, run_learning_curve):
        module = sys.modules[function.__module__]
        monkeypatch.setattr(module, "run_systems", run)


@pytest.mark.usefixtures("in_this_process")
def test_table_of_towers_and_their_mixture(settings, tmp_path):
    summary, failed = make_table(
        tmp_path, FEW_CLICKS, small_rows(), settings, 1, (40,)
    )
    assert not failed and list(summary["systems"]) == [
        name for name in FEW_CLICKS_ROWS if name in NAMES
    ]
    assert summary["settings"]["teacher"] == "teach"
    assert summary["dev_measure"] == "mrr@10"
    assert summary["references"] == ["bm25", "best"]

    folder = tmp_path / "systems"
    best = keras.saving.load_model(folder / "best/seed_0/model.keras")
    data = open_data(settings, tmp_path)
    encode = open_outside_encoder(ENCODER)
    bm25 = read_json(folder / "bm25/seed_0/result.json")
    result = read_json(folder / "best_bm25_teacher/seed_0/result.json")
    parts = {
        "best": evaluation.system_of(best),
        "bm25": Baseline().train("bm25", bm25["options"], 0, data).system,
        "teacher": evaluation.DenseSystem(encode, encode),
    }
    chosen = evaluation.choose_weights(parts, data.dev, "mrr@10")
    assert result["dev"]["mrr@10"] == chosen.value
    for name, weight in chosen.weights.items():
        assert result[f"weight_{name}"] == pytest.approx(weight)

    measured = measure_hybrid(
        best,
        open_collection(settings.data),
        TitleSettings(mode="retrieve", hybrid=True, teacher=settings.teacher),
        queries=[query for query, _ in data.examples],
    )
    hybrid, words_bm25 = (
        read_json(folder / name / "seed_0/result.json")
        for name in ("hybrid", "words_bm25")
    )
    found = measured.about["hybrid_settings"]
    assert [hybrid["weight_" + n] for n in HYBRID_PARTS] == pytest.approx(
        [found[name] for name in HYBRID_PARTS]
    )
    assert hybrid["test"]["retrieve"]["mrr@10"] == pytest.approx(
        mean(measured.by_query["hybrid"], ["mrr@10"])["mrr@10"]
    )
    assert "weight_towers" not in words_bm25

    curve = {
        (row["system"], row["pairs"], row["measure"])
        for row in read_csv(tmp_path / "curve.csv")
        if row["mode"] == "retrieve"
    }
    assert {
        ("best_bm25_teacher", "40", "mrr@10"),
        ("best", "120", "mrr@10"),
        ("best", "120", "recall@100"),
    } <= curve
    notes = (tmp_path / "table.md").read_text()
    assert "(teach)" in notes and "paper's" not in notes
    json.dumps(summary)


def test_a_missing_part_or_teacher_is_told_before_any_training(
    settings, collection_folder, tmp_path
):
    row = FEW_CLICKS_ROWS["best_bm25"]
    with pytest.raises(InputError, match="no results of best, a part of this"):
        run_system(tmp_path / "a", "best_bm25", row, settings, 1)
    without = TableSettings(str(collection_folder))
    for name in ("teacher", "hybrid", "best_teacher"):
        rows = {n: FEW_CLICKS_ROWS[n] for n in ("best", name)}
        with pytest.raises(InputError, match="--set teacher is missing"):
            make_table(tmp_path / "table", FEW_CLICKS, rows, without, 1)
    assert not (tmp_path / "table").exists()


def test_weights_are_chosen_on_more_than_ten_titles_of_each_part(
    monkeypatch, settings, tmp_path
):
    """Each part ranks a relevant title eleventh, both together first."""
    cosines = np.full([2, 21], 0.1)
    cosines[0, :10] = cosines[1, 10:20] = 0.6
    cosines[:, 20] = 0.5
    documents = {f"d{number}": f"title {number}" for number in range(21)}
    rows = {title: row for row, title in enumerate(documents.values())}

    def part(number: int) -> evaluation.DenseSystem:
        rest = np.sqrt(1 - cosines[number] ** 2)
        vectors = np.stack([cosines[number], rest], axis=1)
        return evaluation.DenseSystem(
            lambda texts: np.array([[1.0, 0.0]] * len(texts)),
            lambda texts: vectors[[rows[text] for text in texts]],
        )

    monkeypatch.setattr(
        baseline_rows,
        "_part_system",
        lambda name, *_: part(int(name == "bm25")),
    )
    depth = open_data(settings, tmp_path).dev.depth
    dev = evaluation.Task(
        {"q": "words"}, documents, {"q": {"d20": 1}}, depth=depth
    )
    data: Any = SimpleNamespace(dev=dev, dev_measure="mrr@10")
    name = "best_bm25"
    trained = FEW_CLICKS_ROWS[name].system.train(name, {}, 0, data)
    assert isinstance(trained.system, evaluation.Mixture)
    assert trained.system.weights == pytest.approx({"best": 0.5, "bm25": 0.5})
    assert trained.dev == 1

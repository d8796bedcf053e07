from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.benchmarks import retriever
from keras_lstm_dssm.data import open_log
from keras_lstm_dssm.errors import InputError


@pytest.mark.usefixtures("small_towers")
def test_results(collection_folder, monkeypatch):
    # In this process: what it measures then means little, but is all there.
    monkeypatch.setattr(
        retriever,
        "results_of_process",
        lambda _, method, folder, count: retriever.measure_search(
            method, Path(folder), int(count)
        ),
    )
    log = open_log(str(collection_folder))
    results = retriever.measure_retriever(log, 120, 6, 1)
    assert results.keys() == {"float32", "int8", "numpy", "make_seconds"}
    for method in ("float32", "int8", "numpy"):
        for size in ("batch_1", "batch_32"):
            times: dict[str, Any] = results[method][size]
            assert 0 < times["p50_ms"] <= times["p99_ms"]
    assert results["float32"]["recall@10"] == 1
    assert 0.7 < results["int8"]["recall@10"] <= 1
    assert results["int8"]["recall@100"] > 0.9
    ratio = results["numpy"]["batch_1"]["p50_ms"]
    ratio /= results["int8"]["batch_1"]["p50_ms"]
    assert results["int8"]["ratio_numpy"]["batch_1"] == ratio
    # 120 vectors of 16 numbers, less the scales.
    less = (
        results["float32"]["disk_megabytes"] - results["int8"]["disk_megabytes"]
    )
    assert less == pytest.approx(120 * (16 * 3 - 4) / 1e6, rel=0.05)


def test_titles_are_filled_up_with_the_words_of_the_log():
    made = retriever.fill_up_titles(["hex bolt", "wood glue"], 5)
    assert made[:2] == ["hex bolt", "wood glue"]
    assert [len(text.split()) for text in made[2:]] == [8, 8, 8]
    assert {word for text in made[2:] for word in text.split()} <= {
        "hex", "bolt", "wood", "glue",
    }  # fmt: skip
    assert made == retriever.fill_up_titles(["hex bolt", "wood glue"], 5)


def test_too_few_titles(collection_folder):
    log = open_log(str(collection_folder))
    with pytest.raises(InputError, match="--titles_in_index=99: expected 100"):
        retriever.measure_retriever(log, 99, 6, 1)

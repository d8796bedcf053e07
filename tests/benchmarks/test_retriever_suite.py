from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.benchmarks import retriever_suite
from keras_lstm_dssm.benchmarks.retriever_index import index_titles
from keras_lstm_dssm.benchmarks.retriever_run import measure_way, numpy_search
from keras_lstm_dssm.data import open_log
from keras_lstm_dssm.errors import InputError


def test_figures(
    collection_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this process: what it measures then means little, but is all there.
    monkeypatch.setattr(retriever_suite, "_run", measure_way)
    log = open_log(str(collection_folder))
    found = retriever_suite.measure_retriever(log, 120, 6, 1)
    assert found.keys() == {"float32", "int8", "numpy", "make_seconds"}
    for way in ("float32", "int8", "numpy"):
        for size in ("batch_1", "batch_32"):
            times: dict[str, Any] = found[way][size]
            assert 0 < times["p50_ms"] <= times["p99_ms"]
    assert found["float32"]["recall@10"] == 1
    assert 0.7 < found["int8"]["recall@10"] <= 1
    assert found["int8"]["recall@100"] > 0.9
    ratio = found["numpy"]["batch_1"]["p50_ms"]
    ratio /= found["int8"]["batch_1"]["p50_ms"]
    assert found["int8"]["ratio_numpy"]["batch_1"] == ratio
    # 120 vectors of 96 numbers, less the scales.
    less = found["float32"]["disk_megabytes"] - found["int8"]["disk_megabytes"]
    assert less == pytest.approx(120 * (96 * 3 - 4) / 1e6, rel=0.05)


def test_numpy_search() -> None:
    rng = np.random.default_rng(1)
    vectors, titles = rng.normal(size=(3, 5)), rng.normal(size=(40, 5))
    scores, rows = numpy_search(vectors, titles, 7)
    wanted = np.argsort(-(vectors @ titles.T), axis=1)[:, :7]
    np.testing.assert_array_equal(rows, wanted)
    np.testing.assert_allclose(
        scores, np.take_along_axis(vectors @ titles.T, wanted, axis=1)
    )


def test_titles_are_filled_up_with_the_words_of_the_known() -> None:
    made = index_titles(["hex bolt", "wood glue"], 5)
    assert made[:2] == ["hex bolt", "wood glue"]
    assert [len(text.split()) for text in made[2:]] == [8, 8, 8]
    assert {word for text in made[2:] for word in text.split()} <= {
        "hex", "bolt", "wood", "glue",
    }  # fmt: skip
    assert made == index_titles(["hex bolt", "wood glue"], 5)


def test_too_few_titles(collection_folder: Path) -> None:
    log = open_log(str(collection_folder))
    with pytest.raises(InputError, match="--titles_in_index=99: expected 100"):
        retriever_suite.measure_retriever(log, 99, 6, 1)

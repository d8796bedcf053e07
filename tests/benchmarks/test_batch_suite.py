import pytest

from keras_lstm_dssm.benchmarks import batch_suite


def test_figures_of_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_suite, "_CALLS", 1)
    found = batch_suite.measure_batches(
        ["hex bolt", "wood glue"], ["steel hex bolt", "interior wood glue"], 1
    )
    assert list(found) == ["query_encoder", "retriever"]
    for figures in found.values():
        assert list(figures) == ["rows_1", "rows_8", "rows_64", "rows_512"]
        for name, one in figures.items():
            rows = int(name.split("_")[1])
            assert one["ms"] > 0
            assert one["rows_per_second"] == pytest.approx(
                1000 * rows / one["ms"]
            )

import pytest

from keras_lstm_dssm.benchmarks import request_suites


@pytest.mark.usefixtures("small_towers")
def test_figures_of_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_suites, "_CALLS", 1)
    figures = request_suites.measure_batches(
        ["hex bolt", "wood glue"], ["steel hex bolt", "interior wood glue"], 1
    )
    assert list(figures) == ["query_encoder", "retriever"]
    for sizes in figures.values():
        assert list(sizes) == ["rows_1", "rows_8", "rows_64", "rows_512"]
        for name, each in sizes.items():
            rows = int(name.split("_")[1])
            assert each["ms"] > 0
            assert each["rows_per_second"] == pytest.approx(
                1000 * rows / each["ms"]
            )

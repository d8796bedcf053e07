"""The model of many workers, on numbers that can be added by hand."""

import pytest

from keras_lstm_dssm.benchmarks.worker_model import Step

STEP = Step(
    workers=2, rows=100, titles=150, width=10, trained=4, table_rows=50,
    units=8, dense=600, sets=1000,
)  # fmt: skip


def test_two_workers() -> None:
    """Predicts a network of 1,000 bytes a second, without latency."""
    keys = 1000 + 12 * 100
    vectors = 4 * 10 * 150 / 2
    errors = 4 * 4 * 150 / 2
    gradients = 4 * (8 * 50 + 600)
    expected = (keys + vectors + errors + gradients) / 1000
    assert STEP.network_seconds(0.0, 1e3) == pytest.approx(expected)
    # A gather and another, the exchange, and the sum's two rounds.
    assert STEP.network_seconds(1.0, 1e30) == pytest.approx(5.0)


def test_more_workers() -> None:
    many = STEP._replace(workers=11)
    assert STEP._replace(workers=1).network_seconds(1.0, 1.0) == 0
    assert many.network_seconds(1.0, 1e30) == pytest.approx(4 * 10 + 1)
    # Cosines with 1,350 more titles, and 50 more rows.
    more = many._replace(titles=1500, table_rows=100)
    seconds = more.extra_seconds(STEP, flops=1e6, row_seconds=0.01)
    assert seconds == pytest.approx(6 * 100 * 10 * 1350 / 1e6 + 0.5)

"""The model of training and serving on many machines (docs/scaling.md).

Its predictions for one and two workers are compared with measurements.
"""

import pytest

from keras_lstm_dssm.benchmarks import capacity as model


@pytest.mark.parametrize(
    ("kind", "rows", "megabytes"),
    [
        ("float32", 1_000_000, 455),
        ("int8", 1_000_000, 171),
        ("HNSW32", 53_489, 35.1),
        ("HNSW32_SQ8", 53_489, 19.7),
    ],
)
def test_bytes_on_disk(kind, rows, megabytes):
    """Compares with docs/serving.md; retrievers include an encoder's table."""
    encoder = 0 if kind.startswith("HNSW") else 4 * 50_653 * 288
    found = (rows * model.title_bytes(96, kind) + encoder) / 1e6
    assert found == pytest.approx(megabytes, rel=0.04)


def test_more_workers_wait_longer():
    figures = {
        "rows": 2048, "latency": 1e-3, "bandwidth": 1e9, "step_bytes": 1e8,
    }  # fmt: skip
    one, two, many = (
        model.training(n, pairs_a_second=10_240, **figures) for n in (1, 2, 50)
    )
    assert (one.seconds, one.ideal, one.sent) == (0.2, 1, 0)
    assert two.seconds == pytest.approx(0.2 + 4e-3 + 0.1)
    assert many.seconds == pytest.approx(0.2 + 4 * 49e-3 + 0.1)
    enough = model.workers_for(100_000, one=10_240, **figures)
    assert enough and enough.workers == 18
    assert model.workers_for(1e9, one=10_240, **figures) is None


def test_the_program(capsys):
    assert model.run(["model", "--titles=1e6", "--queries_a_second=100"]) == 0
    printed = capsys.readouterr().out
    assert "index: shards" in printed and "training: workers" in printed

"""The model of many workers, on numbers that can be added by hand."""

import json

import pytest

from keras_lstm_dssm import Recipe
from keras_lstm_dssm.benchmarks import worker_model
from keras_lstm_dssm.benchmarks.worker_model import Step

STEP = Step(
    workers=2, rows=100, titles=150, width=10, trained=4, table_rows=50,
    units=8, dense=600, sets=1000,
)  # fmt: skip


def test_two_workers():
    """Predicts a network of 1,000 bytes a second, without latency."""
    keys = 1000 + 12 * 100
    vectors = 4 * 10 * 150 / 2
    errors = 4 * 4 * 150 / 2
    gradients = 4 * (8 * 50 + 600)
    expected = (keys + vectors + errors + gradients) / 1000
    assert STEP.network_seconds(0.0, 1e3) == pytest.approx(expected)
    # A gather and another, the exchange, and the sum's two rounds.
    assert STEP.network_seconds(1.0, 1e30) == pytest.approx(5.0)


def test_more_workers():
    many = STEP._replace(workers=11)
    assert STEP._replace(workers=1).network_seconds(1.0, 1.0) == 0
    assert many.network_seconds(1.0, 1e30) == pytest.approx(4 * 10 + 1)
    # Cosines with 1,350 more titles, and 50 more rows.
    more = many._replace(titles=1500, table_rows=100)
    seconds = more.extra_seconds(STEP, flops=1e6, row_seconds=0.01)
    assert seconds == pytest.approx(6 * 100 * 10 * 1350 / 1e6 + 0.5)


def test_steps_of_a_log(tmp_path, monkeypatch, capsys):
    """Counts titles and table rows in a step of two workers on four clicks."""
    log, output = tmp_path / "clicks.tsv", tmp_path / "out.json"
    log.write_text("ab\tcd\nab\tcd\nab\tef\nab\tef\n")
    recipe = Recipe("DSSMEncoder", {"units": [3, 2]})
    monkeypatch.setitem(worker_model.PRESETS, "small", recipe)
    code = worker_model.run(
        ["worker_model", f"--data={log}", f"--json={output}",
         "--preset=small", "--rows=2", "--workers=2", "--step_seconds=0.5",
         "--latency=0.25", "--bandwidth=1e30", "--gigaflops=1e30",
         "--row_seconds=0"]
    )  # fmt: skip
    assert code == 0
    (two,) = json.loads(output.read_text()).values()
    # Trigrams `#ab`, `ab#` of queries; `#cd`, `cd#`, `#ef`, `ef#` of titles.
    assert (two["titles"], two["table_rows"]) == (2, 6)
    assert (two["workers"], two["rows"]) == (2, 2)
    assert (two["width"], two["units"]) == (2, 3)
    # The second layer of both towers; the first is the tables.
    assert two["dense"] == 2 * (3 * 2 + 2)
    # Five messages one after the other, and no time for anything else.
    assert two["seconds"] == pytest.approx(0.5 + 5 * 0.25)
    assert two["pairs_per_second"] == pytest.approx(4 / 1.75)
    assert two["of_ideal"] == pytest.approx(0.5 / 1.75)
    assert "workers  step s  network s  pairs/s" in capsys.readouterr().out

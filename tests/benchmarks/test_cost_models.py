"""The models of what work costs, on numbers that can be added by hand.

Those of many machines (docs/scaling.md) are compared with measurements, too.
"""

import json

import pytest
import tensorflow as tf

from keras_lstm_dssm import Recipe
from keras_lstm_dssm.benchmarks import capacity, worker_model
from keras_lstm_dssm.benchmarks.machine import StepWork, step_work, tower_work
from keras_lstm_dssm.text.word_batch import distinct_words

AMD = {"read_bandwidth": 22e9, "flops": 216e9}
"""The machine of docs/serving.md: 44 GB/s in copies, which read and write."""


@pytest.mark.parametrize(("queries", "measured"), [(1, 17.6e-3), (32, 131e-3)])
def test_exact_search_of_a_million_titles(queries, measured):
    """Compares with the seconds in docs/serving.md, "Large retrievers"."""
    found = capacity.exact_seconds(1e6, 96, queries, **AMD)
    assert found == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize(
    ("kind", "rows", "encoder", "megabytes"),
    [
        ("float32", 1_000_000, 50_653, 455),
        ("int8", 1_000_000, 50_653, 171),
        ("HNSW32", 53_489, 0, 35.1),
        ("HNSW32_SQ8", 53_489, 0, 19.7),
    ],
)
def test_bytes_on_disk(kind, rows, encoder, megabytes):
    """Compares with docs/serving.md; retrievers include an encoder's table."""
    found = rows * capacity.title_bytes(96, kind) + 4 * encoder * 288
    assert found / 1e6 == pytest.approx(megabytes, rel=0.04)


def test_more_workers_wait_longer():
    figures = {
        "rows": 2048, "latency": 1e-3, "bandwidth": 1e9, "step_bytes": 1e8,
    }  # fmt: skip
    one, two, many = (
        capacity.training(n, pairs_a_second=10_240, **figures)
        for n in (1, 2, 50)
    )
    assert (one.seconds, one.ideal, one.sent) == (0.2, 1, 0)
    assert two.seconds == pytest.approx(0.2 + 4e-3 + 0.1)
    assert many.seconds == pytest.approx(0.2 + 4 * 49e-3 + 0.1)
    enough = capacity.workers_for(100_000, one=10_240, **figures)
    assert enough and enough.workers == 18
    assert capacity.workers_for(1e9, one=10_240, **figures) is None


def test_the_program(capsys):
    flags = ["--titles=1e6", "--queries_a_second=100"]
    assert capacity.run(["model", *flags]) == 0
    printed = capsys.readouterr().out
    assert "index: shards" in printed and "training: workers" in printed


STEP = worker_model.Step(
    workers=2, rows=100, titles=150, width=10, trained=4, table_rows=50,
    units=8, dense=600, sets=1000,
)  # fmt: skip


def test_a_step_of_two_workers():
    """Predicts a network of 1,000 bytes a second, without latency."""
    keys = 1000 + 12 * 100
    vectors = 4 * 10 * 150 / 2
    errors = 4 * 4 * 150 / 2
    gradients = 4 * (8 * 50 + 600)
    expected = (keys + vectors + errors + gradients) / 1000
    assert STEP.network_seconds(0.0, 1e3) == pytest.approx(expected)
    # A gather and another, the exchange, and the sum's two rounds.
    assert STEP.network_seconds(1.0, 1e30) == pytest.approx(5.0)


def test_a_step_of_more_workers():
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
    expected = {
        "workers": 2, "rows": 2, "width": 2, "units": 3,
        # Trigrams `#ab`, `ab#` of queries; `#cd`, `cd#`, `#ef`, `ef#`.
        "titles": 2, "table_rows": 6,
        # The second layer of both towers; the first is the tables.
        "dense": 2 * (3 * 2 + 2),
        # Five messages one after the other, and no time for anything else.
        "seconds": 0.5 + 5 * 0.25, "pairs_per_second": 4 / 1.75,
        "of_ideal": 0.5 / 1.75,
    }  # fmt: skip
    assert {name: two[name] for name in expected} == pytest.approx(expected)
    assert "workers  step s  network s  pairs/s" in capsys.readouterr().out


def test_a_tower_by_hand():
    # Distinct texts "ab c" and "c": 3 words in all, 2 distinct ones, and the
    # trigrams #ab, ab#, #c#.
    words = distinct_words(tf.constant(["ab c", "c", "ab c"]))
    work = tower_work(words, cells=10, gates=3)
    assert work.flops == 3 * 2 * 3 * 10 * 30  # three products, 3 words
    floats = 6 * 3 * 30 + 4 * 2 * 30 + 4 * 3 * 30 + 2 * 3 * (30 + 20)
    assert work.bytes == 4 * floats


def test_a_step_adds_the_cosines():
    query = distinct_words(tf.constant(["a", "b", "a"]))
    document = distinct_words(tf.constant(["x", "y", "x"]))
    towers = [tower_work(words, 10, 3) for words in (query, document)]
    work = step_work(query, document, 10, 3)
    # 3 queries by 2 distinct documents.
    assert work.flops == sum(t.flops for t in towers) + 3 * 2 * 3 * 2 * 10
    assert work.bytes == sum(t.bytes for t in towers) + 6 * 3 * 2 * 4
    # Seconds of products and of memory are added.
    assert StepWork(flops=100, bytes=30).seconds(50.0, 10.0) == 5.0

"""The models of what work costs, on numbers that can be added by hand.

Those of many machines (docs/scaling.md) are compared with measurements, too.
"""

import pytest
import tensorflow as tf

from benchmarks import capacity
from benchmarks.machine import StepWork, step_work, tower_work
from keras_lstm_dssm.text.word_batch import distinct_words


@pytest.mark.parametrize(("kind", "rows", "encoder", "megabytes"), [
    ("float32", 1_000_000, 50_653, 455), ("int8", 1_000_000, 50_653, 171),
    ("HNSW32", 53_489, 0, 35.1), ("HNSW32_SQ8", 53_489, 0, 19.7),
])  # fmt: skip
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

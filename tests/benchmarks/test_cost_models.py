"""The models of what work costs, on numbers that can be added by hand."""

import tensorflow as tf

from benchmarks.machine import StepWork, step_work, tower_work
from keras_lstm_dssm.text.word_hashing import distinct_words


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

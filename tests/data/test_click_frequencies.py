import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickFrequencies,
    ClickLog,
    GivenNegatives,
    batches,
)

TITLES = ["lamp", "lamp", "naïve lamp", "lamp", "rope"]


def test_the_log_of_each_titles_share():
    found = ClickFrequencies(TITLES)(tf.constant([["lamp", "naïve lamp"]]))
    np.testing.assert_allclose(found, [[np.log(3 / 5), np.log(1 / 5)]], 1e-6)


def test_titles_of_the_same_words_are_one():
    titles = ["Hex bolt", "HEX  BOLT", "hex-bolt", "glue"]
    asked = tf.constant(["hex bolt"])
    for split, share in (("space", 1 / 2), ("alphanumeric", 3 / 4)):
        found = ClickFrequencies(titles, split=split)(asked)
        np.testing.assert_allclose(found, [np.log(share)], 1e-6)


def test_a_title_without_a_click_counts_as_half_a_one():
    found = ClickFrequencies(TITLES)(tf.constant(["never clicked"]))
    np.testing.assert_allclose(found, [np.log(0.1)], 1e-6)


def test_counting_in_parts(monkeypatch):
    whole = ClickFrequencies(TITLES, 64)
    monkeypatch.setattr(batches, "_TITLES_AT_ONCE", 2)
    np.testing.assert_array_equal(
        ClickFrequencies(iter(TITLES), 64).log_q, whole.log_q
    )


def test_batches_of_a_log_with_negatives(tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"q\t{title}\n" for title in TITLES))
    frequencies = ClickFrequencies.from_log(ClickLog(path))
    pairs = tf.data.Dataset.from_tensors((["q", "q"], ["lamp", "rope"]))
    (plain,) = frequencies.attach(pairs)
    np.testing.assert_allclose(plain[2]["log_q"], np.log([[0.6], [0.2]]), 1e-6)
    given = GivenNegatives({"q": ["new"]}, 2)
    ((_, _, extras),) = frequencies.attach(given.attach(pairs))
    assert set(extras) == {"negatives", "log_q"}
    np.testing.assert_allclose(
        extras["log_q"], np.log([[0.6, 0.1, 0.1], [0.2, 0.1, 0.1]]), 1e-6
    )

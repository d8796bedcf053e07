import math

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import WordSketch
from keras_lstm_dssm.text.word_hashing import distinct_words

TITLES = ["steel hex bolt", "steel bolt kit", "wood glue", "steel"]


def rows(sketch: WordSketch, words: list[str]) -> np.ndarray:
    return sketch(distinct_words(tf.constant(words, tf.string))).numpy()


def adapted(units: int, **arguments: int) -> WordSketch:
    sketch = WordSketch(units, **arguments)
    batches = [TITLES[:3], TITLES[3:]]
    sketch.adapt(distinct_words(tf.constant(batch)) for batch in batches)
    return sketch


def idf(texts: int) -> float:
    return math.log(1 + (len(TITLES) - texts + 0.5) / (texts + 0.5))


def test_inner_products_are_those_of_words_and_their_starts():
    """Square length idf(word) + idf(start); shared starts are shared."""
    units = 4000
    products = rows(
        adapted(units), ["steel", "hex", "bolt", "bolts", "glue", "steep"]
    )
    products = products @ products.T / units
    many, one, two, none = idf(3), idf(1), idf(2), idf(0)
    expected = np.diag(
        [many * 2, one * 2, two * 2, none + two, one * 2, none + many]
    )
    expected[2, 3] = expected[3, 2] = two  # bolt, bolts
    expected[0, 5] = expected[5, 0] = many  # steel, steep
    np.testing.assert_allclose(products, expected, atol=0.1)


def test_all_words_have_the_weight_1_before_adapting():
    np.testing.assert_array_equal(
        np.unique(rows(WordSketch(64), ["steel", "hex"])), [-2, 0, 2]
    )


def test_length_of_the_start():
    def shared(start: int) -> np.ndarray:
        one, other = rows(WordSketch(4096, start=start), ["bolting", "bolder"])
        return one @ other / 4096

    assert shared(2) == pytest.approx(1, abs=0.15)  # bol
    assert shared(3) == pytest.approx(0, abs=0.15)  # bolt, bold


def test_rows_depend_on_the_word_and_the_seed_alone():
    one, other = adapted(32), adapted(32)
    together = rows(one, ["hex", "steel"])
    np.testing.assert_array_equal(together[1:], rows(other, ["steel"]))
    assert (rows(adapted(32, seed=1), ["steel"]) != together[1]).any()


def test_different_words_have_different_rows():
    words = [
        f"{a}{b}{n}" for a in "abcdefgh" for b in "xyz" for n in range(400)
    ]
    signs = np.sign(rows(WordSketch(128), words))
    assert len(np.unique(signs, axis=0)) == len(words)
    # Both signs are equally frequent, and the columns are not correlated.
    assert abs(signs.mean(axis=0)).max() < 0.1
    products = signs.T @ signs / len(words)
    assert abs(products - np.diag(np.diag(products))).max() < 0.1


def test_of_no_words_there_are_no_rows():
    assert rows(WordSketch(8), []).shape == (0, 8)

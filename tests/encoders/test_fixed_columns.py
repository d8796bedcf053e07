"""`UntrainedColumnCache` gives the columns that the encoder itself computes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import CombinedEncoder
from keras_lstm_dssm.encoders.combined_encoder import UntrainedColumnCache
from keras_lstm_dssm.text import WordBatch

TITLES = ["steel hex bolt", "Hex bolt", "wood glue 8 oz", "", "hex  BOLT", "#"]
BATCHES = [
    ["hex bolt", "wood glue 8 oz", "hex bolt"],
    ["wood glue 8 oz", "a new one", "steel hex bolt", ""],
    TITLES[::-1],
    [],
]


def encoder_of(dtype: str = "float32") -> CombinedEncoder:
    encoder = CombinedEncoder(2, 3, 31, length_norm=0.5, dtype=dtype)
    encoder.adapt(TITLES)
    return encoder


def columns_of(
    encoder: CombinedEncoder, texts: int = 100
) -> UntrainedColumnCache:
    row = 32 * np.dtype(encoder.compute_dtype).itemsize
    columns = UntrainedColumnCache(
        encoder, encoder.trigrams.cache(), texts * row
    )
    columns.clear_if_stale()
    return columns


def check(batch: WordBatch, encoder: CombinedEncoder, texts: list[str]) -> None:
    """Asserts that all fields are those of a batch hashed without a cache."""
    plain = encoder.trigrams.distinct(tf.constant(texts, tf.string))
    for field, expected in zip(batch[:6], plain[:6], strict=True):
        np.testing.assert_array_equal(field, expected)
    np.testing.assert_array_equal(
        batch.trigram_order, tf.argsort(plain.trigram_index, stable=True)
    )
    assert batch.untrained is not None
    assert batch.untrained.dtype == encoder.compute_dtype
    error = 1e-6 if encoder.compute_dtype == "float32" else 1e-14
    np.testing.assert_allclose(
        encoder.compose(batch), encoder.compose(plain), atol=error
    )
    np.testing.assert_array_equal(encoder.blocks(batch)[1], batch.untrained)
    np.testing.assert_array_equal(
        encoder.compose(batch)[:, encoder.cells + encoder.bag :],
        batch.untrained,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("texts", [0, 3, 100])
def test_equal_the_encoders(dtype, texts):
    """Also if the cache is too small for all texts, or for any."""
    encoder = encoder_of(dtype)
    columns = columns_of(encoder, texts)
    for _ in range(2):
        for batch in BATCHES:
            strings = tf.constant(batch, tf.string)
            check(columns.distinct(strings), encoder, batch)


def test_are_computed_once(monkeypatch):
    encoder = encoder_of()
    columns = columns_of(encoder)
    columns.distinct(tf.constant(TITLES))
    monkeypatch.setattr(columns, "_compute", None)
    check(columns.distinct(tf.constant(TITLES[::-1])), encoder, TITLES[::-1])


def test_a_full_cache_stores_no_more():
    """Only the texts that are not in the cache are computed again."""
    encoder = encoder_of()
    columns = columns_of(encoder, texts=3)
    texts = [f"bolt x{number}" for number in range(8)]
    columns.distinct(tf.constant(texts[:2]))
    columns.distinct(tf.constant(texts))
    assert columns._stored == 3
    computed: list[int] = []
    compute = columns._compute

    def counted(*fields: tf.Tensor) -> tf.Tensor:
        computed.append(len(fields[4]))
        return compute(*fields)

    columns._compute = counted
    for _ in range(2):
        check(columns.distinct(tf.constant(texts)), encoder, texts)
    assert computed == [5, 5]


def test_are_forgotten_when_the_weights_change():
    encoder = encoder_of()
    columns = columns_of(encoder)
    old = columns.distinct(tf.constant(TITLES)).untrained
    encoder.adapt([*TITLES, "hex nut", "hex key"])
    columns.clear_if_stale()
    batch = columns.distinct(tf.constant(TITLES))
    check(batch, encoder, TITLES)
    assert np.abs(batch.untrained - old).max() > 1e-3


def test_have_the_same_bits_in_every_batch():
    """A resumed run caches texts in another order, and must not differ."""
    encoder = encoder_of()
    texts = [f"bolt {n % 7} x{n * n % 11}" for n in range(77)]
    untrained = columns_of(encoder).distinct(tf.constant(texts))
    expected = tf.gather(untrained.untrained, untrained.text_index).numpy()
    for size in (1, 3, 16, 40):
        columns = columns_of(encoder)
        for start in range(0, len(texts), size):
            part = columns.distinct(tf.constant(texts[start:][:size]))
            np.testing.assert_array_equal(
                tf.gather(part.untrained, part.text_index),
                expected[start:][:size],
            )


def test_several_threads_fill_one_cache():
    encoder = encoder_of()
    columns = columns_of(encoder)
    batches = [
        [f"bolt {n % 7} x{n * m % 11}" for n in range(40)] for m in range(12)
    ]
    with ThreadPoolExecutor(4) as pool:
        hashed = list(
            pool.map(lambda b: columns.distinct(tf.constant(b)), batches)
        )
    for batch, texts in zip(hashed, batches, strict=True):
        check(batch, encoder, texts)

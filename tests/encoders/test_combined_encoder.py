"""`CombinedEncoder`: `adapt`, `length_norm`, and columns that are cached."""

import functools
from concurrent.futures import ThreadPoolExecutor

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import CombinedEncoder, TwoTower
from keras_lstm_dssm.encoders.combined_encoder import UntrainedColumnCache
from keras_lstm_dssm.text import WordBatch
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from tests.encoders.small import small_encoder
from tests.kit.equal import check_equal

TITLES = [f"{'word ' * number}bolt{number}" for number in range(41)]
SKETCH = slice(4, 4 + 63)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_sketch_keeps_its_length_to_the_power(power):
    encoder = CombinedEncoder(2, 2, 63, length_norm=power)
    encoder.adapt(TITLES, batch_size=7)
    words = encoder.trigrams.distinct(TITLES)
    (sketch,) = encoder.untrained
    sketches = sketch.compose(words)
    raw = np.linalg.norm(tf.gather(sketches, words.text_index), axis=1)
    long = np.percentile(raw, 95) if power < 1 else 1  # unused by a cosine
    assert float(encoder.long) == pytest.approx(long, rel=1e-6)
    vectors = encoder(TITLES).numpy()
    np.testing.assert_allclose(
        np.linalg.norm(3**0.5 * vectors[:, SKETCH], axis=1),
        np.minimum(raw / long, 1) ** (1 - power),
        rtol=1e-5,
    )
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_a_long_title_loses_less_of_the_words_it_shares():
    titles = ["bolt", "bolt a b c d e f g"]  # 1 and 8 words of equal weight
    query = CombinedEncoder(2, 2)(["bolt"])[0].numpy()
    assert query[-1] == 0  # so the last number of a document adds nothing
    ratio = {}
    for power in (1.0, 0.0):
        encoder = CombinedEncoder(2, 2, length_norm=power)
        encoder.long.assign(np.sqrt(8 * 2 * 511))  # 2 x 511 signs per word
        short, long = encoder(titles).numpy()[:, 4:] @ query[4:]
        ratio[power] = long / short
    assert ratio[1.0] == pytest.approx(8**-0.5, abs=0.1)
    assert ratio[0.0] == pytest.approx(1, abs=0.3)


def test_needs_adapt_until_adapted_also_by_weights(tmp_path):
    query, document = (CombinedEncoder(2, 2, 3, length_norm=p) for p in (1, 0))
    assert query.needs_adapt and document.needs_adapt
    query.adapt(TITLES)
    assert not query.needs_adapt
    document.set_weights(query.get_weights())
    assert document.needs_adapt  # the query encoder has not set `long`
    document.adapt(TITLES)
    assert not document.needs_adapt

    document.save(tmp_path / "document.keras")
    assert not keras.saving.load_model(tmp_path / "document.keras").needs_adapt
    clone = keras.models.clone_model(document)
    assert clone.needs_adapt  # a clone has new weights
    clone.set_weights(document.get_weights())
    assert not clone.needs_adapt


WEIGHTS = {
    "long": "vars/0",
    "embedding/table": "embedding/vars/0",
    "lstm/cell/recurrent_kernel": "lstm/cell/vars/0",
    "lstm/cell/bias": "lstm/cell/vars/1",
    "of_words/keys": "word_rows/of_words/vars/0",
    "of_words/codes": "word_rows/of_words/vars/1",
    "of_words/scales": "word_rows/of_words/vars/2",
    "of_trigrams/keys": "word_rows/of_trigrams/vars/0",
    "of_trigrams/codes": "word_rows/of_trigrams/vars/1",
    "of_trigrams/scales": "word_rows/of_trigrams/vars/2",
    "bag_embedding/table": "bag_embedding/vars/0",
    "word_sketch/signs_0": "word_sketch/vars/0",
    "word_sketch/signs_1": "word_sketch/vars/1",
    "word_sketch/word_weight": "word_sketch/vars/2",
}
"""The weights in their order, and their places in a file."""


def test_weights_are_where_saved_models_have_them(tmp_path):
    encoder = small_encoder("combined_words")
    assert [
        weight.path.removeprefix(f"{encoder.name}/")
        for weight in encoder.weights
    ] == list(WEIGHTS)
    with h5py.File(tmp_path / "whole.weights.h5", "w") as file:
        for place, weight in zip(
            WEIGHTS.values(), encoder.weights, strict=True
        ):
            file[place] = weight.numpy()
    loaded = CombinedEncoder.from_config(encoder.get_config())
    loaded.load_weights(tmp_path / "whole.weights.h5")
    check_equal(loaded, encoder)
    np.testing.assert_array_equal(loaded.encode(TEXTS), encoder.encode(TEXTS))


class Negative(CombinedEncoder):
    """A user's subclass, which composes the vectors in another way."""

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        return -super().compose(words, training)


def test_a_subclass_with_other_vectors_has_one_part():
    encoder = Negative(2, 2, 3, shares=[1, 1, 1, 1])
    parts = HybridParts.of(TwoTower(encoder, encoder))
    assert list(parts.query) == ["towers"]
    query, _ = parts.encoders({"towers": 1.0})
    vectors = encoder.encode(["bolt"])
    np.testing.assert_allclose(query.encode(["bolt"]), vectors, atol=1e-6)
    cache = encoder.trigrams.cache()
    assert encoder.training_cache(cache) is cache


TEXTS = ["steel hex bolt", "Hex bolt", "wood glue 8 oz", "", "hex  BOLT", "#"]
BATCHES = [
    ["hex bolt", "wood glue 8 oz", "hex bolt"],
    ["wood glue 8 oz", "a new one", "steel hex bolt", ""], TEXTS[::-1], [],
]  # fmt: skip


def encoder_of(dtype: str = "float32") -> CombinedEncoder:
    encoder = CombinedEncoder(2, 3, 31, length_norm=0.5, dtype=dtype)
    encoder.adapt(TEXTS)
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
def test_cached_columns_are_those_of_the_encoder(dtype, texts):
    """Also if the cache is too small for all texts, or for any."""
    encoder = encoder_of(dtype)
    columns = columns_of(encoder, texts)
    for _ in range(2):
        for batch in BATCHES:
            strings = tf.constant(batch, tf.string)
            check(columns.distinct(strings), encoder, batch)


def test_columns_are_computed_once_until_the_cache_is_full():
    """Only the texts that are not in the cache are computed again."""
    encoder = encoder_of()
    columns = columns_of(encoder, texts=3)
    texts = [f"bolt x{number}" for number in range(8)]
    computed: list[int] = []
    compute = columns._compute

    def counted(*fields: tf.Tensor) -> tf.Tensor:
        computed.append(len(fields[4]))
        return compute(*fields)

    columns._compute = counted
    for batch in (texts[:2], texts[:2], texts, texts, texts):
        check(columns.distinct(tf.constant(batch)), encoder, batch)
    assert len(columns._row_of_text) == 3
    assert computed == [2, 6, 5, 5]


@pytest.mark.parametrize(("new_encoder", "change"), [
    (encoder_of, lambda encoder: encoder.adapt([*TEXTS, "hex nut", "hex key"])),
    (functools.partial(small_encoder, "combined_words"),
     lambda encoder: encoder.word_rows.of_words.scales.assign([0.0] * 4)),
], ids=["the word weights", "the fitted words"])  # fmt: skip
def test_columns_are_forgotten_when_the_weights_change(new_encoder, change):
    encoder = new_encoder()
    columns = UntrainedColumnCache(encoder, encoder.trigrams.cache())
    columns.clear_if_stale()
    old = columns.distinct(tf.constant(TEXTS)).untrained
    change(encoder)
    columns.clear_if_stale()
    batch = columns.distinct(tf.constant(TEXTS))
    check(batch, encoder, TEXTS)
    assert np.abs(batch.untrained - old).max() > 1e-3


def test_columns_have_the_same_bits_in_every_batch():
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


def test_several_threads_fill_one_cache_of_columns():
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

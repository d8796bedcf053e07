"""`CombinedEncoder.adapt` and `length_norm`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import CombinedEncoder, InputError

TITLES = [f"{'word ' * number}bolt{number}" for number in range(41)]
SKETCH = slice(4, 4 + 63)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_sketch_keeps_its_length_to_the_power(power):
    encoder = CombinedEncoder(2, 2, 63, length_norm=power)
    encoder.adapt(TITLES, batch_size=7)
    words = encoder.trigrams.distinct(TITLES)
    sketches = encoder.sum_untrained(words)
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


def test_length_norm_out_of_range():
    with pytest.raises(InputError, match="length_norm must be from 0 to 1"):
        CombinedEncoder(2, 2, 63, length_norm=1.5)

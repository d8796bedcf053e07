"""What a long title loses: `length_norm`, learnt from the titles."""

import pathlib

import keras
import numpy as np
import pytest

from keras_lstm_dssm import CombinedEncoder, InputError

TITLES = [f"{'word ' * place}bolt{place}" for place in range(41)]
SKETCH = slice(4, 4 + 63)


def encoder(length_norm: float) -> CombinedEncoder:
    made = CombinedEncoder(2, 2, 63, length_norm=length_norm)
    made.adapt(TITLES, batch_size=7)
    return made


def lengths(found: np.ndarray) -> np.ndarray:
    return np.linalg.norm(3**0.5 * found[:, SKETCH], axis=1)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_sketch_keeps_its_length_to_the_power(power: float) -> None:
    ours = encoder(power)
    raw = np.concatenate(
        [
            np.linalg.norm(ours._sum_sketches(words, *words.flat()), axis=1)
            for words in map(ours.trigrams.distinct, [[t] for t in TITLES])
        ]
    )
    # A cosine does not ask what is long.
    long = np.percentile(raw, 95) if power < 1 else 1
    assert float(ours.long) == pytest.approx(long, rel=1e-6)
    vectors = ours.encode(TITLES)
    np.testing.assert_allclose(
        lengths(vectors), np.minimum(raw / long, 1) ** (1 - power), rtol=1e-5
    )
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_a_long_title_loses_less_of_the_words_it_shares() -> None:
    titles = ["bolt", "bolt a b c d e f g"]  # 1 and 8 words of one weight
    ratio = {}
    for power in (1.0, 0.0):
        query, document = (
            CombinedEncoder(2, 2),
            CombinedEncoder(2, 2, length_norm=power),
        )
        document.long.assign(np.sqrt(8 * 2 * 511))  # of 2 x 511 signs a word
        (y,), z = query.encode(["bolt"]), document.encode(titles)
        assert y[-1] == 0  # so that what fills a document up adds nothing
        short, long = z[:, 4:] @ y[4:]
        ratio[power] = long / short
    assert ratio[1.0] == pytest.approx(8**-0.5, abs=0.1)
    assert ratio[0.0] == pytest.approx(1, abs=0.3)


def test_needs_adapt_until_adapted_also_by_weights(
    tmp_path: pathlib.Path,
) -> None:
    query, document = (CombinedEncoder(2, 2, 3, length_norm=p) for p in (1, 0))
    assert query.needs_adapt and document.needs_adapt
    query.adapt(TITLES)
    assert not query.needs_adapt
    document.set_weights(query.get_weights())
    assert document.needs_adapt  # a query encoder has no length of titles
    document.adapt(TITLES)
    assert not document.needs_adapt

    document.save(tmp_path / "document.keras")
    assert not keras.saving.load_model(tmp_path / "document.keras").needs_adapt
    clone = keras.models.clone_model(document)
    assert clone.needs_adapt  # a clone has new weights
    clone.set_weights(document.get_weights())
    assert not clone.needs_adapt


def test_a_power_out_of_range() -> None:
    with pytest.raises(InputError, match="length_norm must be from 0 to 1"):
        CombinedEncoder(2, 2, 63, length_norm=1.5)

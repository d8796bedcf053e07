"""Training under `tf.distribute`, with one replica."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.kit.equal import check_equal
from tests.training.small_models import small_best, small_keyvec, small_scorer
from tests.training.small_trainings import QUICK, StopAt

TEXTS = ["a b", "b c", "c d", "d e", "e a"]
TITLES = [text[::-1] for text in TEXTS]


def one_replica() -> Any:
    """The scope of the strategy that a machine with one GPU gets."""
    return tf.distribute.MirroredStrategy(["CPU:0"]).scope()


def state(model: keras.Model) -> list[np.ndarray]:
    variables = [*model.variables, *model.optimizer.variables]
    return [variable.numpy() for variable in variables]


EXAMPLES = {
    small_best: (TEXTS, TITLES),
    small_scorer: ((TEXTS, TITLES, TITLES[1:] + TITLES[:1]),),
    small_keyvec: (
        (
            [list(pair) for pair in zip(TEXTS, TITLES, strict=True)],
            [[True, False]] * 5,
            [text.split()[:1] for text in TEXTS],
        ),
    ),
}


@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
def test_one_replica_equals_none_bit_for_bit(make, tmp_path):
    examples = EXAMPLES[make]
    plain = make()
    with one_replica():
        model = make()
    validation = examples if make is small_best else examples[0]
    options = {"batch_size": 2, "verbose": 0}
    histories = [
        [
            each.fit(
                *examples, validation_data=validation, epochs=2, **options
            ).history,
            each.fit(*examples, **options).history,
            each.evaluate(*examples, **options),
        ]
        for each in (plain, model)
    ]
    assert histories[0] == histories[1]
    check_equal(state(model), state(plain))
    assert model.optimizer.iterations == 9
    texts = TEXTS, TITLES
    if make is small_keyvec:
        texts = (tf.data.Dataset.from_tensor_slices(TEXTS).batch(2),)
        np.testing.assert_array_equal(model.encode(TEXTS), plain.encode(TEXTS))
    np.testing.assert_array_equal(
        model.predict(*texts, verbose=0), plain.predict(*texts, verbose=0)
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    check_equal(state(loaded), state(plain))


def test_train_and_resume_with_one_replica(tmp_path):
    clicks = list(zip(TEXTS, TITLES, strict=True)) * 8
    expected = dssm.train(clicks, QUICK, verbose=0)
    options = {"output": tmp_path, "verbose": 0, "callbacks": [StopAt(4)]}
    with one_replica():
        with pytest.raises(KeyboardInterrupt):
            dssm.train(clicks, QUICK, **options)
        resumed = dssm.resume(tmp_path, verbose=0)
    check_equal(resumed, expected)

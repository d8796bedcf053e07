"""Training under `tf.distribute` strategies, which must have one replica."""

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


def one_replica() -> tf.distribute.Strategy:
    return tf.distribute.MirroredStrategy(["CPU:0"])


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
    with one_replica().scope():
        model = make()
    validation = examples if make is small_best else examples[0]
    options = {"batch_size": 2, "verbose": 0}
    options |= {"validation_data": validation, "epochs": 2}
    histories = [
        each.fit(*examples, **options).history for each in (plain, model)
    ]
    assert histories[0] == histories[1]
    check_equal(state(model), state(plain))
    assert model.optimizer.iterations == 6
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
    with one_replica().scope():
        with pytest.raises(KeyboardInterrupt):
            dssm.train(clicks, QUICK, **options)
        resumed = dssm.resume(tmp_path, verbose=0)
    check_equal(resumed, expected)


def test_steps_run_without_fit(eager):
    """`strategy.run` around `train_step` takes the steps of `fit`."""
    strategy, plain = one_replica(), small_best()
    with strategy.scope():
        model = small_best()
    batches = tf.data.Dataset.from_tensors((TEXTS, TITLES)).repeat(3)
    plain.fit(batches, shuffle=False, verbose=0)
    step = tf.function(
        lambda batch: strategy.run(model.train_step, args=(batch,)),
        autograph=False,
    )
    for batch in strategy.experimental_distribute_dataset(batches):
        step(batch)
    model.sync_weights()
    # Hashing in the step rounds in another order than in the dataset.
    check_equal(state(model), state(plain), atol=1e-6)
    assert model.optimizer.iterations == 3


TWO_REPLICAS = """
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.training.small_models import small_best, small_keyvec, small_scorer

(cpu,) = tf.config.list_physical_devices("CPU")
logical = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(cpu, [logical, logical])
small_best().save("model.keras")
plain = small_best()


def load():
    tf.keras.models.load_model("model.keras")


def train():
    dssm.train([("a b", "b c")], "dssm", output="run", verbose=0)


def build():
    dssm.NesterovMomentum().build([tf.keras.Variable([1.0])])


def fit():
    plain.fit(["a b"], ["b c"])


with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    for make in (
        small_best, small_keyvec, small_scorer, load, train, build, fit
    ):
        try:
            make()
        except dssm.errors.InputError as error:
            print(make.__name__, error, sep=": ")
"""


def test_two_replicas_are_refused(fresh_process, tmp_path):
    """Devices are set at the start of a process."""
    lines = fresh_process(TWO_REPLICAS, folder=tmp_path)
    refusal = (
        "found a tf.distribute strategy of 2 replicas, expected one replica: "
        "to train on several devices, start several processes with "
        "lstm-dssm-train --workers"
    )
    names = "small_best small_keyvec small_scorer load train build"
    assert lines[:-1] == [f"{name}: {refusal}" for name in names.split()]
    assert "create both within the scope of" in lines[-1]
    assert not (tmp_path / "run").exists()

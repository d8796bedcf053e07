"""Rows that move when they are read end where the dense update takes them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.layers import PeepholeLSTMCell
from tests import reference

STEPS, ROWS, RATE = 400, 30, 0.05
RANDOM = np.random.default_rng(7)
START = RANDOM.normal(size=(ROWS, 3))
TARGET = RANDOM.normal(size=3)
# Row 0 is never read, row 29 only once: geometric sums over hundreds of steps.
READ = [RANDOM.choice(np.arange(1, 29), 4, replace=False) for _ in range(STEPS)]
READ[200][0] = 29
MOMENTA = [dssm.NesterovSchedule().momentum(k, STEPS) for k in range(STEPS)]


def gradient(k: int, parameters: list[np.ndarray]) -> list[np.ndarray]:
    result = np.zeros_like(START)
    result[READ[k]] = np.tanh(parameters[0][READ[k]] - TARGET)
    return [result]


def test_equals_the_papers_update_over_400_steps(float64: None) -> None:
    table = keras.Variable(START, dtype="float64")
    optimizer = dssm.NesterovMomentum(RATE, threshold=0.7)
    optimizer.build([table])
    optimizer.set_tables([table])

    @tf.function
    def step(rows: tf.Tensor) -> None:
        optimizer.look_ahead([table], [(table, rows)])
        with tf.GradientTape() as tape:
            away = tf.gather(table.value, rows) - TARGET
            loss = tf.reduce_sum(tf.math.log(tf.math.cosh(away)))
        optimizer.apply(tape.gradient(loss, [table.value]), [table])

    wanted = reference.nesterov(gradient, [START], MOMENTA, RATE, 0.7)
    untouched = set()
    for k, (rows, mu) in enumerate(zip(READ, MOMENTA, strict=True)):
        optimizer.momentum.assign(mu)
        step(tf.constant(rows))
        # What was read is up to date at once.
        np.testing.assert_allclose(
            table.numpy()[rows], wanted[k + 1][0][rows], rtol=1e-11
        )
        if k in (0, 7, 150, STEPS - 1):
            optimizer.settle()
            np.testing.assert_allclose(
                table.numpy(), wanted[k + 1][0], rtol=1e-11
            )
            untouched.add(tuple(table.numpy()[0]))
    assert step.experimental_get_tracing_count() == 1
    assert untouched == {tuple(START[0])}


def test_settling_is_needed_and_enough(float64: None) -> None:
    """A row read once goes on moving while other rows are read."""
    table = keras.Variable(np.ones((2, 1)), dtype="float64")
    optimizer = dssm.NesterovMomentum(0.1, momentum=0.5, threshold=None)
    optimizer.build([table])
    optimizer.set_tables([table])
    for rows in ([0], [1], [1]):
        optimizer.look_ahead([table], [(table, tf.constant(rows))])
        ones = tf.IndexedSlices(tf.ones((1, 1), "float64"), tf.constant(rows))
        optimizer.apply([ones], [table])
    assert table.numpy()[0, 0] == 1 - 0.1
    optimizer.settle()
    # -0.1, then half of it, then a quarter of it.
    np.testing.assert_allclose(table.numpy()[0, 0], 1 - 0.1 * 1.75, rtol=1e-15)
    optimizer.settle()
    np.testing.assert_allclose(table.numpy()[0, 0], 1 - 0.1 * 1.75, rtol=1e-15)


class PlainLSTM(keras.layers.RNN):
    """The plain road: the cell in Keras's own loop, its own gradients."""

    def call(self, steps, lengths=None, training=False):
        from keras_lstm_dssm.layers.packed_sequence import unpack

        mask = tf.sequence_mask(steps.lengths, tf.size(steps.counts))
        return super().call(unpack(steps), mask=mask)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-10)]
)
@pytest.mark.parametrize("peephole", [None, "full"])
def test_fast_road_equals_plain_road(
    dtype: str, tolerance: float, peephole: str | None
) -> None:
    """50 updates: packed, by hand and lazy against Keras's loop and dense."""
    queries = ["hex bolt", "wood glue", "drill", "white desk lamp", "hose"]
    titles = [
        "steel hex bolt zinc 3 in",
        "interior wood glue",
        "18 volt cordless drill kit",
        "led desk lamp",
        "rubber garden hose 50 ft",
    ]
    before = keras.config.floatx()
    keras.config.set_floatx(dtype)
    weights, losses = [], []
    try:
        for fast in (True, False):
            keras.utils.set_random_seed(3)
            towers = [
                dssm.LSTMEncoder(
                    4, peephole=peephole, forget_gate=True, dtype=dtype
                )
                for _ in range(2)
            ]
            if not fast:
                for tower in towers:
                    cell = tower.lstm.cell
                    assert isinstance(cell, PeepholeLSTMCell)
                    tower.lstm = PlainLSTM(cell)
                    tower.lstm.built = True
            model = dssm.TwoTower(*towers, negatives="in_batch")
            model.compile(
                dssm.NesterovMomentum(0.1, lazy=fast), dssm.CosineSoftmax()
            )
            history = model.fit(
                queries * 10,
                titles * 10,
                epochs=10,
                batch_size=10,
                verbose=0,
                callbacks=[dssm.NesterovSchedule()],
            )
            assert int(model.optimizer.iterations.numpy()) == 50
            losses.append(history.history["loss"])
            weights.append(
                {
                    w.path.split("/", 1)[-1] + str(i): w.numpy()
                    for i, t in enumerate(towers)
                    for w in t.trainable_weights
                }
            )
    finally:
        keras.config.set_floatx(before)
    assert losses[0][-1] < 0.8 * losses[0][0]
    np.testing.assert_allclose(losses[0], losses[1], rtol=tolerance)
    first, second = (sorted(w.items()) for w in weights)
    assert len(first) == len(second)
    for (_, one), (_, other) in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)

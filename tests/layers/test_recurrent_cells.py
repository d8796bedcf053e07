"""`PeepholeLSTM` in place of `keras.layers.LSTM`, in double precision."""

import itertools
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError, PeepholeLSTM, PeepholeLSTMCell
from tests.precision import precision

BATCH, TIME, FEATURES, UNITS = 4, 5, 3, 2
RANDOM = np.random.default_rng(3)
INPUTS = tf.constant(RANDOM.normal(size=(BATCH, TIME, FEATURES)))
STATES = [tf.constant(RANDOM.normal(size=(BATCH, UNITS))) for _ in range(2)]

RIGHT_PADDED = np.arange(TIME) < np.array([[5], [1], [3], [4]])
WITH_GAPS = RIGHT_PADDED & (np.arange(TIME) != 1)
EMPTY_ROW = np.arange(TIME) < np.array([[5], [0], [3], [4]])

CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "right-padded mask": {"mask": RIGHT_PADDED},
    "mask with gaps": {"mask": WITH_GAPS},
    "mask with an empty row": {"mask": EMPTY_ROW},
    "initial state": {"initial_state": STATES},
    "initial state and mask": {"initial_state": STATES, "mask": WITH_GAPS},
}
RETURNS = {
    f"sequences={sequences}, state={state}, backwards={backwards}": {
        "return_sequences": sequences,
        "return_state": state,
        "go_backwards": backwards,
    }
    for sequences, state, backwards in itertools.product(
        [False, True], repeat=3
    )
}

pytestmark = pytest.mark.usefixtures("float64")


def randomised(layer: keras.layers.Layer) -> keras.layers.Layer:
    layer.build(INPUTS.shape)
    for variable in layer.variables:
        variable.assign(RANDOM.normal(size=variable.shape) * 0.7)
    return layer


def outputs_and_gradients(
    layer: keras.layers.Layer, arguments: dict[str, Any], training: bool
) -> list[np.ndarray]:
    """All outputs, and gradients by inputs, initial states and weights."""
    watched = [INPUTS, *arguments.get("initial_state", [])]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = tf.nest.flatten(layer(INPUTS, training=training, **arguments))
        # A sum with weights that differ, so that errors do not cancel.
        total = tf.add_n(
            [
                tf.reduce_sum(
                    y * tf.reshape(tf.range(tf.size(y), dtype=y.dtype), y.shape)
                )
                for y in outputs
            ]
        )
    watched += [variable.value for variable in layer.trainable_variables]
    gradients = tape.gradient(total, watched)
    return [np.asarray(tf.convert_to_tensor(x)) for x in outputs + gradients]


def check_equal(
    layer: PeepholeLSTM, other: keras.layers.Layer, arguments: dict[str, Any]
) -> None:
    for training in (False, True):
        for ours, expected in zip(
            outputs_and_gradients(layer, arguments, training),
            outputs_and_gradients(other, arguments, training),
            strict=True,
        ):
            np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("call", CALLS)
def test_equals_keras_lstm(call, returns):
    """With a forget gate, no peepholes and equal weights."""
    layer = PeepholeLSTM(UNITS, peephole=None, **RETURNS[returns])
    stock = keras.layers.LSTM(UNITS, use_cudnn=False, **RETURNS[returns])
    stock.build(INPUTS.shape)
    stock.set_weights(randomised(layer).get_weights())
    check_equal(layer, stock, CALLS[call])


@pytest.mark.parametrize("peephole", [None, "diagonal", "full"])
@pytest.mark.parametrize("forget_gate", [False, True])
@pytest.mark.parametrize(
    "call", ["right-padded mask", "initial state and mask"]
)
def test_equals_a_keras_rnn_of_the_cell(peephole, forget_gate, call):
    layer = PeepholeLSTM(UNITS, peephole, forget_gate)
    randomised(layer)
    check_equal(layer, keras.layers.RNN(layer.cell), CALLS[call])


def test_lengths_equal_a_mask():
    lengths = RIGHT_PADDED.sum(axis=1)
    for returns in RETURNS.values():
        layer = randomised(PeepholeLSTM(UNITS, "full", **returns))
        for by_lengths, by_mask in zip(
            tf.nest.flatten(layer(INPUTS, list(lengths))),
            tf.nest.flatten(layer(INPUTS, mask=tf.constant(RIGHT_PADDED))),
            strict=True,
        ):
            np.testing.assert_allclose(by_lengths, by_mask, rtol=1e-12)


def test_the_last_output_is_computed_without_keras(monkeypatch):
    layer = randomised(PeepholeLSTM(UNITS, go_backwards=True))
    monkeypatch.setattr(layer, "_keras_outputs", None)
    masks = "right-padded mask", "mask with gaps", "mask with an empty row"
    for arguments in (
        {},
        {"lengths": [5, 1, 3, 4]},
        *(CALLS[name] for name in masks),
    ):
        assert np.all(np.abs(layer(INPUTS, **arguments)) < 1)
    with pytest.raises(TypeError):
        layer(INPUTS, initial_state=STATES)


def test_masks_and_shapes_in_a_model_that_keras_trains_saves_and_loads(
    tmp_path,
):
    words = np.array([[3, 1, 2, 0], [2, 0, 0, 0], [1, 2, 3, 1]])
    model = keras.Sequential(
        [
            keras.Input((None,)),
            keras.layers.Embedding(4, FEATURES, mask_zero=True),
            keras.layers.Bidirectional(
                PeepholeLSTM(UNITS, "full", return_sequences=True)
            ),
            PeepholeLSTM(UNITS, peephole=None),
            keras.layers.Dense(1),
        ]
    )
    assert [layer.output.shape for layer in model.layers[1:]] == [
        (None, None, 2 * UNITS), (None, UNITS), (None, 1),
    ]  # fmt: skip
    model.compile("sgd", "mse")
    model.train_on_batch(words, np.ones((3, 1)))
    # What a mask leaves out makes no difference.
    np.testing.assert_allclose(
        model(words[1:2, :1]), model(words)[1:2], rtol=1e-12
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(words), model(words))


def test_shapes_of_symbolic_inputs():
    inputs = keras.Input((TIME, FEATURES))
    for returns in RETURNS.values():
        ours = PeepholeLSTM(UNITS, **returns)(inputs)
        stock = keras.layers.LSTM(UNITS, **returns)(inputs)
        assert [y.shape for y in tf.nest.flatten(ours)] == [
            y.shape for y in tf.nest.flatten(stock)
        ]


def test_initializers_regularizers_and_constraints():
    layer = PeepholeLSTM(
        UNITS,
        "diagonal",
        forget_gate=True,
        kernel_initializer=keras.initializers.Constant(0.5),
        recurrent_initializer="ones",
        bias_initializer="zeros",
        kernel_regularizer=keras.regularizers.L2(0.1),
        # Not "l1": in Keras 3.12 it is always float32.
        recurrent_regularizer=keras.regularizers.L1L2(l1=0.01),
        bias_regularizer="l2",
        kernel_constraint=keras.constraints.MaxNorm(0.5),
        recurrent_constraint="non_neg",
        bias_constraint="non_neg",
    )
    layer.build(INPUTS.shape)
    kernel, recurrent, bias, *peepholes = layer.cell.variables
    np.testing.assert_array_equal(kernel, np.full((FEATURES, 4 * UNITS), 0.5))
    np.testing.assert_array_equal(recurrent, np.ones((UNITS, 4 * UNITS)))
    np.testing.assert_array_equal(bias, np.zeros(4 * UNITS))
    for peephole in peepholes:
        peephole.assign([3.0, -4.0])
    # L2 of the kernel, L1 of the recurrent weights and of 3 peepholes.
    expected = 0.1 * 0.25 * 24 + 0.01 * 16 + 3 * 0.01 * 7
    assert float(sum(layer.losses)) == pytest.approx(expected)
    assert float(kernel.constraint(kernel)[0, 0]) == pytest.approx(
        0.5 * 3**-0.5
    )
    assert recurrent.constraint is not None and bias.constraint is not None

    copy = PeepholeLSTM.from_config(layer.get_config())
    copy.build(INPUTS.shape)
    assert copy.get_config() == layer.get_config()
    copy.set_weights(layer.get_weights())
    assert float(sum(copy.losses)) == pytest.approx(expected)


def test_an_initializer_of_each_weight_starts_from_its_own_seed():
    cell = PeepholeLSTMCell(FEATURES, "full", forget_gate=True)
    cell.build((None, FEATURES))
    i, f, o = (weight.numpy() for weight in cell.peepholes.values())
    assert (i != f).all() and (i != o).all() and (f != o).all()


def test_the_defaults_are_equation_2():
    """Transcribed from the paper; `keras.layers.RNN` runs the cell, too."""
    cell = PeepholeLSTMCell(UNITS)
    by_keras, layer = keras.layers.RNN(cell), PeepholeLSTM(UNITS)
    randomised(by_keras), layer.build(INPUTS.shape)
    layer.set_weights(by_keras.get_weights())
    W, W_rec, b = (
        np.split(weight.numpy(), 4, axis=-1)
        for weight in (cell.kernel, cell.recurrent_kernel, cell.bias)
    )  # of i, f, g and o
    W_p = {gate: weight.numpy().T for gate, weight in cell.peepholes.items()}
    assert {gate: weight.shape for gate, weight in W_p.items()} == {
        gate: (UNITS, UNITS) for gate in "ifo"
    }
    y = c = np.zeros((BATCH, UNITS))
    for x in np.moveaxis(INPUTS.numpy(), 1, 0):
        i, f, g, o = (x @ W[n] + y @ W_rec[n] + b[n] for n in range(4))
        i, f = sigmoid(i + c @ W_p["i"]), sigmoid(f + c @ W_p["f"])
        c = f * c + i * np.tanh(g)
        y = sigmoid(o + c @ W_p["o"]) * np.tanh(c)
    for outputs in (by_keras(INPUTS), layer(INPUTS)):
        np.testing.assert_allclose(outputs, y, rtol=1e-12)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float32"])
def test_in_lower_precision(policy):
    layer = randomised(PeepholeLSTM(UNITS, "full", forget_gate=True))
    with precision("float32"):
        lower = PeepholeLSTM(UNITS, "full", forget_gate=True, dtype=policy)
        lower.build(INPUTS.shape)
        lower.set_weights(layer.get_weights())
        for arguments in ({"training": True}, {"mask": tf.constant(WITH_GAPS)}):
            np.testing.assert_allclose(
                tf.cast(lower(INPUTS, **arguments), tf.float64),
                layer(INPUTS, **arguments),
                atol=0.03 if policy == "mixed_bfloat16" else 1e-6,
            )
    assert lower.cell.kernel.dtype == "float32"


def test_what_truncated_gradients_do_not_support():
    for returns in ("return_sequences", "return_state"):
        with pytest.raises(InputError, match="truncate is not supported with"):
            PeepholeLSTM(UNITS, truncate=2, **{returns: True})
    layer = randomised(PeepholeLSTM(UNITS, truncate=2))
    with pytest.raises(InputError, match="not supported with an initial_state"):
        layer(INPUTS, initial_state=STATES)


def test_truncated_gradients_do_not_count_masked_steps():
    layer = randomised(PeepholeLSTM(UNITS, "full", truncate=2))

    def gradient(inputs: tf.Tensor, **arguments: Any) -> np.ndarray:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs, **arguments)
        return tape.gradient(outputs, inputs).numpy()

    masked = gradient(INPUTS, mask=tf.constant(WITH_GAPS))
    steps = np.delete(INPUTS, 1, axis=1)  # the step that is masked
    expected = gradient(tf.constant(steps), lengths=[4, 1, 2, 3])
    assert not masked[:, 1].any()
    np.testing.assert_allclose(np.delete(masked, 1, axis=1), expected)
    # Of each row the last step, and two before it if there are so many.
    assert np.any(expected, axis=2).sum(axis=1).tolist() == [3, 1, 2, 3]


def test_lengths_and_a_mask_at_once():
    layer = PeepholeLSTM(UNITS)
    with pytest.raises(InputError, match="give lengths or a mask, not both"):
        layer(INPUTS, [5, 1, 3, 4], mask=tf.constant(RIGHT_PADDED))

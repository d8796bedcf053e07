"""KeyVec: training steps, compiling and saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import NOT_FINITE, InputError
from keras_lstm_dssm.layers import TrigramVectors
from keras_lstm_dssm.losses import CosineSoftmax, KeyVecLoss
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.text import split_sentences
from tests.models.small_keyvec import (
    DOCUMENTS,
    EXAMPLES,
    KEY_WORDS,
    ODD,
    SALIENT,
    VOCABULARY,
    compiled,
    ragged_examples,
    small_keyvec,
    take_step,
)


def test_fit_learns():
    model = compiled(0.1)
    history = model.fit(
        EXAMPLES, batch_size=2, epochs=4, verbose=0, validation_data=EXAMPLES
    ).history
    for part in ("loss", "read_loss", "key_word_loss"):
        for name in (part, f"val_{part}"):
            assert history[name][-1] < 0.7 * history[part][0]
    assert history["val_accuracy"][-1] == 0.75  # one has no key sentence
    assert int(model.optimizer.iterations) == 8


@pytest.mark.parametrize(
    ("option", "unchanged"),
    [("word_weight", ["word_scores", "dense"]), ("read_weight", [])],
)
def test_a_part_of_weight_0_is_left_out(option, unchanged):
    model = compiled(**{option: 0.0})
    before = model.get_weights()
    take_step(model)
    for variable, old in zip(model.weights, before, strict=True):
        moves = variable.path.split("/")[0] not in unchanged
        assert np.array_equal(variable, old) != moves


def test_dropout_is_a_function_of_seed_and_training_step():
    """So a resumed training draws what an uninterrupted one draws."""

    def loss(dropout: float, step: int = 0, training: bool = True) -> float:
        model = small_keyvec(dropout=dropout)
        model.compile(keras.optimizers.Adam(), KeyVecLoss())
        model.optimizer.iterations.assign(step)
        batch = model.hasher(*ragged_examples())
        return float(model.batch_loss(batch, training))

    assert loss(0.5, 3) == loss(0.5, 3) != loss(0.5, 4)
    assert loss(0.5, training=False) == loss(0.0, training=False)
    assert loss(0.5) != loss(0.0)
    model = small_keyvec(dropout=0.5)
    ragged = ragged_examples()[0]
    np.testing.assert_allclose(
        model(ragged, training=True), model(ragged), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("optimizer", "rounding"),
    [(keras.optimizers.Adam, 0), (NesterovMomentum, 1e-7)],
)
def test_a_loss_that_is_not_finite_leaves_the_weights(optimizer, rounding):
    model = small_keyvec()
    model.compile(optimizer(0.02), KeyVecLoss())
    model.fit(EXAMPLES, verbose=0)
    for number in (np.nan, np.inf):
        model.word_scores.bias.assign(np.full(8, number))
        before = model.get_weights()
        with pytest.raises(tf.errors.InvalidArgumentError, match=NOT_FINITE):
            model.fit(EXAMPLES, verbose=0)
        for one, other in zip(before, model.get_weights(), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=rounding)
        assert int(model.optimizer.iterations) == 1


def test_nesterov_steps_equal_algorithm_1(float64):
    """V = mu V - eps grad L(W + mu V), W = W + V, in plain TensorFlow."""
    model, plain = small_keyvec(), small_keyvec()
    plain.set_weights(model.get_weights())
    loss = KeyVecLoss(normalize=True)
    plain.compile(keras.optimizers.SGD(), loss)
    model.compile(NesterovMomentum(0.3, threshold=None), loss)
    variables = [variable.value for variable in plain.trainable_variables]
    velocities = [np.zeros(variable.shape) for variable in variables]
    batch = plain.hasher(*ragged_examples())
    for mu in (0.9, 0.5, 0.8):
        model.optimizer.momentum.assign(mu)
        take_step(model)
        for variable, velocity in zip(variables, velocities, strict=True):
            variable.assign_add(mu * velocity)
        with tf.GradientTape() as tape:
            value = plain.batch_loss(batch, training=True)
        gradients = tape.gradient(value, variables)
        for number, (variable, gradient) in enumerate(
            zip(variables, gradients, strict=True)
        ):
            change = -0.3 * tf.convert_to_tensor(gradient).numpy()
            velocities[number] = mu * velocities[number] + change
            variable.assign_add(change)
        for one, other in zip(
            model.get_weights(), plain.get_weights(), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)
    assert max(abs(velocity).max() for velocity in velocities) > 0.01


def test_a_step_on_odd_documents_is_finite():
    documents = [
        split_sentences(text) if isinstance(text, str | bytes) else text
        for text in ODD.values()
    ]
    salient = [[False] * len(document) for document in documents]
    salient[list(ODD).index("5,000 sentences")][9] = True
    key_words = [[], ["glue"], ["", "公园", "\ud800"]] * len(documents)
    model = compiled()
    before = model.get_weights()
    history = model.fit(
        (documents, salient, key_words[: len(documents)]),
        batch_size=len(documents),
        verbose=0,
    ).history
    assert int(model.optimizer.iterations) == 1
    for name in ("loss", "read_loss", "key_word_loss"):
        assert np.isfinite(history[name]).all() and history[name][0] > 0
    for old, new in zip(before, model.get_weights(), strict=True):
        assert np.isfinite(new).all() and not np.array_equal(old, new)


def test_saved_model_in_a_fresh_process(tmp_path, fresh_process):
    model = compiled(normalize=True)
    take_step(model)
    path = tmp_path / "keyvec.keras"
    model.save(path)
    vectors = model.encode(DOCUMENTS)
    take_step(model)
    later = model.encode(DOCUMENTS)
    assert not np.array_equal(vectors, later)
    np.save(tmp_path / "expected.npy", [vectors, later])
    program = f"""
import keras, numpy as np
import keras_lstm_dssm
from tests.models.small_keyvec import DOCUMENTS, take_step
model = keras.saving.load_model({str(path)!r})
assert model.loss.normalize and model.optimizer.iterations == 1
vectors, later = np.load({str(tmp_path / "expected.npy")!r})
np.testing.assert_array_equal(model.encode(DOCUMENTS), vectors)
take_step(model)
np.testing.assert_allclose(model.encode(DOCUMENTS), later, rtol=1e-5)
"""
    fresh_process(program)


def test_trigram_words_need_key_words(tmp_path):
    model = KeyVec(TrigramVectors(4), VOCABULARY, 3, [2], 3, 5)
    model.compile(keras.optimizers.Adam(), KeyVecLoss())
    take_step(model)
    model.save(tmp_path / "keyvec.keras")
    loaded = keras.saving.load_model(tmp_path / "keyvec.keras")
    assert loaded.key_vocabulary == VOCABULARY
    np.testing.assert_array_equal(
        loaded.encode(DOCUMENTS), model.encode(DOCUMENTS)
    )
    with pytest.raises(InputError, match="^words has no vocabulary: give"):
        KeyVec(TrigramVectors(4))


def test_one_batch_of_lists():
    """A training step on lists is a fit of them as one batch."""
    model, fitted = compiled(), compiled()
    fitted.set_weights(model.get_weights())
    found = model.train_on_batch(EXAMPLES, return_dict=True)
    history = fitted.fit(EXAMPLES, shuffle=False, verbose=0).history
    assert {name: [value] for name, value in found.items()} == history
    for one, other in zip(
        model.get_weights(), fitted.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    expected = fitted.evaluate(EXAMPLES, verbose=0)
    assert model.test_on_batch(EXAMPLES) == expected


def test_compile_refuses():
    adam, loss = keras.optimizers.Adam(), KeyVecLoss()
    for arguments, message in (
        ({"optimizer": adam, "loss": CosineSoftmax()}, "expected KeyVecLoss"),
        ({"optimizer": adam, "loss": loss, "metrics": ["mse"]}, "four metrics"),
        ({"optimizer": adam, "loss": loss, "jit_compile": True}, "XLA"),
    ):
        with pytest.raises(InputError, match=message):
            small_keyvec().compile(**arguments)


def test_missing_key_words_cost_nothing():
    model = compiled()
    none = [[] for _ in KEY_WORDS]
    found = model.evaluate(
        (DOCUMENTS, SALIENT, none), verbose=0, return_dict=True
    )
    assert found["key_word_loss"] == 0
    assert found["loss"] == pytest.approx(found["read_loss"])


@pytest.mark.parametrize(
    "name", ["y", "class_weight", "sample_weight", "validation_split"]
)
def test_labels_and_weights_are_refused(name):
    message = f"^{name} is not supported: give x=.documents, salient, key_words"
    with pytest.raises(InputError, match=message):
        compiled().fit(EXAMPLES, verbose=0, **{name: 0.5})

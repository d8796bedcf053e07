"""KeyVec: vectors, losses, gradients and training steps, against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.losses import KeyVecLoss
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.text import split_sentences
from tests.kit.equal import check_equal
from tests.matchers.ragged_texts import check_central_differences
from tests.models.small_keyvec import (
    DOCUMENTS,
    EXAMPLES,
    KEY_WORDS,
    ODD,
    SALIENT,
    VOCABULARY,
    by_numpy,
    compiled,
    ragged_examples,
    small_keyvec,
    take_step,
)


@pytest.fixture(scope="module")
def model() -> KeyVec:
    """A model whose graphs are traced once; tests only read it."""
    keras.utils.set_random_seed(0)
    return small_keyvec()


def costs_by_numpy(model: KeyVec, normalize: bool) -> np.ndarray:
    """-L_read and -L_enc of each document, eq. (5) and (6)."""
    costs = []
    for document, salient, words in zip(*EXAMPLES, strict=True):
        plain = by_numpy(model, document)
        read = -sum(
            np.log(p if key else 1 - p)
            for p, key in zip(plain.p, salient, strict=True)
        )
        log_p = plain.words - np.log(np.exp(plain.words).sum())
        known = [VOCABULARY.index(w.lower()) for w in words if w != "unknown"]
        of_words = -sum(log_p[word] for word in known)
        if normalize:
            read, of_words = read / len(document), of_words / max(len(known), 1)
        costs.append((read, of_words))
    return np.array(costs)


@pytest.mark.parametrize("weighted", [True, False])
def test_vectors_equal_numpy_by_every_way(float64, weighted):
    model = small_keyvec(weighted=weighted)
    plain = [by_numpy(model, document) for document in DOCUMENTS]
    expected = [document.vector for document in plain]
    assert np.ptp(expected, axis=0).min() > 1e-3
    ragged = tf.ragged.constant(DOCUMENTS)
    for found in (
        model(ragged),
        model(model.hash_documents(ragged)),
        model(ragged, training=True),
        model.encode(DOCUMENTS),
        np.concatenate([model.encode([document]) for document in DOCUMENTS]),
        model.predict(tf.data.Dataset.from_tensors(ragged), verbose=0),
        model.predict(DOCUMENTS, batch_size=3, verbose=0),
        model.predict_on_batch(DOCUMENTS),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    for found, document in zip(
        model.probabilities(DOCUMENTS), plain, strict=True
    ):
        np.testing.assert_allclose(found, document.p, rtol=1e-12)
    assert (
        model.predict([], verbose=0).shape == model.encode([]).shape == (0, 5)
    )


@pytest.mark.parametrize("normalize", [False, True])
def test_losses_equal_numpy(float64, normalize):
    loss = KeyVecLoss(0.5, 2.0, normalize)
    model = compiled(loss=loss, run_eagerly=True)
    costs = costs_by_numpy(model, normalize)
    best = [int(np.argmax(by_numpy(model, d).p)) for d in DOCUMENTS]
    accurate = [salient[i] for salient, i in zip(SALIENT, best, strict=True)]
    expected = {
        "loss": np.mean(costs @ [0.5, 2.0]), "read_loss": costs[:, 0].mean(),
        "key_word_loss": costs[:, 1].mean(), "accuracy": np.mean(accurate),
    }  # fmt: skip
    assert 0 < expected["accuracy"] < 1
    x = EXAMPLES
    if normalize:
        x = tf.data.Dataset.from_tensors(ragged_examples())
    found = model.evaluate(x, batch_size=3, verbose=0, return_dict=True)
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weighted", [True, False])
def test_gradients_of_all_weights_equal_differences(
    float64, weighted, normalize
):
    loss = KeyVecLoss(0.5, 2.0, normalize)
    model = compiled(loss=loss, sizes={"weighted": weighted})
    batch = model.hasher(*ragged_examples())
    variables = [variable.value for variable in model.trainable_variables]
    assert len(variables) == (18 if weighted else 16)
    check_central_differences(
        lambda: model.batch_loss(batch, training=True), variables
    )


def test_a_vector_does_not_depend_on_its_batch(float64, monkeypatch):
    model = small_keyvec()
    choice = np.random.default_rng(0)
    documents = [
        [
            " ".join(choice.choice([*VOCABULARY, "xyz"], choice.integers(70)))
            for _ in range(choice.integers(1, 30))
        ]
        for _ in range(40)
    ]
    together = model.encode(documents, progress=True)
    alone = np.concatenate([model.encode([d]) for d in documents])
    assert together.dtype == np.float64
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-10)
    monkeypatch.setattr("keras_lstm_dssm.models.keyvec.SENTENCES_AT_ONCE", 50)
    np.testing.assert_allclose(
        model.encode(documents[::-1])[::-1], alone, rtol=0, atol=1e-10
    )
    assert np.ptp(alone, axis=0).min() > 0.05


def test_strings_are_split_and_bounded():
    model = small_keyvec(max_sentences=2)
    text = "The hex bolt. Wood glue! Drill?"
    lists = ["The hex bolt.", "Wood glue!"]
    expected = model.encode([lists])
    for document in (text, text.encode(), [*lists, "Drill?"], tuple(lists)):
        np.testing.assert_array_equal(model.encode([document]), expected)
        assert len(model.probabilities([document])[0]) == 2
    np.testing.assert_allclose(
        model(tf.constant([text, "Glue"]))[:1], expected, rtol=0, atol=1e-6
    )
    longer = small_keyvec(max_sentences=None)
    assert np.abs(longer.encode([text]) - expected).max() > 1e-3
    assert np.shape(longer.probabilities([text])) == (1, 3)
    many = [text.split(" ")[number % 5] for number in range(5000)]
    (p,) = longer.probabilities([many])
    assert len(p) == 5000 and np.isfinite(longer.encode([many])).all()


def test_odd_documents_have_defined_vectors(model):
    documents = list(ODD.values())
    vectors = model.encode(documents)
    assert vectors.shape == (len(ODD), 5) and vectors.dtype == np.float32
    assert np.isfinite(vectors).all() and np.abs(vectors).max() <= 1
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_array_equal(vectors[0], vectors[2])
    lengths = [len(p) for p in model.probabilities(documents)]
    assert lengths[:8] == [1, 1, 1, 1, 1, 250, 100, 80 - 19]
    strings = [text for text in documents if not isinstance(text, list)]
    encoded = [t.encode("utf-8", "replace") if isinstance(t, str) else t
               for t in strings]  # fmt: skip
    assert np.isfinite(model(tf.constant(encoded))).all()
    for document in documents:
        for found in (model.key_sentences(document), model.key_words(document)):
            values = [value for _, value in found]
            assert values and np.isfinite(values).all()
            assert 0 <= min(values) and max(values) <= 1
    assert model.encode([]).shape == (0, 5)
    assert model.probabilities([]) == []


def test_key_sentences_and_words_are_the_most_probable(model):
    for document in DOCUMENTS:
        plain = by_numpy(model, document)
        order = sorted(range(len(document)), key=lambda i: -plain.p[i])
        found = model.key_sentences(document, 3)
        assert [text for text, _ in found] == [document[i] for i in order[:3]]
        np.testing.assert_allclose(
            [p for _, p in found], plain.p[order[:3]], rtol=1e-5
        )
        words = model.key_words(document, 4)
        p = np.exp(plain.words) / np.exp(plain.words).sum()
        order = np.argsort(-p)[:4].tolist()
        assert [word for word, _ in words] == [VOCABULARY[i] for i in order]
        np.testing.assert_allclose([w for _, w in words], p[order], rtol=1e-5)
    assert len(model.key_words("glue", 99)) == len(VOCABULARY)
    mean = small_keyvec(weighted=False)
    assert mean.key_sentences("A. B. C.", 2) == [("A. B. C.", 1.0)]
    assert mean.key_sentences(["x", "y", "z"], 2) == [("x", 1.0), ("y", 1.0)]


@pytest.mark.parametrize(("option", "unchanged"), [
    ("word_weight", ["word_scores", "dense"]), ("read_weight", []),
])  # fmt: skip
def test_a_part_of_weight_0_is_left_out(option, unchanged):
    model = compiled(loss=KeyVecLoss(**{option: 0.0}))
    before = model.get_weights()
    take_step(model)
    for variable, old in zip(model.weights, before, strict=True):
        moves = variable.path.split("/")[0] not in unchanged
        assert np.array_equal(variable, old) != moves


def test_dropout_is_a_function_of_seed_and_training_step():
    """So a resumed training draws what an uninterrupted one draws."""

    def loss(dropout: float, step: int = 0, training: bool = True) -> float:
        model = compiled(sizes={"dropout": dropout})
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


def test_nesterov_steps_equal_algorithm_1(float64):
    """V = mu V - eps grad L(W + mu V), W = W + V, in plain TensorFlow."""
    model, plain = small_keyvec(), small_keyvec()
    plain.set_weights(model.get_weights())
    loss = KeyVecLoss(normalize=True)
    plain.compile(keras.optimizers.SGD(), loss)
    optimizer = NesterovMomentum(0.3, threshold=None)
    model.compile(optimizer, loss, run_eagerly=True)
    variables = [variable.value for variable in plain.trainable_variables]
    velocities = [np.zeros(variable.shape) for variable in variables]
    batch = plain.hasher(*ragged_examples())
    for mu in (0.9, 0.5, 0.8):
        optimizer.momentum.assign(mu)
        model.train_on_batch(EXAMPLES)
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
        check_equal(model, plain, atol=1e-12)
    assert max(abs(velocity).max() for velocity in velocities) > 0.01


def test_a_step_on_odd_documents_is_finite():
    documents = [
        split_sentences(text) if isinstance(text, str | bytes) else text
        for text in ODD.values()
    ]
    salient = [[False] * len(document) for document in documents]
    salient[list(ODD).index("5,000 sentences")][9] = True
    key_words = [[], ["glue"], ["", "公园", "\ud800"]] * len(documents)
    model = compiled(run_eagerly=True)
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


def test_missing_key_words_cost_nothing():
    model = compiled(run_eagerly=True)
    none = [[] for _ in KEY_WORDS]
    found = model.evaluate(
        (DOCUMENTS, SALIENT, none), verbose=0, return_dict=True
    )
    assert found["key_word_loss"] == 0
    assert found["loss"] == pytest.approx(found["read_loss"])

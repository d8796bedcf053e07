from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import (
    CosineSoftmax,
    DSSMEncoder,
    InputError,
    LSTMEncoder,
    NesterovMomentum,
    TwoTower,
)
from tests.encoders.small import small_encoder

QUERIES = ["hex bolt", "wood glue", "desk lamp", "garden hose", "paint"]
TITLES = ["steel fastener 3", "adhesive 8 oz", "led light", "50 ft", "gallon"]
PAIRS = tf.data.Dataset.from_tensors((QUERIES, TITLES))  # in one batch


def new_model(negatives: str = "random", **arguments: Any) -> TwoTower:
    keras.utils.set_random_seed(1)
    towers = [DSSMEncoder([6], **arguments) for _ in range(2)]
    model = TwoTower(*towers, negatives=negatives)
    model.compile(NesterovMomentum(0.5), CosineSoftmax(10.0))
    return model


@pytest.mark.parametrize("negatives", ["random", "in_batch"])
def test_learns_a_tiny_problem(negatives):
    keras.utils.set_random_seed(1)
    towers = [LSTMEncoder(cells=6) for _ in range(2)]
    model = TwoTower(*towers, negatives=negatives)
    model.compile(NesterovMomentum(0.5), CosineSoftmax(10.0))
    before = model.evaluate(PAIRS, verbose=0)
    model.fit(PAIRS.repeat(60), verbose=0)
    after = model.evaluate(PAIRS, verbose=0, return_dict=True)
    assert after["loss"] < 0.1 < 0.5 < before[0]
    assert after["accuracy"] == 1
    best = model.query_encoder.encode(QUERIES) @ (
        model.document_encoder.encode(TITLES).T
    )
    np.testing.assert_array_equal(best.argmax(axis=1), range(5))
    np.testing.assert_allclose(
        model((QUERIES, TITLES)), np.diagonal(best), atol=1e-6
    )


def test_lists_and_datasets_train_alike():
    """One batch an epoch: its order is all that shuffling changes."""
    lists, dataset = new_model("in_batch"), new_model("in_batch")
    lists.fit(QUERIES, TITLES, epochs=2, verbose=0)
    dataset.fit(PAIRS.repeat(2), verbose=0)
    for one, other in zip(lists.variables, dataset.variables, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_reported_loss_is_the_mean_over_pairs():
    """In batches of 4 and 1; the one alone has nothing to beat."""
    model = new_model("in_batch")
    first = model.evaluate(QUERIES[:4], TITLES[:4], verbose=0)[0]
    both = model.evaluate(PAIRS.unbatch().batch(4), verbose=0)[0]
    assert both == pytest.approx(first * 4 / 5, rel=1e-5)


def test_each_tower_is_a_group_of_its_own():
    """A step of rate 1 moves each tower by th_G, not both together."""
    model = new_model("in_batch")
    model.compile(NesterovMomentum(1.0, threshold=1e-3), CosineSoftmax(10.0))
    towers = model.query_encoder, model.document_encoder
    before = [tower.get_weights() for tower in towers]
    model.fit(PAIRS, verbose=0)
    for tower, old in zip(towers, before, strict=True):
        steps = np.subtract(tower.get_weights()[0], old[0])
        others = zip(tower.get_weights()[1:], old[1:], strict=True)
        square = (steps**2).sum() + sum(((a - b) ** 2).sum() for a, b in others)
        assert square**0.5 == pytest.approx(1e-3, rel=1e-3)


def test_works_with_a_stock_optimizer():
    model = new_model()
    model.compile(keras.optimizers.Adam(0.01), CosineSoftmax())
    losses = model.fit(PAIRS.repeat(4), epochs=2, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_a_loss_of_keras_gets_labels_of_0_and_1():
    """Indices of in-batch negatives are converted to one-hot labels."""
    model = new_model("in_batch")
    expected = model.evaluate(PAIRS, verbose=0)

    class Softmax(keras.losses.Loss):
        def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
            return keras.losses.categorical_crossentropy(
                y_true, 10.0 * y_pred, from_logits=True
            )

    model.compile(NesterovMomentum(0.1), Softmax())
    np.testing.assert_allclose(
        model.evaluate(PAIRS, verbose=0), expected, rtol=1e-5
    )


def test_one_traced_step_serves_with_and_without_negatives(monkeypatch):
    """Batches that get mined negatives do not cause a second tracing."""
    traced = []
    batch_loss = TwoTower.batch_loss

    def counted(self: TwoTower, *arguments: Any, **options: Any) -> tf.Tensor:
        traced.append(arguments)
        return batch_loss(self, *arguments, **options)

    monkeypatch.setattr(TwoTower, "batch_loss", counted)
    model = new_model("in_batch")
    extras = {"negatives": [[title, "nail"] for title in TITLES[::-1]]}
    with_negatives = tf.data.Dataset.from_tensors((QUERIES, TITLES, extras))
    for pairs in (PAIRS, with_negatives):
        model.fit(pairs, verbose=0)
    assert len(traced) == 1


def test_a_loss_in_half_precision_gets_labels_of_0_and_1():
    """Of the indices of 600 titles, bfloat16 rounds those above 256."""
    queries = [f"query {row}" for row in range(600)]
    titles = [f"title {row}" for row in range(600)]
    losses = []
    for dtype in ("float32", "bfloat16"):
        model = new_model("in_batch")
        model.compile(NesterovMomentum(0.1), CosineSoftmax(10.0, dtype=dtype))
        pairs = tf.data.Dataset.from_tensors((queries, titles))
        losses.append(
            model.evaluate(pairs, verbose=0, return_dict=True)["loss"]
        )
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_works_in_double_precision():
    model = new_model("in_batch", dtype="float64")
    model.fit(PAIRS, verbose=0)
    assert model.query_encoder.encode(QUERIES).dtype == np.float64
    assert model((QUERIES, TITLES)).dtype == tf.float64


def test_loads_in_a_fresh_process_bit_for_bit(tmp_path, fresh_process):
    model = new_model(oov_buckets=16)
    texts = [*QUERIES, "", "上海", "\ud800"]
    model.fit(PAIRS, verbose=0)
    model.save(tmp_path / "model.keras")
    program = (
        "import sys, keras, keras_lstm_dssm, numpy as np;"
        "model = keras.saving.load_model('model.keras');"
        "texts = np.load('texts.npy', allow_pickle=True);"
        "np.save('q', model.query_encoder.encode(texts));"
        "np.save('d', model.document_encoder.encode(texts))"
    )
    np.save(tmp_path / "texts.npy", np.array(texts, object))
    fresh_process(program, folder=tmp_path)
    for file, tower in (
        ("q", model.query_encoder),
        ("d", model.document_encoder),
    ):
        loaded = np.load(tmp_path / f"{file}.npy")
        np.testing.assert_array_equal(loaded, tower.encode(texts))


def test_wrong_arguments():
    towers = [small_encoder("rnn")] * 2
    with pytest.raises(InputError, match="one of random, in_batch, not 'hard'"):
        TwoTower(*towers, negatives="hard")
    with pytest.raises(InputError, match="n must be at least 1, not 0"):
        TwoTower(*towers, n=0)

"""Two towers: what they learn, measure and predict."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.models.pair_batch import pair_batches
from keras_lstm_dssm.ops import cosine_matrix
from tests.kit.equal import check_equal
from tests.models.small_towers import QUERIES, TITLES, fit, one_batch, two_tower

FIVE = ["hex bolt", "wood glue", "desk lamp", "garden hose", "paint"]
CLICKED = ["steel fastener 3", "adhesive 8 oz", "led light", "50 ft", "gallon"]
PAIRS = one_batch(FIVE, CLICKED)


def steps(model: dssm.TwoTower, count: int) -> None:
    """Training steps of one pair each, not traced."""
    for number in range(count):
        row = slice(number, number + 1)
        model.train_step((tf.constant(QUERIES[row]), tf.constant(TITLES[row])))


def loss_of(model: dssm.TwoTower, *data: Any, **options: Any) -> float:
    return float(model.evaluate(*data, verbose=0, **options)[0])


@pytest.mark.parametrize("negatives", ["random", "in_batch"])
def test_learns_a_tiny_problem(negatives, warm):
    model = warm(two_tower, negatives=negatives, units=6, rate=0.5)
    before = model.evaluate(PAIRS, verbose=0)
    model.fit(PAIRS.repeat(60), verbose=0)
    after = model.evaluate(PAIRS, verbose=0, return_dict=True)
    assert after["loss"] < 0.1 < 0.5 < before[0]
    assert after["accuracy"] == 1
    best = model.query_encoder.encode(FIVE) @ (
        model.document_encoder.encode(CLICKED).T
    )
    np.testing.assert_array_equal(best.argmax(axis=1), range(5))
    np.testing.assert_allclose(
        model((FIVE, CLICKED)), np.diagonal(best), atol=1e-6
    )


def test_the_reported_loss_is_the_mean_over_pairs(warm):
    """In batches of 4 and 1; the one alone has nothing to beat."""
    model = warm(two_tower)
    first = loss_of(model, FIVE[:4], CLICKED[:4])
    both = loss_of(model, PAIRS.unbatch().batch(4))
    assert both == pytest.approx(first * 4 / 5, rel=1e-5)


def test_each_tower_is_a_group_of_its_own():
    """A step of rate 1 moves each tower by th_G, not both together."""
    model = two_tower()
    model.compile(
        dssm.NesterovMomentum(1.0, threshold=1e-3), dssm.CosineSoftmax()
    )
    before = [tower.get_weights() for tower in model.towers]
    model.train_step((tf.constant(FIVE), tf.constant(CLICKED)))
    for tower, old in zip(model.towers, before, strict=True):
        moves = zip(tower.get_weights(), old, strict=True)
        square = sum(((a - b) ** 2).sum() for a, b in moves)
        assert square**0.5 == pytest.approx(1e-3, rel=1e-3)


def test_works_with_a_stock_optimizer():
    model = two_tower(negatives="random")
    model.compile(keras.optimizers.Adam(0.01), dssm.CosineSoftmax())
    losses = model.fit(PAIRS.repeat(4), epochs=2, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_a_loss_of_keras_gets_labels_of_0_and_1():
    """Indices of in-batch negatives are converted to one-hot labels."""

    class Softmax(keras.losses.Loss):
        def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
            return keras.losses.categorical_crossentropy(
                y_true, 10.0 * y_pred, from_logits=True
            )

    expected, found = (
        two_tower(loss=loss, run_eagerly=True).evaluate(PAIRS, verbose=0)
        for loss in (dssm.CosineSoftmax(10.0), Softmax())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_loss_in_half_precision_gets_labels_of_0_and_1():
    """Of the indices of 600 titles, bfloat16 rounds those above 256."""
    pairs = one_batch(*([f"{side} {n}" for n in range(600)] for side in "qt"))
    losses = []
    for dtype in ("float32", "bfloat16"):
        loss = dssm.CosineSoftmax(10.0, dtype=dtype)
        model = two_tower(units=6, loss=loss, run_eagerly=True)
        losses.append(loss_of(model, pairs))
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_one_traced_step_serves_with_and_without_negatives(monkeypatch):
    """Batches that get mined negatives do not cause a second tracing."""
    traced = []
    batch_loss = dssm.TwoTower.batch_loss

    def counted(self: Any, *arguments: Any, **options: Any) -> tf.Tensor:
        traced.append(arguments)
        return batch_loss(self, *arguments, **options)

    monkeypatch.setattr(dssm.TwoTower, "batch_loss", counted)
    model = two_tower()
    extras = {"negatives": [[title, "nail"] for title in CLICKED[::-1]]}
    for pairs in (PAIRS, one_batch(FIVE, CLICKED, extras)):
        model.fit(pairs, verbose=0)
    assert len(traced) == 1


@pytest.mark.parametrize("again", ["same optimizer", "after pending rows"])
def test_compiling_again_loses_nothing(again):
    """Pending updates of table rows stay pending or are applied."""
    models = []
    for lazy in (True, False):
        model = two_tower(lazy)
        steps(model, 4)
        optimizer = model.optimizer
        if again != "same optimizer":
            optimizer = dssm.NesterovMomentum(0.1, lazy=lazy)
        model.compile(optimizer, dssm.CosineSoftmax())
        steps(model, 3)
        models.append(model)
    check_equal(*models, atol=1e-6)


def test_one_encoder_for_both_towers(tmp_path):
    model = two_tower(shared=True, run_eagerly=True)
    fit(model)
    np.testing.assert_allclose(
        model.predict(QUERIES, QUERIES, verbose=0), 1, atol=1e-6
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.query_encoder is loaded.document_encoder
    np.testing.assert_array_equal(
        loaded.query_encoder.encode(TITLES), model.query_encoder.encode(TITLES)
    )


@pytest.mark.parametrize("lazy", [True, False])
def test_tied_towers_learn_as_two_calls_of_one_encoder(lazy):
    """Hashed and encoded together, a batch gives the step that it gives
    apart: W - eps g, with g renormalised to 1."""
    model = two_tower(lazy, shared=True)
    encoder = model.query_encoder
    variables = encoder.trainable_variables
    titles = [TITLES[0], *TITLES[:3]]  # one of them twice
    with tf.GradientTape() as tape:
        cosines = cosine_matrix(encoder(QUERIES[:4]), encoder(titles[1:]))
        loss = dssm.CosineSoftmax()(np.eye(3)[[0, 0, 1, 2]], cosines)
    gradients = [  # the table's, in which rows occur twice, as a whole
        tf.convert_to_tensor(gradient)
        for gradient in tape.gradient(loss, [v.value for v in variables])
    ]
    norm = max(1.0, float(tf.linalg.global_norm(gradients)))
    expected = [
        v.numpy() - 0.1 / norm * g.numpy()
        for v, g in zip(variables, gradients, strict=True)
    ]
    batch = tf.constant(QUERIES[:4]), tf.constant(titles)
    found = float(model.train_step(batch)["loss"])
    assert found == pytest.approx(float(loss), rel=1e-5)
    model.sync_weights()
    check_equal(variables, expected, atol=1e-6)


def test_tied_towers_hash_together():
    model = two_tower(shared=True)
    hashed = model.query_encoder.trigrams.distinct(tf.constant(QUERIES))
    with pytest.raises(dssm.InputError, match="give a dataset of strings"):
        model.fit(one_batch(hashed, hashed), verbose=0)


def test_predict_gives_the_cosines_of_pairs(warm):
    model = warm(two_tower)
    expected = (
        model.query_encoder.encode(QUERIES)
        * model.document_encoder.encode(TITLES)
    ).sum(axis=1)
    pairs = tf.data.Dataset.from_tensor_slices((QUERIES, TITLES)).batch(3)
    for found in (
        model.predict(QUERIES, TITLES, 5, verbose=0),
        model.predict(tuple(QUERIES), np.array(TITLES, object), verbose=0),
        model.predict(pairs, verbose=0),
        model.predict_on_batch(QUERIES, tf.constant(TITLES)),
        model.predict_on_batch((QUERIES, TITLES)),
        model((QUERIES, TITLES)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert model.predict([], [], verbose=0).shape == (0,)


def test_arguments_by_position():
    one, other = (two_tower(run_eagerly=True) for _ in range(2))
    history = one.fit(QUERIES, TITLES, 8, 2, 0).history
    other.fit(x=QUERIES, y=TITLES, batch_size=8, epochs=2, verbose=0)
    assert len(history["loss"]) == 2
    assert int(one.optimizer.iterations.numpy()) == 4
    check_equal(one, other)
    assert one.evaluate(QUERIES, TITLES, 8, 0) == other.evaluate(
        x=QUERIES, y=TITLES, batch_size=8, verbose=0
    )


def test_validation_split_takes_the_last_pairs():
    one, other = (two_tower(run_eagerly=True) for _ in range(2))
    found = fit(one, validation_split=0.25).history["val_loss"]
    last = QUERIES[12:], TITLES[12:]
    expected = other.fit(
        QUERIES[:12], TITLES[:12], 3, verbose=0, validation_data=last
    ).history["val_loss"]
    assert found == expected
    check_equal(one, other)
    assert loss_of(one, *last, batch_size=3) == found[0]


def test_a_sorted_validation_list_has_the_loss_of_a_shuffled_one(warm):
    """In the order of titles most batches have one title, and a loss of 0."""
    pairs = [(f"part {n % 6}", f"part no {n % 6}") for n in range(96)]
    data = tuple(zip(*sorted(pairs), strict=True))
    model = warm(two_tower)
    in_order, *orders = (
        pair_batches(*data, batch_size=8, shuffle_seed=seed)
        for seed in (None, 0, 1, 2)
    )
    shuffled = [loss_of(model, order) for order in orders]
    assert loss_of(model, in_order) < 0.3 * min(shuffled)
    found = loss_of(model, *data, batch_size=8)
    assert found == pytest.approx(np.mean(shuffled), rel=0.1)
    fitted = fit(model, validation_data=data, validation_batch_size=8)
    assert fitted.history["val_loss"][0] > 0.5 * min(shuffled)


@pytest.mark.parametrize("negatives", ["in_batch", "random"])
def test_a_fit_without_negatives_is_warned_of_once(negatives, capsys):
    """Its loss of 0 and accuracy of 1 look perfect."""
    model = two_tower(negatives=negatives, run_eagerly=True)
    titles = ["Desk lamp", "desk  LAMP"] * 8  # as one after normalisation
    options = {"batch_size": 8, "verbose": 2}
    history = model.fit(QUERIES, titles, epochs=2, **options).history
    assert history["loss"] == [0, 0] and history["accuracy"] == [1, 1]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "warning: the loss of epoch 1 is 0: nothing was learnt; "
    )
    model.fit(QUERIES, titles, epochs=1, batch_size=8, verbose=0)
    model.fit(QUERIES, [*titles[:-1], "desk"], epochs=1, **options)
    assert capsys.readouterr().err == ""
    model.fit(QUERIES, TITLES, batch_size=1, epochs=5, initial_epoch=4)
    assert "the loss of epoch 5 is 0" in capsys.readouterr().err


def test_callbacks_of_keras(warm, tmp_path):
    """The first epoch's weights, saved and restored, are those of a fit."""
    epoch, stopped = warm(two_tower), warm(two_tower)
    fit(epoch)
    early = keras.callbacks.EarlyStopping(
        "loss", patience=1, mode="max", restore_best_weights=True
    )
    saved = keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras")
    history = fit(stopped, epochs=9, callbacks=[early, saved]).history
    assert len(history["loss"]) == 2  # the loss got smaller
    check_equal(stopped, epoch)
    check_equal(keras.saving.load_model(tmp_path / "1.keras"), epoch)


def test_ways_to_draw_negatives_agree(warm):
    graph = warm(two_tower, negatives="random")
    expected = fit(graph, epochs=2).history["loss"]
    for options in ({"run_eagerly": True}, {"steps_per_execution": 2}):
        model = two_tower(negatives="random", **options)
        found = fit(model, epochs=2).history["loss"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        check_equal(model, graph, atol=1e-6)


def test_an_encoder_that_was_not_adapted_is_refused():
    towers = [
        dssm.CombinedEncoder(cells=2, bag=2, sketch=3, length_norm=norm)
        for norm in (1.0, 0.5)
    ]
    model = dssm.TwoTower(*towers)
    model.compile(dssm.NesterovMomentum(), dssm.CosineSoftmax())
    for adapted in ([], towers[:1]):
        for tower in adapted:
            tower.adapt(TITLES)
        with pytest.raises(dssm.InputError, match=r"call adapt\(titles\) with"):
            fit(model)
    assert model.needs_adapt
    model.adapt(TITLES)
    assert not model.needs_adapt
    model.train_step((tf.constant(QUERIES), tf.constant(TITLES)))

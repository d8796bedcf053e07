"""What a Keras user tries with a model of pairs: right, or one clear line."""

import shutil
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.cosine import cosine_matrix
from keras_lstm_dssm.models import two_tower as two_tower_module
from keras_lstm_dssm.models.pair_batch import pair_batches
from tests.models.small_towers import QUERIES, TITLES, fit, two_tower


def steps(model: dssm.TwoTower, count: int) -> None:
    """Training steps of one pair each, not traced."""
    for number in range(count):
        row = slice(number, number + 1)
        model.train_step((tf.constant(QUERIES[row]), tf.constant(TITLES[row])))


def check_equal(
    one: dssm.TwoTower, other: dssm.TwoTower, atol: float = 0.0
) -> None:
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


def loss(found: Any) -> float:
    """Returns the loss from what `evaluate` or `train_on_batch` returned."""
    return float(found[0])


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
    model = two_tower(shared=True)
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
    for variable, value in zip(variables, expected, strict=True):
        np.testing.assert_allclose(variable, value, atol=1e-6)


def test_tied_towers_hash_together():
    model = two_tower(shared=True)
    hashed = model.query_encoder.trigrams.distinct(tf.constant(QUERIES))
    pairs = tf.data.Dataset.from_tensors((hashed, hashed))
    with pytest.raises(InputError, match="give a dataset of strings"):
        model.fit(pairs, verbose=0)


def test_predict_gives_the_cosines_of_pairs(warm):
    model = warm(two_tower)
    expected = (
        model.query_encoder.encode(QUERIES)
        * model.document_encoder.encode(TITLES)
    ).sum(axis=1)
    pairs = tf.data.Dataset.from_tensor_slices((QUERIES, TITLES)).batch(3)
    for found in (
        model.predict(QUERIES, TITLES, 5, verbose=0),
        model.predict(pairs, verbose=0),
        model.predict_on_batch(QUERIES, TITLES),
        model.predict_on_batch((QUERIES, TITLES)),
        model((QUERIES, TITLES)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert model.predict([], [], verbose=0).shape == (0,)


def test_evaluating_is_repeatable_and_moves_nothing(warm):
    """Random negatives of a measurement are its own."""
    models = []
    for validated in (False, True):
        model = warm(two_tower, negatives="random")
        fit(model, validation_data=(QUERIES, TITLES) if validated else None)
        losses = {
            loss(model.evaluate(QUERIES, TITLES, verbose=0)) for _ in "ab"
        }
        assert len(losses) == 1
        models.append(model)
    check_equal(*models)


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
    assert loss(one.evaluate(*last, batch_size=3, verbose=0)) == found[0]


def test_a_sorted_validation_list_has_the_loss_of_a_shuffled_one(warm):
    """Sorted, most batches would hold one title, and cost nothing."""
    pairs = [(f"part {n % 6}", f"part no {n % 6}") for n in range(96)]
    queries, titles = zip(*sorted(pairs), strict=True)
    model = warm(two_tower)
    in_order = pair_batches(queries, titles, batch_size=8)
    orders = [
        pair_batches(queries, titles, batch_size=8, shuffle_seed=seed)
        for seed in range(3)
    ]
    shuffled = [loss(model.evaluate(order, verbose=0)) for order in orders]
    assert loss(model.evaluate(in_order, verbose=0)) < 0.3 * min(shuffled)
    found = loss(model.evaluate(queries, titles, batch_size=8, verbose=0))
    assert found == pytest.approx(np.mean(shuffled), rel=0.1)
    fitted = fit(
        model, validation_data=(queries, titles), validation_batch_size=8
    )
    assert fitted.history["val_loss"][0] > 0.5 * min(shuffled)


def test_each_fit_of_lists_has_an_order_of_its_own(monkeypatch):
    """And all of them are functions of the seed."""
    orders: list[list] = []

    def recorded(*args: Any, **kwargs: Any) -> tf.data.Dataset:
        batches = pair_batches(*args, **kwargs)
        orders.append(list(batches.unbatch().as_numpy_iterator()))
        return batches

    monkeypatch.setattr(two_tower_module, "pair_batches", recorded)
    texts = [str(n) for n in range(16)]
    for _ in range(2):
        model = two_tower(run_eagerly=True)
        for _ in range(2):
            model.fit(texts, texts, batch_size=16, verbose=0)
    assert orders[:2] == orders[2:]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


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


@pytest.mark.parametrize(
    ("negatives", "ways"),
    [
        ("in_batch", [{"run_eagerly": True}]),
        ("random", [{"run_eagerly": True}, {"steps_per_execution": 2}]),
    ],
    ids=["in_batch", "random"],
)
def test_ways_to_run_a_step_agree(warm, negatives, ways):
    options = {} if negatives == "in_batch" else {"negatives": negatives}
    graph = warm(two_tower, **options)
    expected = fit(graph, epochs=2).history["loss"]
    for options in ways:
        model = two_tower(negatives=negatives, **options)
        found = fit(model, epochs=2).history["loss"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        check_equal(model, graph, atol=1e-6)


def test_one_batch_of_lists(warm):
    """Lists, arrays and tensors; a step on a batch is a fit of it."""
    model, fitted = warm(two_tower), warm(two_tower)
    batches = [slice(start, start + 4) for start in range(0, 16, 4)]
    for kind, rows in zip(
        (list, tuple, lambda x: np.array(x, object), tf.constant),
        batches,
        strict=True,
    ):
        found = model.train_on_batch(
            kind(QUERIES[rows]), kind(TITLES[rows]), return_dict=True
        )
    fitted.fit(QUERIES, TITLES, 4, shuffle=False, verbose=0)
    check_equal(model, fitted, atol=1e-6)
    np.testing.assert_allclose(
        model.query_encoder.encode(QUERIES),
        fitted.query_encoder.encode(QUERIES),
        atol=1e-6,
    )
    assert set(found) == {"loss", "accuracy"}
    assert loss(model.test_on_batch(QUERIES, TITLES)) == pytest.approx(
        loss(fitted.evaluate(QUERIES, TITLES, verbose=0)), rel=1e-4
    )


def test_plot(tmp_path):
    pytest.importorskip("pydot")
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    picture = tmp_path / "model.png"
    keras.utils.plot_model(
        two_tower(), picture, show_shapes=True, expand_nested=True
    )
    assert picture.stat().st_size > 1000

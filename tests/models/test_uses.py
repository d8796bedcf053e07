"""Uses that a step alone does not show: freezing, sharing, going on."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import cosine_matrix

QUERIES = ["hex bolt", "wood glue", "drill", "lamp"] * 4
TITLES = ["steel hex bolt", "wood glue 8 oz", "drill kit", "desk lamp"] * 4


def two_tower(lazy: bool = True, shared: bool = False) -> dssm.TwoTower:
    keras.utils.set_random_seed(5)
    query = dssm.LSTMEncoder(4)
    document = query if shared else dssm.LSTMEncoder(4)
    model = dssm.TwoTower(query, document, negatives="in_batch")
    model.compile(dssm.NesterovMomentum(0.1, lazy=lazy), dssm.CosineSoftmax())
    return model


def fit(model: dssm.TwoTower, epochs: int = 2) -> None:
    model.fit(QUERIES, TITLES, epochs=epochs, batch_size=3, verbose=0)


@pytest.mark.parametrize("again", ["same optimizer", "after pending rows"])
def test_compiling_again_loses_nothing(again: str) -> None:
    """Rows that are behind stay as far behind, or are brought up to date."""
    weights = []
    for lazy in (True, False):
        model = two_tower(lazy)
        fit(model)
        if again == "same optimizer":
            model.compile(model.optimizer, dssm.CosineSoftmax())
        else:
            model.train_step((tf.constant(["lamp"]), tf.constant(["lamp"])))
            model.compile(
                dssm.NesterovMomentum(0.1, lazy=lazy), dssm.CosineSoftmax()
            )
        fit(model, 1)
        weights.append([w.numpy() for w in model.trainable_weights])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_frozen_tower_stays_as_it_is() -> None:
    model = two_tower()
    model.document_encoder.trainable = False
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
    documents = model.document_encoder.encode(TITLES)
    queries = model.query_encoder.encode(QUERIES)
    fit(model)
    np.testing.assert_array_equal(
        model.document_encoder.encode(TITLES), documents
    )
    assert abs(model.query_encoder.encode(QUERIES) - queries).max() > 0.01


def test_one_encoder_for_both_towers(tmp_path) -> None:
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
def test_tied_towers_learn_as_two_calls_of_one_encoder(lazy: bool) -> None:
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
    model.settle()
    for variable, value in zip(variables, expected, strict=True):
        np.testing.assert_allclose(variable, value, atol=1e-6)


def test_tied_towers_hash_together() -> None:
    model = two_tower(shared=True)
    hashed = model.query_encoder.trigrams.distinct(tf.constant(QUERIES))
    pairs = tf.data.Dataset.from_tensors((hashed, hashed))
    with pytest.raises(InputError, match="give a dataset of strings"):
        model.fit(pairs, verbose=0)


def test_predict_gives_the_cosines_of_pairs() -> None:
    model = two_tower()
    expected = (
        model.query_encoder.encode(QUERIES)
        * model.document_encoder.encode(TITLES)
    ).sum(axis=1)
    pairs = tf.data.Dataset.from_tensor_slices((QUERIES, TITLES)).batch(3)
    for found in (
        model.predict(QUERIES, TITLES, batch_size=5, verbose=0),
        model.predict(pairs, verbose=0),
        model((QUERIES, TITLES)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_evaluating_is_repeatable_and_moves_nothing() -> None:
    """Random negatives of a measurement are its own."""
    weights = []
    for validated in (False, True):
        keras.utils.set_random_seed(5)
        model = dssm.TwoTower(dssm.RNNEncoder(4), dssm.RNNEncoder(4))
        model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
        validation = (QUERIES, TITLES) if validated else None
        model.fit(
            QUERIES, TITLES, batch_size=4, verbose=0, validation_data=validation
        )
        weights.append([w.numpy() for w in model.trainable_weights])
        losses = {model.evaluate(QUERIES, TITLES, verbose=0)[0] for _ in "ab"}
        assert len(losses) == 1
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_train_on_batch_and_order_of_lists() -> None:
    model = two_tower()
    batch = np.array(QUERIES, object), np.array(TITLES, object)
    first = model.train_on_batch(*batch, return_dict=True)["loss"]
    for _ in range(5):
        last = model.train_on_batch(*batch, return_dict=True)["loss"]
    assert last < first
    # Unshuffled, one batch an update, lists are read in their order.
    one, other = two_tower(), two_tower()
    one.fit(QUERIES, TITLES, batch_size=4, shuffle=False, verbose=0)
    for start in range(0, 16, 4):
        rows = slice(start, start + 4)
        other.train_step(
            (tf.constant(QUERIES[rows]), tf.constant(TITLES[rows]))
        )
    other.settle()
    for a, b in zip(
        one.trainable_weights, other.trainable_weights, strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="query's has 4, the document's 8"):
        dssm.TwoTower(dssm.RNNEncoder(4), dssm.RNNEncoder(8))
    with pytest.raises(InputError, match="own metrics"):
        two_tower().compile("sgd", dssm.CosineSoftmax(), metrics=["accuracy"])
    with pytest.raises(InputError, match="got one list"):
        two_tower().fit(QUERIES)
    singles = tf.data.Dataset.from_tensor_slices((QUERIES, TITLES))
    with pytest.raises(InputError, match=r"\.batch\(256\)"):
        two_tower().fit(singles)
    for wrong in (
        lambda: dssm.LSTMEncoder(0),
        lambda: dssm.RNNEncoder(4, truncate=-1),
        lambda: dssm.DSSMEncoder([]),
        lambda: dssm.CLSMEncoder(window=2),
    ):
        with pytest.raises(InputError):
            wrong()

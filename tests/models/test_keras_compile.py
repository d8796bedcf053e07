"""What `compile` of a `TwoTower` takes from Keras: metrics and options."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.models.small_matchers import small_scorer
from tests.models.small_towers import QUERIES, TITLES, fit, two_tower

WEIGHTS = np.linspace(0.5, 2, 16)


def measures() -> dict[str, Any]:
    top = keras.metrics.TopKCategoricalAccuracy(k=2, name="top_2")
    error = keras.metrics.MeanSquaredError(name="weighted_error")
    return {"metrics": [top, "mse"], "weighted_metrics": [error]}


def test_metrics_are_of_cosines_and_labels(tmp_path):
    """A batch has four distinct titles: the clicked one and negatives."""
    model = two_tower(**measures())
    queries, titles = QUERIES[:3] + TITLES[:1], TITLES[:4]
    found = model.evaluate(
        queries * 4, titles * 4, sample_weight=WEIGHTS, verbose=0,
        return_dict=True,
    )  # fmt: skip
    cosines = (
        model.query_encoder.encode(queries)
        @ model.document_encoder.encode(titles).T
    )
    order = np.argsort(-cosines, axis=1)[:, :2]
    top_2 = np.mean([row in order[row] for row in range(4)])
    errors = np.mean((cosines - np.eye(4)) ** 2, axis=1)
    assert set(found) == {
        "loss", "accuracy", "top_2", "mse", "weighted_error",
    }  # fmt: skip
    assert found["top_2"] == pytest.approx(top_2)
    assert found["mse"] == pytest.approx(errors.mean(), rel=1e-5)
    weighted = np.average(np.tile(errors, 4), weights=WEIGHTS)
    assert found["weighted_error"] == pytest.approx(weighted, rel=1e-5)

    stop = keras.callbacks.EarlyStopping("val_top_2", mode="max")
    history = fit(
        model, validation_data=(queries, titles), callbacks=[stop]
    ).history
    assert {"top_2", "val_top_2", "val_mse"} <= set(history)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected = model.evaluate(queries, titles, verbose=0, return_dict=True)
    again = loaded.evaluate(queries, titles, verbose=0, return_dict=True)
    assert again == pytest.approx(expected, rel=1e-5)


def test_a_random_negative_that_is_the_clicked_document_counts_as_minus_1():
    def lowest(y: tf.Tensor, cosines: tf.Tensor) -> tf.Tensor:
        return tf.reduce_min(cosines, axis=-1)

    def clicked(y: tf.Tensor, cosines: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(y, axis=-1)

    model = two_tower(negatives="random", n=3, metrics=[lowest, clicked])
    found = model.evaluate(
        ["a", "b"], ["bolt", "bolt"], verbose=0, return_dict=True
    )
    assert (found["lowest"], found["clicked"]) == (-1, 1)


def test_what_compile_and_save_do_not_take(tmp_path):
    model, scorer = two_tower(), small_scorer()
    sgd = keras.optimizers.SGD()
    for message, call in (
        ("accuracy is a metric of every TwoTower: leave it out",
         lambda: model.compile(sgd, model.loss, metrics=["accuracy"])),
        ("takes no others", lambda: scorer.compile(
            sgd, dssm.PairwiseHinge(), metrics=["mse"])),
        (r"model\.h5: HDF5 cannot hold .* ends in \.keras",
         lambda: model.save(tmp_path / "model.h5")),
        (r"encoder\.hdf5: HDF5 cannot hold",
         lambda: model.query_encoder.save(tmp_path / "encoder.hdf5")),
    ):  # fmt: skip
        with pytest.raises(dssm.InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_bfloat16():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        with pytest.raises(dssm.InputError, match="not in mixed_bfloat16, in"):
            dssm.DSSMEncoder([2])
        tower = dssm.DSSMEncoder([2], dtype="float32")
        model = dssm.TwoTower(tower, tower, dtype="float32")
        model.compile("sgd", dssm.CosineSoftmax())
    finally:
        keras.config.set_dtype_policy(policy)
    losses = fit(model, 2).history["loss"]
    assert np.isfinite(losses).all()

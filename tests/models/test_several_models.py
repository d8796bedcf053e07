"""A process that makes several models is not warned of retracing."""

from tests.fresh_process import FreshProcesses

CODE = """
import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
import keras_lstm_dssm as dssm
from tests.models import small_keyvec, small_matchers
from tests.models.small_towers import QUERIES, TITLES, two_tower

# TensorFlow warns of the fifth trace of a function's code; here, to trace less,
# of the second.
polymorphic_function.FREQUENT_TRACING_WARNING_THRESHOLD = 2
texts, ones = tf.constant(QUERIES), np.ones((16, 1))


def adapted():
    tower = dssm.CombinedEncoder(2, bag=2, sketch=2)
    tower.adapt(TITLES)
    model = dssm.TwoTower(tower, tower, negatives="in_batch")
    model.compile("sgd", dssm.CosineSoftmax(), run_eagerly=True)
    model.fit(QUERIES[:4], TITLES[:4], verbose=0)
    model.query_encoder.encode(QUERIES)


def towers():
    model = two_tower(negatives="corpus")
    pairs = QUERIES[:4], TITLES[:4]
    model.fit(*pairs, verbose=0, validation_data=pairs)
    model.evaluate(*pairs, verbose=0)
    model.predict(*pairs, verbose=0)
    model.query_encoder.encode(QUERIES)


def stock_model():
    model = keras.Sequential([
        keras.Input((), dtype="string"), dssm.LetterTrigrams(),
        dssm.TrigramEmbedding(8), dssm.Recurrent(dssm.PeepholeLSTMCell(2)),
        keras.layers.Dense(1),
    ])
    model.compile(dssm.NesterovMomentum(0.1), "mse")
    model.fit(texts, ones, verbose=0, callbacks=[dssm.NesterovSchedule()])
    model.evaluate(texts, ones, verbose=0)
    model.predict(texts, verbose=0)


def scorer():
    model = small_matchers.small_scorer()
    for query in ("bolt", "hex bolt of steel", "wood glue"):
        model.score(query, TITLES[:2])
    model.score_pairs(QUERIES, TITLES)


def keyvec():
    small_keyvec.small_keyvec().encode(small_keyvec.DOCUMENTS)


for make in (adapted, towers, stock_model, scorer, keyvec):
    for _ in range(2):
        make()
"""


def test_no_function_of_this_package_is_said_to_be_traced_too_often(
    fresh_process: FreshProcesses,
) -> None:
    """Keras's own is: `TensorFlowTrainer`, of Keras 3.15, with any models."""
    with fresh_process.start(CODE) as process:
        errors = process.communicate()[1]
    assert process.returncode == 0, errors
    warned = [line for line in errors.splitlines() if "retracing" in line]
    assert any("<function TensorFlowTrainer" in line for line in warned)
    ours = [line for line in warned if "<function TensorFlowTr" not in line]
    assert ours == []

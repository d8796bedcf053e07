"""What a model of pairs refuses, with one clear line."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import TrigramVectors, VocabularyVectors
from keras_lstm_dssm.matchers import MVLSTM, RecurrentCosine
from tests.models.small_towers import QUERIES, TITLES, fit, two_tower
from tests.precision import precision

REFUSED = {
    "class_weight": lambda m: fit(m, class_weight={0: 2.0}),
    "sample_weight": lambda m: fit(m, sample_weight=np.ones(16)),
    "sample_weight is not": lambda m: fit(
        m, validation_data=(QUERIES, TITLES, np.ones(16))
    ),
    "sample_weight is": lambda m: m.evaluate(
        QUERIES, TITLES, sample_weight=np.ones(16)
    ),
    "class_weight is": lambda m: m.train_on_batch(
        QUERIES, TITLES, class_weight={0: 1.0}
    ),
    "sample_weight is n": lambda m: m.test_on_batch(QUERIES, TITLES, [1] * 16),
    "XLA has no string": lambda m: m.compile(
        "sgd", dssm.CosineSoftmax(), jit_compile=True
    ),
    "two metrics, loss and accuracy, and": lambda m: m.compile(
        "sgd", dssm.CosineSoftmax(), metrics=["accuracy"]
    ),
    "measure rankings with dssm.Rank": lambda m: m.compile(
        "sgd", dssm.CosineSoftmax(), weighted_metrics=["accuracy"]
    ),
    "export_models": lambda m: m.export("folder"),
    "got one list": lambda m: m.fit(QUERIES),
    "got one tuple": lambda m: m.predict_on_batch((QUERIES, TITLES, TITLES)),
    "^found no examples: expected": lambda m: m.fit([], []),
    "^found no examples": lambda m: m.evaluate([], []),
    "found no examples: ": lambda m: m.train_on_batch([], []),
    r"\.batch\(256\)": lambda m: m.fit(
        tf.data.Dataset.from_tensor_slices((QUERIES, TITLES))
    ),
    "query's has 4, the document's 8": lambda _: dssm.TwoTower(
        dssm.RNNEncoder(4), dssm.RNNEncoder(8)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    with pytest.raises(InputError, match=message) as caught:
        REFUSED[message](two_tower())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dssm.LSTMEncoder(0),
        lambda: dssm.RNNEncoder(4, truncate=-1),
        lambda: dssm.DSSMEncoder([]),
        lambda: dssm.CLSMEncoder(window=2),
    ],
)
def test_encoders_that_cannot_be(make):
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize("policy", ["mixed_float16", "float16", "bfloat16"])
def test_half_precision_is_refused(policy):
    """In each layer with weights, and in models of float32 layers."""
    towers = [dssm.DSSMEncoder([3]) for _ in range(2)]
    words = VocabularyVectors(["bolt"], 4)
    matcher = MVLSTM(4, 2, hidden=3)
    only = f" computes in float32 or float64, not in {policy}; pass dtype="
    with precision("float32"):
        keras.config.set_dtype_policy(policy)
        for make in (
            lambda: dssm.DSSMEncoder([3]),
            lambda: VocabularyVectors(["bolt"], 4),
            lambda: TrigramVectors(4),
            lambda: MVLSTM(4, 2, hidden=3),
            lambda: RecurrentCosine(4, 2),
        ):
            with pytest.raises(InputError, match=only):
                make()
        for model, loss in (
            (dssm.TwoTower(*towers), dssm.CosineSoftmax()),
            (dssm.PairScorer(words, matcher), dssm.PairwiseHinge()),
            (dssm.KeyVec(words), dssm.KeyVecLoss()),
        ):
            name = type(model).__name__
            with pytest.raises(InputError, match=f"^{name}{only}"):
                model.compile(dssm.NesterovMomentum(), loss)


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
        with pytest.raises(InputError, match=r"call adapt\(titles\) with"):
            fit(model)
    assert model.needs_adapt
    model.adapt(TITLES)
    assert not model.needs_adapt
    model.train_step((tf.constant(QUERIES), tf.constant(TITLES)))

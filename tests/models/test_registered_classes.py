"""Every class that Keras knows under the package's name survives saving."""

from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.layers import TrigramVectors, VocabularyVectors
from keras_lstm_dssm.registration import PACKAGE
from tests.encoders.small import EACH, small_encoder
from tests.kit.equal import check_equal
from tests.matchers import ragged_texts
from tests.models.small_matchers import MeanDot, hashed_words

HASHING = {
    "oov_buckets": 3, "max_words": 9, "split": "alphanumeric", "name": "mine",
}  # fmt: skip
LSTM = {"peephole": "full", "forget_gate": True}
STACK = {
    "filters": [2, 3], "width": 2, "activation": "tanh", "use_bias": False,
}  # fmt: skip
SAMPLES: dict[str, dict[str, Any]] = {  # no argument has its default
    "HashedUniform": {"limit": 0.5, "seed": 3},
    "LetterTrigrams": HASHING,
    "TrigramEmbedding": {"size": 7, "units": 2, "initializer": "ones"},
    "PeepholeLSTMCell": {"units": 2, **LSTM, "project_inputs": False},
    "RNNCell": {"units": 2, "project_inputs": False},
    "Recurrent": {"cell": dssm.RNNCell(2), "truncate": 3},
    "PeepholeLSTM": {
        "units": 2, **LSTM, "truncate": 3, "project_inputs": False,
    },
    "LSTMEncoder": {"cells": 2, **LSTM, "truncate": 3, **HASHING},
    "BidirectionalLSTMEncoder": {"cells": 2, **LSTM, "truncate": 3, **HASHING},
    "LayerEncoder": {
        "layer": keras.Sequential([
            keras.layers.TextVectorization(
                vocabulary=["b", "上海"], output_mode="multi_hot"
            ),
            keras.layers.Dense(2),
        ]),
        "name": "mine", "dtype": "float64",
    },
    "RNNEncoder": {"units": 2, "truncate": 3, **HASHING},
    "DSSMEncoder": {"units": [3, 2], "dtype": "float64", **HASHING},
    "CombinedEncoder": {
        "cells": 2, "bag": 3, "sketch": 4, "shares": [1.0, 2.0, 3.0, 4.0],
        "length_norm": 0.25, "known_words": 3, "known_trigrams": 4, "units": 2,
        **{**HASHING, "split": "space"},
    },
    "VocabularyVectors": {
        "vocabulary": ("b", "上海"), "dimension": 2, "max_words": 9,
        "initializer": "ones", "split": "space", "name": "mine",
    },
    "TrigramVectors": {"dimension": 2, **HASHING, "split": "space"},
    "WordRows": {"words": 3, "trigrams": 4, "units": 2},
    "WordSumEncoder": {
        "known_words": 3, "known_trigrams": 4, "units": 2,
        **{**HASHING, "split": "space"},
    },
    "WordSketch": {"units": 2, "buckets": 8, "start": 2, "seed": 1},
    "CLSMEncoder": {"window": 1, "filters": 3, "units": 2, **HASHING},
    "TwoTower": {
        "query_encoder": dssm.RNNEncoder(2),
        "document_encoder": dssm.DSSMEncoder([2]), "negatives": "in_batch",
        "n": 2, "seed": 3,
    },
    "DotInteraction": {"name": "mine"},
    "CosineInteraction": {"name": "mine"},
    "BilinearInteraction": {"dimension": 2, "name": "mine"},
    "TensorInteraction": {"dimension": 2, "slices": 3, "name": "mine"},
    "KMaxPooling": {"k": 2, "name": "mine"},
    "PositionalBiLSTM": {"word_dimension": 2, "units": 3, "include_word": True},
    "RecurrentCosine": {
        "word_dimension": 2, "units": 3, "bidirectional": True, "share": False,
        "scale": 3.0, "forget_bias": 1.0,
    },
    "MVLSTM": {
        "word_dimension": 2, "units": 3, "interaction": "bilinear",
        "slices": 4, "k": 2, "hidden": 6, "share": False, "include_word": True,
        "pooling": "dynamic", "grid": [2, 3], "rank": 7, "unit_length": True,
    },
    "DynamicPooling": {
        "rows": 2, "columns": 3, "mode": "min", "repeat": "double",
    },
    "MaskedConvolution": {
        "filters": 2, "width": 4, "padding": "narrow", "activation": "tanh",
        "use_bias": False,
    },
    "OrderedKMax": {"name": "mine"},
    "WindowPoolingStack": {**STACK, "max_words": 9},
    "KMaxStack": {**STACK, "activation": "relu", "k_top": 3, "k_min": 4},
    "PhraseSimilarity": {
        "dimension": 2, "kind": "concat", "activation": "relu",
        "use_bias": False,
    },
    "ScoringMLP": {"hidden": [2, 3], "activation": "tanh"},
    "ARCI": {
        "word_dimension": 2, **STACK, "pooling": "k_max", "hidden": [2],
        "max_words": 9,
    },
    "ARCII": {
        "word_dimension": 2, "filters": [2, 3], "width": 2, "padding": "wide",
        "hidden": [2], "max_words": 9,
    },
    "CNTN": {
        "word_dimension": 2, "filters": [2, 3], "width": 2, "use_bias": False,
        "k_top": 3, "k_min": 4, "dimension": 5, "slices": 2,
    },
    "MultiGranCNN": {
        "word_dimension": 2, "blocks": 2, "width": 2, "activation": "relu",
        "use_bias": False, "k_min": 3, "similarity": "concat",
        "similarity_activation": "tanh", "sizes": [3, 2],
        "match_filters": [2], "hidden": [2],
    },
    "DeepMatch": {
        "word_dimension": 3, "topics": [2, 3], "units": 1, "rank": 2,
        "committee": 4, "largest": 5, "mass": 0.5, "overlap": 0.25,
        "passes": 1,
    },
    "RAE": {
        "word_dimension": 3, "head": "root", "tree": "balanced", "size": 4,
        "hidden": [5], "max_words": 6, "numbers": 7, "epochs": 1,
        "learning_rate": 0.5,
    },
    "RecursiveAutoencoder": {
        "dimension": 3, "tree": "balanced", "max_words": 6,
    },
    "PairScorer": {"words": hashed_words(), "matcher": MeanDot(), "seed": 3},
    "SentenceEncoder": {"word_dimension": 2, "filters": 3, "windows": [1, 4]},
    "SentenceReader": {"sentence_dimension": 2, "units": 3, "scores": False},
    "DocumentEncoder": {"state_dimension": 2, "dimension": 3},
    "KeyVec": {
        "words": TrigramVectors(2), "key_vocabulary": ("b", "上海"),
        "filters": 2, "windows": [2], "units": 3, "dimension": 4,
        "weighted": False, "dropout": 0.5, "max_sentences": 9, "seed": 3,
        "name": "mine",
    },
    "KeyVecLoss": {
        "read_weight": 0.5, "word_weight": 0.25, "normalize": True,
        "reduction": "sum", "name": "mine",
    },
    "PairwiseHinge": {"margin": 0.5, "reduction": "sum", "name": "mine"},
    "Adagrad": {
        "learning_rate": 0.5, "epsilon": 0.25, "multipliers": {"kernel": 0.5},
        "name": "mine",
    },
    "CosineSoftmax": {"gamma": 2.0, "reduction": "sum", "name": "mine"},
    "NesterovMomentum": {
        "learning_rate": 0.5, "momentum": 0.25, "threshold": None,
        "lazy": False, "name": "mine",
    },
}  # fmt: skip
REGISTERED = {
    name.removeprefix(f"{PACKAGE}>"): kind
    for name, kind in keras.saving.get_custom_objects().items()
    if name.startswith(f"{PACKAGE}>")
}


def test_every_registered_class_has_a_sample():
    assert set(SAMPLES) == set(REGISTERED)


@pytest.mark.parametrize("class_name", SAMPLES)
def test_configuration_round_trip(class_name):
    kind, arguments = REGISTERED[class_name], SAMPLES[class_name]
    one = kind(**arguments)
    config = one.get_config()
    for name, value in arguments.items():
        if isinstance(value, int | float | list | None) or name == "name":
            assert config[name] == value
    again = kind.from_config(config)
    assert again.get_config() == config
    serialized = keras.saving.serialize_keras_object(one)
    assert serialized["registered_name"] == f"{PACKAGE}>{class_name}"
    loaded = keras.saving.deserialize_keras_object(serialized)
    assert type(loaded) is kind and loaded.get_config() == config


class Scaled(dssm.LSTMEncoder):
    """Of a user: one argument is an attribute, the other one is not."""

    def __init__(
        self, scale: float = 1.0, secret: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self._secret = secret


def test_a_subclass_adds_its_arguments_to_the_configuration():
    config = Scaled(2.0, 3, cells=4, name="mine").get_config()
    assert (config["scale"], config["cells"], config["name"]) == (2, 4, "mine")
    assert "secret" not in config
    assert Scaled.from_config(config).get_config() == config


def layers_alone() -> list[keras.layers.Layer]:
    return [
        dssm.PeepholeLSTM(2, "full", forget_gate=True),
        dssm.Recurrent(dssm.RNNCell(2), truncate=1),
        keras.layers.RNN(dssm.PeepholeLSTMCell(2, "diagonal")),
    ]


@pytest.mark.parametrize("place", range(3))
def test_recurrent_layers_save_in_a_functional_model(place, tmp_path):
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, layers_alone()[place](inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    words = np.linspace(-1, 1, 24, dtype="float32").reshape(2, 4, 3)
    np.testing.assert_array_equal(model(words), loaded(words))


@pytest.mark.parametrize(
    "name",
    ["ARCI", "ARCII", "CNTN", "MultiGranCNN", "RecurrentCosine", "MVLSTM"],
)
def test_matchers_keep_their_weights(name, tmp_path):
    matcher = REGISTERED[name](**SAMPLES[name])
    ragged_texts.randomise(matcher)
    scorer = dssm.PairScorer(VocabularyVectors(["bolt"], 2), matcher)
    scorer.save(tmp_path / "scorer.keras")
    loaded = keras.saving.load_model(tmp_path / "scorer.keras").matcher
    assert loaded.get_config() == matcher.get_config()
    texts = ragged_texts.pairs(2)
    np.testing.assert_array_equal(loaded(*texts), matcher(*texts))


@pytest.mark.parametrize("name", EACH)
def test_encoders_keep_their_weights(name, tmp_path):
    encoder = small_encoder(name, oov_buckets=5)
    encoder.before_read = lambda: None  # is of a model and its optimizer
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert loaded.before_read is None
    assert loaded.get_config() == encoder.get_config()
    check_equal(encoder.variables, loaded.variables)
    texts = ["hotels in 上海", ""]
    np.testing.assert_array_equal(loaded.encode(texts), encoder.encode(texts))

"""Encoders and matchers that another package has registered, in recipes."""

import importlib
import json
import pathlib
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_models
from keras_lstm_dssm.serving import SavedEncoder, SavedScorer
from tests.conftest import TOPICS
from tests.kit.equal import check_equal
from tests.training.small_trainings import EpochWeights, StopAt

MODULE = """
import keras
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.matchers import Matcher

register = keras.saving.register_keras_serializable("my_package")


@register
class BagEncoder(dssm.TextEncoder):
    def __init__(self, width=3, **kwargs):
        super().__init__(**kwargs)
        self.width = self.dimension = width
        self.embedding = self._embedding(width, "embedding")
        self.built = True

    def compose(self, words, training=False):
        rows = self.embedding(words, training=training)
        return tf.tanh(gather_sum(rows, *words.flat(), training=training))

    def get_config(self):
        return {**super().get_config(), "width": self.width}


@register
class FirstWords(Matcher):
    def __init__(self, word_dimension=50, factor=2.0, **kwargs):
        super().__init__(word_dimension, **kwargs)
        self.factor = factor
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
        self.built = True

    def represent(self, texts, side, training=False):
        return texts.vectors[:, 0]

    def match(self, query, document, training=False):
        products = tf.reduce_sum(query * document, axis=-1)
        return self.factor * self.scale * products

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}
"""

PAIRS = list(TOPICS.values()) * 4
ENCODER = {"encoder": "my_package>BagEncoder", "encoder_config": {"width": 4}}
MATCHER = {
    "matcher": "my_package>FirstWords", "matcher_config": {"factor": 3.0},
    "skip_gram": False, "word_dimension": 3, "mined_negatives": 1,
}  # fmt: skip
TEXTS = ["hex bolt", "wood glue", "desk lamp"]


@pytest.fixture(scope="module")
def module(tmp_path_factory) -> Iterator[pathlib.Path]:
    """The folder of a module that registers the classes, imported here."""
    folder = tmp_path_factory.mktemp("others")
    (folder / "my_layers.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        importlib.import_module("my_layers")
        yield folder
        del sys.modules["my_layers"]


def test_an_argument_that_the_class_has_not(module):
    with pytest.raises(InputError, match="arguments of BagEncoder, which are"):
        dssm.build_model(dssm.Recipe(**ENCODER).with_encoder(cells=3))
    with pytest.raises(InputError, match="arguments of FirstWords, which are"):
        dssm.build_model(dssm.ScorerRecipe(**MATCHER).with_matcher(k=3))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["encoder", "matcher"])
def test_from_training_to_a_fresh_process(
    kind, module, tmp_path, fresh_process
):
    """Trained, stopped, resumed, exported, and loaded by another process."""
    recipe = (
        dssm.Recipe(**ENCODER, negatives="in_batch", logq=True)
        if kind == "encoder"
        else dssm.ScorerRecipe(**MATCHER)
    ).replace(epochs=2, batch_size=8)
    undisturbed, run = EpochWeights(), tmp_path / "run"
    dssm.train(PAIRS, recipe, verbose=0, callbacks=[undisturbed])
    with pytest.raises(KeyboardInterrupt):
        dssm.train(PAIRS, recipe, output=run, verbose=0, callbacks=[StopAt(4)])
    model = dssm.resume(run, verbose=0)
    check_equal(model.get_weights(), undisturbed.of[2])
    stored = json.loads((run / "config.json").read_text())["recipe"]
    assert stored[kind] == getattr(recipe, kind)
    export_models(model, tmp_path / "models")
    if kind == "encoder":
        expected = model.query_encoder.encode(TEXTS)
        served = SavedEncoder(tmp_path / "models" / "query_encoder" / "1")
        found = served.encode(TEXTS)
        call = "model.query_encoder.encode(texts)"
    else:
        expected = model.score(TEXTS[0], TEXTS)
        served = SavedScorer(tmp_path / "models" / "scorer" / "1")
        found = served.score(TEXTS[0], TEXTS)
        call = "model.score(texts[0], texts)"
    np.testing.assert_allclose(found, expected, atol=1e-6)
    code = (
        "import json, sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "import my_layers, keras_lstm_dssm as dssm\n"
        f"texts, model = {TEXTS!r}, dssm.load_run(sys.argv[1])\n"
        f"print(json.dumps({call}.tolist()))"
    )
    lines = fresh_process(code, run, module)
    np.testing.assert_allclose(json.loads(lines[-1]), expected, atol=1e-6)

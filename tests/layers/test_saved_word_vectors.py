"""Word vectors in files: Keras models in a new process, SavedModels."""

import functools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers import WordVectors
from tests.export.agreement import run_in_cpp, serving_ops, stock_ops
from tests.layers.small_word_vectors import TEXTS, layers
from tests.serving.wire import predict_request


def sums(layer: WordVectors, text: tf.Tensor) -> tf.Tensor:
    """The sum of the vectors of each text."""
    batch = layer.distinct(text)
    return tf.gather(
        tf.reduce_sum(layer(batch).vectors, axis=1), batch.text_index
    )


@keras.saving.register_keras_serializable("tests")
class Owner(keras.Model):
    """A model that owns a layer of each kind."""

    def __init__(self, kinds: list[WordVectors], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kinds = kinds
        self.build((None,))

    def build(self, input_shape: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        kinds = keras.saving.serialize_keras_object(self.kinds)
        return {**super().get_config(), "kinds": kinds}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Owner":
        kinds = keras.saving.deserialize_keras_object(config.pop("kinds"))
        return cls(kinds, **config)


READ_MODEL = """
import sys, keras, numpy as np, tensorflow as tf
from tests.layers.test_saved_word_vectors import TEXTS, sums
model = keras.saving.load_model(sys.argv[1])
np.save(sys.argv[2], [sums(layer, TEXTS) for layer in model.kinds])
"""


def test_a_fresh_process_loads_the_model(tmp_path, fresh_process):
    model = Owner(layers(None))
    model.save(tmp_path / "model.keras")
    fresh_process(READ_MODEL, tmp_path / "model.keras", tmp_path / "sums.npy")
    want = [sums(layer, TEXTS).numpy() for layer in model.kinds]
    assert np.ptp(want, axis=1).min() > 0.01
    np.testing.assert_array_equal(np.load(tmp_path / "sums.npy"), want)


class Served(tf.Module):
    """What a server calls, with all that `resources` asks for."""

    def __init__(self, layer: WordVectors) -> None:
        super().__init__()
        self.weights = [weight.value for weight in layer.weights]
        self.resources = layer.resources
        self._sums = functools.partial(sums, layer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"sum": self._sums(text)}


def test_saved_models_give_the_same_numbers(tmp_path):
    """In Python and by TF Serving's loader, which sees only the folder."""
    want = {}
    for layer in layers(None):
        module = Served(layer)
        tf.saved_model.save(
            module,
            str(tmp_path / "first"),
            signatures={"serving_default": module.serve},
        )
        folder = (tmp_path / "first").rename(tmp_path / layer.name)
        want[folder] = sums(layer, TEXTS).numpy()
        assert np.ptp(want[folder], axis=0).min() > 0.01
        assert serving_ops(folder) <= stock_ops()
        serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
        got = serve(text=tf.constant(TEXTS))["sum"]
        np.testing.assert_array_equal(got, want[folder])
    request = predict_request("x", text=TEXTS)
    outputs = run_in_cpp(dict.fromkeys(want, [request]))
    for (output,), values in zip(outputs, want.values(), strict=True):
        np.testing.assert_allclose(output["sum"], values, rtol=1e-6)

"""LayerEncoder: any Keras layer from strings to vectors as an encoder."""

import json
import tempfile
from collections.abc import Container, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import PRECISIONS, InputError
from keras_lstm_dssm.ops import unit
from keras_lstm_dssm.private_api import all_layers
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.word_hashing import as_strings, split_words

_LEFT_OUT = frozenset((
    "build_config",  # shapes, which the weights have, too
    "compile_config",  # for training
    "module",  # "__main__" in one process and a package in another one
    "shared_object_id",  # an address in memory
    "trainable",
))  # fmt: skip


def layer_settings(layer: keras.layers.Layer) -> bytes:
    """Returns all settings of a layer and of those inside, as canonical JSON.

    They are what `keras.saving.serialize_keras_object` returns, without what
    does not change the vectors, and without names of layers: Keras numbers
    names, and a copy of a model has other numbers. If Keras cannot serialise
    the layer, they are those of the layers inside that it can serialise.
    """
    layers = all_layers(layer)
    serialised = _serialised(layer)
    if serialised is None:
        serialised = [_serialised(each) for each in layers]
    names = frozenset(each.name for each in layers)
    lambdas = [
        _code(each.function.__code__)
        for each in layers
        if isinstance(each, keras.layers.Lambda)
        and isinstance(each.function, FunctionType)
    ]
    return json.dumps(
        [_plain(serialised, names, {}), lambdas],
        sort_keys=True,
        default=_name_of,
    ).encode()


def _serialised(layer: keras.layers.Layer) -> Any:
    """Returns a layer's settings, `None` if Keras cannot serialise it."""
    try:
        return keras.saving.serialize_keras_object(layer)
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        return None


def _plain(
    value: Any, names: Container[str], numbers: Mapping[str, int]
) -> Any:
    """Returns settings without names of layers.

    `numbers` are the places in a functional model of its layers and
    operations, by which its connections name them.
    """
    if isinstance(value, Mapping):
        if "input_layers" in value and "layers" in value:
            numbers = {
                each["name"]: place
                for place, each in enumerate(value["layers"])
            }
        if value.get("class_name") == "__lambda__":
            rest = {k: v for k, v in value["config"].items() if k != "code"}
            return _plain(rest, names, numbers)
        return {
            str(key): _plain(each, names, numbers)
            for key, each in value.items()
            if key not in _LEFT_OUT
            and not (
                key == "name"
                and isinstance(each, str)
                and (each in names or each in numbers)
            )
        }
    if isinstance(value, list | tuple):
        match value:
            # A connection: the layer, its call and the place of the result.
            case [str(name), int(), int()] if name in numbers:
                return [numbers[name], *value[1:]]
        return [_plain(each, names, numbers) for each in value]
    return value


def _code(code: CodeType) -> list[Any]:
    """Describes the byte code of a function, equally in each process.

    The bytes that Keras stores of a lambda differ between processes.
    """
    constants = [
        _code(each)
        if isinstance(each, CodeType)
        else sorted(map(repr, each))
        if isinstance(each, frozenset)
        else repr(each)
        for each in code.co_consts
    ]
    return [code.co_code.hex(), constants, code.co_names, code.co_varnames]


def _name_of(value: Any) -> str:
    """Returns the name of a function, or of the type of another value."""
    return getattr(value, "__qualname__", type(value).__qualname__)


class TextBatch(NamedTuple):
    """Holds the distinct texts of a batch, and which row has which text.

    It takes the place of a `WordBatch` for encoders that hash no words.
    """

    texts: tf.Tensor  # the distinct texts, strings `[distinct]`
    text_index: tf.Tensor  # int32 `[batch]`, the index in `texts` of each row

    @property
    def text_count(self) -> tf.Tensor:
        """Number of distinct texts."""
        return tf.size(self.texts)


class DistinctTexts:
    """Finds the distinct texts of a batch, in place of `LetterTrigrams`."""

    rules = ("distinct",)

    split = "space"
    """Rule for splitting words: negatives with equal words are equal texts."""

    def distinct(self, texts: Any) -> TextBatch:
        """Returns each distinct text of strings `(batch,)` once."""
        return TextBatch(*tf.unique(as_strings(texts)))

    def single(self, text: tf.Tensor) -> TextBatch:
        """Returns a batch of one text, strings `(1,)`."""
        return TextBatch(text, tf.zeros([1], tf.int32))

    def words(self, texts: Any) -> tf.RaggedTensor:
        """Splits texts into normalised words, for reports of words."""
        return split_words(as_strings(texts), split=self.split)

    def cache(self) -> "DistinctTexts":
        """Returns the object itself: finding distinct texts needs no cache."""
        return self


@register
class LayerEncoder(TextEncoder):
    """Makes an encoder of a Keras layer or model from strings to vectors.

    `TwoTower(layer, layer)` wraps layers that are no `TextEncoder` in this
    class. Words are not hashed, and every variable is updated in each step:
    training is as fast as the layer is in Keras. A batch's distinct texts are
    encoded once. A `TextVectorization` must be adapted before training.

    Args:
        layer: A layer from strings `(batch,)` to float vectors `(batch, d)`,
            such as a `keras.Sequential` that starts with
            `TextVectorization`, or a functional model on
            `keras.Input((), dtype="string")`.
        **kwargs: `name`, by default the layer's, and `dtype`, that of the
            vectors, by default the dtype of the layer's variables.

    Call arguments:
        inputs: Strings `(batch,)`.
        training: Whether a gradient will be computed, default `False`.

    Returns:
        `(batch, dimension)`, the vectors of the layer.

    Raises:
        InputError: It is no Keras layer, or does not turn strings `(batch,)`
            into float vectors of a fixed width.

    Example:
    >>> words = keras.layers.TextVectorization(output_sequence_length=8)
    >>> words.adapt(["hex bolt", "wood glue"])
    >>> layers = [words, keras.layers.Embedding(99, 4), keras.layers.GRU(4)]
    >>> encoder = LayerEncoder(keras.Sequential(layers))
    >>> encoder.encode(["hex bolt", "wood glue"]).shape
    (2, 4)
    """

    def __init__(self, layer: keras.layers.Layer, **kwargs: Any) -> None:
        if not isinstance(layer, keras.layers.Layer):
            raise InputError(
                "a tower is a TextEncoder or another Keras layer from strings"
                f" to vectors; got {type(layer).__name__}"
            )
        dtype = layer.variable_dtype
        super().__init__(
            **{
                "name": layer.name,
                "dtype": dtype if dtype in PRECISIONS else "float32",
                **kwargs,
            }
        )
        self.layer = layer
        self.dimension = _vector_width(layer)

    @classmethod
    def of(cls, tower: Any) -> TextEncoder:
        """Wraps a layer, unless it is an encoder already."""
        return tower if isinstance(tower, TextEncoder) else cls(tower)

    def _hashing(self, **_: Any) -> DistinctTexts:
        return DistinctTexts()

    def compose(self, words: Any, training: bool = False) -> tf.Tensor:
        """Computes the layer's vector of each distinct text."""
        vectors = self.layer(words.texts, training=training)
        return tf.cast(vectors, self.compute_dtype)

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes a batch of one text, in the same way as other batches."""
        return unit(self(text))

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns `False`: one text is encoded like any other batch."""
        return tf.constant(False)

    @property
    def resources(self) -> list[Any]:
        """The tables of vocabularies, which a SavedModel needs."""
        resource = tf.saved_model.experimental.TrackableResource
        parts = tf.train.TrackableView(self.layer).descendants()
        return [part for part in parts if isinstance(part, resource)]

    @property
    def extra_state(self) -> list[np.ndarray]:
        """Settings of layers, and files of vocabularies, as uint8 arrays."""
        found = [layer_settings(self.layer)]
        with tempfile.TemporaryDirectory() as folder:
            for number, layer in enumerate(all_layers(self.layer)):
                if hasattr(layer, "save_assets"):
                    files = Path(folder, str(number))
                    files.mkdir()
                    layer.save_assets(str(files))
                    paths = sorted(files.iterdir())
                    found += [path.read_bytes() for path in paths]
        return [np.frombuffer(each, np.uint8) for each in found]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "layer": keras.saving.serialize_keras_object(self.layer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LayerEncoder":
        """Rebuilds the encoder and its layer."""
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})


def _vector_width(layer: keras.layers.Layer) -> int:
    """Builds a layer on strings; returns the width of its vectors."""
    expected = "expected strings (batch,) -> float vectors (batch, d), d fixed"
    try:
        output = layer(keras.Input((), dtype="string"))
    except (TypeError, ValueError, AttributeError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{layer.name} does not read strings: {expected}; {reason:.200}"
        ) from error
    shape = getattr(output, "shape", None)
    dtype = getattr(output, "dtype", type(output).__name__)
    if (
        "float" not in dtype
        or shape is None
        or len(shape) != 2
        or shape[1] is None
    ):
        raise InputError(f"{layer.name} gives {dtype} {shape}: {expected}")
    return int(shape[1])

"""`LayerEncoder` wraps a Keras layer that maps strings to vectors."""

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
from keras_lstm_dssm.private_api import all_layers
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.word_hashing import as_strings, normalize_and_split

_LEFT_OUT = frozenset((
    "build_config",  # shapes, which the weights determine
    "compile_config",  # for training
    "module",  # may be "__main__" or a package, depending on the process
    "shared_object_id",  # an address in memory
    "trainable",
))  # fmt: skip
"""Keys of a serialised layer that `layer_settings` leaves out."""


def layer_settings(layer: keras.layers.Layer) -> bytes:
    """Returns settings that determine a layer's vectors, as canonical JSON."""
    layers = all_layers(layer)
    serialised = _serialise(layer)
    if serialised is None:  # Keras cannot serialise the layer as a whole
        serialised = [_serialise(sublayer) for sublayer in layers]
    # The layers of a copy of a model have new names. So names are left out.
    names = frozenset(sublayer.name for sublayer in layers)
    lambdas = [
        _describe_code(sublayer.function.__code__)
        for sublayer in layers
        if isinstance(sublayer, keras.layers.Lambda)
        and isinstance(sublayer.function, FunctionType)
    ]
    return json.dumps(
        [_without_names(serialised, names, {}), lambdas],
        sort_keys=True,
        default=_name_of,
    ).encode()


def _serialise(layer: keras.layers.Layer) -> Any:
    try:
        return keras.saving.serialize_keras_object(layer)
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        return None


def _without_names(
    value: Any, names: Container[str], index_of: Mapping[str, int]
) -> Any:
    """Removes layer names; a connection gets a layer's index, not its name."""
    if isinstance(value, Mapping):
        if "input_layers" in value and "layers" in value:
            index_of = {
                layer["name"]: index
                for index, layer in enumerate(value["layers"])
            }
        if value.get("class_name") == "__lambda__":
            rest = {k: v for k, v in value["config"].items() if k != "code"}
            return _without_names(rest, names, index_of)
        return {
            str(key): _without_names(item, names, index_of)
            for key, item in value.items()
            if key not in _LEFT_OUT
            and not (
                key == "name"
                and isinstance(item, str)
                and (item in names or item in index_of)
            )
        }
    if isinstance(value, list | tuple):
        match value:
            # A connection: layer name, index of its call, index of its output.
            case [str(name), int(), int()] if name in index_of:
                return [index_of[name], *value[1:]]
        return [_without_names(item, names, index_of) for item in value]
    return value


def _describe_code(code: CodeType) -> list[Any]:
    """Describes byte code; the description is the same in all processes."""
    constants = [
        _describe_code(constant)
        if isinstance(constant, CodeType)
        else sorted(map(repr, constant))
        if isinstance(constant, frozenset)
        else repr(constant)
        for constant in code.co_consts
    ]
    return [code.co_code.hex(), constants, code.co_names, code.co_varnames]


def _name_of(value: Any) -> str:
    return getattr(value, "__qualname__", type(value).__qualname__)


class TextBatch(NamedTuple):
    """Distinct texts of a batch, for `LayerEncoder` in place of `WordBatch`."""

    texts: tf.Tensor  # the distinct texts, strings `[distinct]`
    text_index: tf.Tensor  # int32 `[batch]`, each text's index in `texts`

    @property
    def text_count(self) -> tf.Tensor:
        """Number of distinct texts."""
        return tf.size(self.texts)


class DistinctTexts:
    """Finds distinct texts, for `LayerEncoder` in place of `LetterTrigrams`."""

    rules = ("distinct",)
    """Encoders with equal `rules` may share a `TextBatch`."""

    split = "space"
    """Rule that splits texts into words: for reports, and to compare texts."""

    def distinct(self, texts: Any) -> TextBatch:
        """Returns the distinct texts of strings `(batch,)`."""
        return TextBatch(*tf.unique(as_strings(texts)))

    def single(self, text: tf.Tensor) -> TextBatch:
        """Returns a batch of one text; `text` has the shape `(1,)`."""
        return TextBatch(text, tf.zeros([1], tf.int32))

    def words(self, texts: Any) -> tf.RaggedTensor:
        """Splits texts into normalised words, for reports."""
        return normalize_and_split(as_strings(texts), split=self.split)

    def cache(self) -> "DistinctTexts":
        """Returns this object, because distinct texts need no cache."""
        return self


@register
class LayerEncoder(TextEncoder):
    """Encodes texts by a Keras layer or model that maps strings to vectors.

    `TwoTower(layer, layer)` wraps its arguments, unless they are encoders. Each
    distinct text of a batch is encoded once. Words are not hashed. Each
    training step updates every variable; no update is lazy. A
    `TextVectorization` must be adapted before training.

    Args:
        layer: A layer from strings `(batch,)` to float vectors `(batch, d)`,
            such as a `keras.Sequential` that starts with
            `TextVectorization`, or a functional model on
            `keras.Input((), dtype="string")`.
        **kwargs: `name`, by default the name of `layer`; and `dtype` of the
            vectors, by default float64 if `layer` has float64 variables, else
            float32.

    Call arguments:
        inputs: Strings `(batch,)`.
        training: Argument `training` of `layer`, `True` if a gradient will be
            computed. Default `False`.

    Returns:
        `(batch, dimension)`, the vectors of the layer.

    Raises:
        InputError: `layer` is not a Keras layer, or does not map strings
            `(batch,)` to float vectors of a fixed width.

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
        """Returns an encoder unchanged; wraps any other layer."""
        return tower if isinstance(tower, TextEncoder) else cls(tower)

    def _hashing(self, **_: Any) -> DistinctTexts:
        return DistinctTexts()

    def compose(self, words: Any, training: bool = False) -> tf.Tensor:
        """Computes the layer's vector of each distinct text."""
        vectors = self.layer(words.texts, training=training)
        return tf.cast(vectors, self.compute_dtype)

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns `False`: a layer has no faster way for one short text."""
        return tf.constant(False)

    @property
    def resources(self) -> list[Any]:
        """The vocabulary tables, which a SavedModel needs."""
        resource = tf.saved_model.experimental.TrackableResource
        objects = tf.train.TrackableView(self.layer).descendants()
        return [item for item in objects if isinstance(item, resource)]

    @property
    def extra_state(self) -> list[np.ndarray]:
        """Settings of all layers, and vocabulary files, as uint8 arrays."""
        contents = [layer_settings(self.layer)]
        with tempfile.TemporaryDirectory() as folder:
            for number, layer in enumerate(all_layers(self.layer)):
                if hasattr(layer, "save_assets"):
                    files = Path(folder, str(number))
                    files.mkdir()
                    layer.save_assets(str(files))
                    paths = sorted(files.iterdir())
                    contents += [path.read_bytes() for path in paths]
        return [np.frombuffer(content, np.uint8) for content in contents]

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
    expected = (
        "expected a layer from strings (batch,) to float vectors (batch, d) of"
        " a fixed width d"
    )
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

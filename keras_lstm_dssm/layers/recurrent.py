"""Recurrent layers: a cell run over sequences of different lengths."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.cells import PeepholeLSTMCell
from keras_lstm_dssm.layers.packed_recurrence import (
    PackedSequence,
    last_steps,
    pack,
    read_backward,
    read_forward,
    read_last,
    unpack,
)
from keras_lstm_dssm.registration import register


@register
class Recurrent(keras.layers.Layer):
    """Reads sequences with a cell; gives y at each one's last real word.

    Gives the numbers of `keras.layers.RNN(cell)`, without computing padding
    and with a backward pass written by hand. Masks are not used, Keras
    operations drop them: the lengths are an input.

    Args:
        cell: `RNNCell` or `PeepholeLSTMCell`. Its first state is its output.
        truncate: BPTT reaches this many steps back from the last word, the
            T of eq. (7); `None` for all. States before are constants.

    Call arguments:
        inputs: `(batch, time, features)`, time at least 1; or a
            `PackedSequence` of `project`ed ones.
        lengths: int `(batch,)`, words of each row, at least 1; `None` for
            all `time`.
        training: Whether a gradient will be wanted. Without, it is still
            right, but slower.

    Returns:
        `(batch, units)`; of a `PackedSequence` in its order of rows.
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        truncate: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if truncate is not None and truncate < 0:
            raise InputError(f"truncate must be 0 or more, not {truncate}")
        self.cell = cell
        self.truncate = truncate
        self._allow_non_tensor_positional_args = True  # lengths in a list

    def build(self, input_shape: Any) -> None:
        """Builds the cell; `input_shape` is `(batch, time, features)`."""
        if isinstance(input_shape, PackedSequence):
            input_shape = input_shape.values
        if not self.cell.built:  # it is when loaded with its own build shape
            self.cell.build((None, input_shape[-1]))
            self.cell.built = True

    def call(
        self,
        inputs: tf.Tensor | PackedSequence,
        lengths: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Reads to the end of each row."""
        if isinstance(inputs, PackedSequence):
            return self._read(inputs, training)
        steps, order = _packed(self.project(inputs), lengths)
        back = tf.math.invert_permutation(order)
        return tf.gather(self._read(steps, training), back)

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The cell's `W x(t) + b`, `(..., gates * units)`.

        For inputs that stand in many places it is made once, before they
        are packed.
        """
        return self.cell.project(inputs)

    def activations(
        self, inputs: tf.Tensor, lengths: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns every activation of the cell at every word.

        Args:
            inputs: As for a call.
            lengths: As for a call.

        Returns:
            For an LSTM the keys i, f (with a forget gate), g, c, o, y, for
            an RNN y; each `(batch, time, units)`, zero past the last word,
            as in Figs. 4 and 5 of the paper.
        """
        steps, order = _packed(self.project(inputs), lengths)
        back = tf.math.invert_permutation(order)
        found = read_forward(
            self.cell,
            self.cell.recurrent_weights(),
            steps,
            self.cell.activation_names,
        )
        return {
            name: tf.gather(unpack(steps._replace(values=array.concat())), back)
            for name, array in found.items()
        }

    def _read(self, steps: PackedSequence, training: bool) -> tf.Tensor:
        weights = self.cell.recurrent_weights()
        if not training and self.truncate is None:
            return read_last(self.cell, weights, steps)
        names = list(weights)

        @tf.custom_gradient
        def read(values: tf.Tensor, *tensors: tf.Tensor) -> Any:
            given = dict(zip(names, tensors, strict=True))
            packed = steps._replace(values=values)
            now = read_forward(
                self.cell, given, packed, self.cell.activation_names
            )

            def gradient(error: tf.Tensor) -> list[tf.Tensor]:
                error = tf.convert_to_tensor(error)  # of a gather, sparse
                dz, found = read_backward(
                    self.cell, given, packed, now, error, self.truncate
                )
                return [dz, *(found[name] for name in names)]

            return last_steps(now["y"].concat(), packed), gradient

        return read(steps.values, *weights.values())

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
            "truncate": self.truncate,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Recurrent":
        """Rebuilds the layer with its cell."""
        config = dict(config)
        config["cell"] = keras.saving.deserialize_keras_object(config["cell"])
        return cls(**config)


def _packed(
    inputs: tf.Tensor, lengths: tf.Tensor | None
) -> tuple[PackedSequence, tf.Tensor]:
    """Packs rows in any order; also returns the order that packing has."""
    shape = tf.shape(inputs)
    if lengths is None:
        lengths = tf.fill([shape[0]], shape[1])
    lengths = tf.cast(lengths, tf.int32)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    return pack(tf.gather(inputs, order), tf.gather(lengths, order)), order


@register
class PeepholeLSTM(Recurrent):
    """LSTM with peepholes and forget gate on or off, eq. (2).

    Gives the numbers of `keras.layers.RNN(PeepholeLSTMCell(...))`, takes
    the lengths of the rows, and cuts the gradient after `truncate` steps.

    Args:
        units: Number of cells.
        peephole: `None`, `"diagonal"` or `"full"`.
        forget_gate: Whether cells can forget.
        truncate: See `Recurrent`.
        project_inputs: See `GatedCell`.

    Call arguments:
        inputs: `(batch, time, features)`.
        lengths: int `(batch,)` or `None`.

    Example:
    >>> PeepholeLSTM(96)(np.zeros((2, 5, 16), "float32"), [5, 3]).shape
    TensorShape([2, 96])
    """

    def __init__(
        self,
        units: int,
        peephole: str | None = None,
        forget_gate: bool = False,
        truncate: int | None = None,
        project_inputs: bool = True,
        **kwargs: Any,
    ) -> None:
        cell = PeepholeLSTMCell(
            units,
            peephole,
            forget_gate,
            project_inputs,
            dtype=kwargs.get("dtype"),
            name="cell",
        )
        super().__init__(cell, truncate, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        del config["cell"]
        return {
            **config,
            "units": self.cell.units,
            "peephole": self.cell.peephole,
            "forget_gate": self.cell.forget_gate,
            "project_inputs": self.cell.project_inputs,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PeepholeLSTM":
        """Rebuilds the layer."""
        return cls(**config)

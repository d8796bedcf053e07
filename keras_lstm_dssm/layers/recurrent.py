"""Recurrent: runs a cell over sentences of different lengths."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.registry import register


@register
class Recurrent(keras.layers.Layer):
    """Reads sequences with a cell; gives y at each one's last real word.

    Masks are not used, Keras operations drop them: the lengths are an
    input. Padding is neither read nor part of any gradient.

    Args:
        cell: `RNNCell` or `PeepholeLSTMCell`. Its first state is its output.
        truncate: BPTT reaches this many steps back from the last word, the
            T of eq. (7); `None` for all. States before are constants.

    Call arguments:
        inputs: `(batch, time, features)`, time at least 1.
        lengths: int `(batch,)`, words of each row; `None` for all `time`.

    Returns:
        `(batch, units)`.
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        truncate: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cell = cell
        self.truncate = truncate
        self._allow_non_tensor_positional_args = True  # lengths in a list

    def build(self, input_shape: Any) -> None:
        """Builds the cell; `input_shape` is `(batch, time, features)`."""
        self.cell.build((input_shape[0], input_shape[-1]))
        self.cell.built = True

    def call(
        self, inputs: tf.Tensor, lengths: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Reads to the end of each row."""
        time, lengths = _time_and_lengths(inputs, lengths)
        steps = tf.TensorArray(inputs.dtype, time).unstack(
            tf.transpose(inputs, [1, 0, 2])
        )

        def body(
            t: tf.Tensor, states: list[tf.Tensor]
        ) -> tuple[tf.Tensor, list[tf.Tensor]]:
            if self.truncate is not None:
                states = self._cut(states, lengths - 1 - t)
            _, new = self.cell.call(steps.read(t), states)
            reading = (t < lengths)[:, tf.newaxis]
            return t + 1, [
                tf.where(reading, after, before)
                for after, before in zip(new, states, strict=True)
            ]

        _, states = tf.while_loop(
            lambda t, _: t < time,
            body,
            (tf.constant(0), self._initial_states(inputs)),
        )
        return states[0]

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
        time, lengths = _time_and_lengths(inputs, lengths)
        states = self._initial_states(inputs)
        names = list(self.cell.activations(inputs[:, 0], states))
        arrays = [tf.TensorArray(inputs.dtype, time) for _ in names]

        def body(
            t: tf.Tensor, states: list[tf.Tensor], arrays: list[tf.TensorArray]
        ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.TensorArray]]:
            step = self.cell.activations(inputs[:, t], states)
            reading = tf.cast(t < lengths, inputs.dtype)[:, tf.newaxis]
            arrays = [
                array.write(t, step[name] * reading)
                for name, array in zip(names, arrays, strict=True)
            ]
            return t + 1, [step[name] for name in self._state_names], arrays

        _, _, arrays = tf.while_loop(
            lambda t, *_: t < time, body, (tf.constant(0), states, arrays)
        )
        return {
            name: tf.transpose(array.stack(), [1, 0, 2])
            for name, array in zip(names, arrays, strict=True)
        }

    @property
    def _state_names(self) -> tuple[str, ...]:
        return ("y", "c")[: len(self.cell.state_size)]

    def _initial_states(self, inputs: tf.Tensor) -> list[tf.Tensor]:
        batch = tf.shape(inputs)[0]
        return [
            tf.zeros([batch, width], inputs.dtype)
            for width in self.cell.state_size
        ]

    def _cut(
        self, states: list[tf.Tensor], steps_left: tf.Tensor
    ) -> list[tf.Tensor]:
        """Makes the states constants where the last word is T or more off."""
        constant = (steps_left >= self.truncate)[:, tf.newaxis]
        return [tf.where(constant, tf.stop_gradient(s), s) for s in states]

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


def _time_and_lengths(
    inputs: tf.Tensor, lengths: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    shape = tf.shape(inputs)
    if lengths is None:
        lengths = tf.fill([shape[0]], shape[1])
    return shape[1], tf.cast(lengths, tf.int32)

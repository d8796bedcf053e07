"""Runs LSTMs of both directions in one loop over time, with its gradient."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.bidirectional_loop import (
    Arrays,
    loop_backward,
    loop_forward,
    recurrent_gradients,
)
from keras_lstm_dssm.layers.flat_packing import FlatPacking, RowSequences
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTM

_KEPT = ("i", "f", "g", "o")


def run_on_rows(
    layers: Sequence[PeepholeLSTM],
    sequences: RowSequences,
    training: bool = False,
) -> tf.Tensor:
    """Run an LSTM forward, and perhaps another one backward, over sequences.

    The forward and the backward LSTM of a text read the same words, so that
    one loop with products `(directions, rows, units)` does the work of two.
    For narrow LSTMs, the number of operations takes more time than their
    arithmetic.

    A batch of texts has three times as many words as distinct words. So the
    inputs are projected once for each distinct word; at each time the loop
    gathers those that it needs.

    Args:
        layers: The forward LSTM, and the backward one if there is one, equal
            but for their weights, with a forget gate and without peepholes.
        sequences: The sequences to read.
        training: Whether a gradient will be computed. With `False`, the
            default, a gradient is still correct, but slower to compute.

    Returns:
        y of all LSTMs side by side, `(values, layers * units)`, in the order
        of `sequences.index`.
    """
    cells = [layer.cell for layer in layers]
    inputs = [layer.project(sequences.table) for layer in layers]
    packing = FlatPacking.from_lengths(sequences.lengths)
    index = sequences.index
    cell, counts, directions = cells[0], packing.counts, len(cells)
    steps, places = packing.steps[:directions], packing.places[:directions]
    direction = tf.range(directions)[:, tf.newaxis]
    size = tf.shape(inputs[0])[0]
    rows = tf.gather(index, steps) + direction * size

    def run(
        table: tf.Tensor, recurrent: tf.Tensor, kept: Sequence[str]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...], Arrays]:
        outputs, now = loop_forward(cell, table, rows, recurrent, counts, kept)
        sides = [
            tf.gather(y, place)
            for y, place in zip(outputs, places, strict=True)
        ]
        return tf.concat(sides, axis=1), outputs, now

    weights = [tf.convert_to_tensor(each.recurrent_kernel) for each in cells]
    table = tf.concat(inputs, axis=0)
    if not training:
        return run(table, tf.stack(weights), ())[0]

    @tf.custom_gradient
    def with_gradient(table: tf.Tensor, *weights: tf.Tensor) -> Any:
        recurrent = tf.stack(weights)
        result, outputs, now = run(table, recurrent, _KEPT)

        def gradient(error: tf.Tensor) -> list[tf.Tensor]:
            # The part of each direction is a row of its own.
            parts = tf.reshape(tf.convert_to_tensor(error), [-1, cell.units])
            part = directions * steps + direction
            dz = loop_backward(cell, now, parts, part, recurrent, counts)
            order = tf.argsort(index)
            segment = tf.gather(index, order)
            sums = [
                tf.sparse.segment_sum(
                    each, tf.gather(place, order), segment, num_segments=size
                )
                for each, place in zip(dz, places, strict=True)
            ]
            return [
                tf.concat(sums, axis=0),
                *recurrent_gradients(outputs, dz, counts),
            ]

        return result, gradient

    return with_gradient(table, *weights)

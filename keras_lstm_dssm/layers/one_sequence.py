"""Runs a cell over one sequence with few operations, for single queries."""

import tensorflow as tf

from keras_lstm_dssm.layers.recurrent_cell import RecurrentCell, Tensors

# An iteration of a loop takes as long as two steps of a cell besides.
_STEPS = 2


def last_output_of_one(cell: RecurrentCell, values: tf.Tensor) -> tf.Tensor:
    """Run a cell over one sequence, from states of zero.

    The result matches that of `run_to_last_output` for one row, which takes
    four times as many operations. There is no faster gradient here: use it
    for inference.

    Args:
        cell: Cell whose `step` is called at each time.
        values: Inputs after `cell.project`, `(time, gates * units)`, time at
            least 1.

    Returns:
        y at the last step, `(1, units)`.
    """
    weights = cell.recurrent_weights()
    zero = tf.zeros([1, cell.units], values.dtype)
    # The states before time 0 are zero, and need no product.
    now = cell.activate(
        values[:1], dict.fromkeys(cell.state_names, zero), weights
    )
    left, width = tf.shape(values)[0] - 1, values.shape[1]
    # What steps past the end compute is not read.
    padded = tf.pad(values[1:], [[0, tf.math.floormod(-left, _STEPS)], [0, 0]])
    parts = tf.reshape(padded, [-1, _STEPS, width])

    def body(
        part: tf.Tensor, states: Tensors, _: tf.Tensor
    ) -> tuple[tf.Tensor, Tensors, tf.Tensor]:
        outputs = []
        for x in tf.split(tf.gather(parts, part), _STEPS):
            now = cell.step(x, states, weights)
            states = {name: now[name] for name in states}
            outputs.append(now["y"])
        return part + 1, states, tf.concat(outputs, axis=0)

    count = tf.shape(parts)[0]
    _, _, outputs = tf.while_loop(
        lambda part, *_: part < count,
        body,
        (
            tf.constant(0),
            {name: now[name] for name in cell.state_names},
            tf.repeat(now["y"], _STEPS, axis=0),  # the result for one word
        ),
    )
    last = tf.math.floormod(left - 1, _STEPS)
    return tf.gather(outputs, last[tf.newaxis])

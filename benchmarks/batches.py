"""The clicks that are trained on: whole batches, as `fit` streams them."""

import tensorflow as tf

from keras_lstm_dssm.benchmarks.measure import WARM_STEPS
from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.errors import InputError


def whole_batches(
    log: ClickLog, batch_size: int, steps: int
) -> tf.data.Dataset:
    """Streams a log as training does, for a measurement of some steps.

    The small batch at the end of each epoch is left out, so that all steps
    are of one size.

    Args:
        log: The clicks, read as often as is needed.
        batch_size: Pairs a step.
        steps: Steps timed.

    Returns:
        At least `WARM_STEPS + steps` batches (query, document) of strings.

    Raises:
        InputError: The log does not fill one batch.
    """
    in_epoch = log.count() // batch_size
    if not in_epoch:
        raise InputError(
            f"{', '.join(log.paths)}: {log.count()} clicks, fewer than one "
            f"batch of {batch_size}; give a smaller --batch_size"
        )
    epochs = -(-(WARM_STEPS + steps) // in_epoch)
    batches = training_batches(log, batch_size, epochs=epochs, seed=0)
    return batches.filter(lambda query, _: tf.size(query) == batch_size)

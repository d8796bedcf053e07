"""train_run: trains a model in a run folder, to be resumed at any update."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickFrequencies,
    ClickLog,
    GivenNegatives,
    evaluation_batches,
    training_batches,
)
from keras_lstm_dssm.training.faults import Diverged, explain
from keras_lstm_dssm.training.hard_negatives import HardNegatives
from keras_lstm_dssm.training.nesterov_schedule import NesterovSchedule
from keras_lstm_dssm.training.run_callbacks import Checkpoint, HistoryFile
from keras_lstm_dssm.training.run_folder import RunFolder


def train_run(
    run: RunFolder,
    model: Any,
    log: ClickLog,
    epochs: int,
    batch_size: int,
    seed: int,
    validation: ClickLog | None = None,
    verbose: int = 2,
    save_minutes: float = 10.0,
    extra: Sequence[keras.callbacks.Callback] = (),
    negatives: GivenNegatives | HardNegatives | None = None,
    frequencies: ClickFrequencies | None = None,
) -> int:
    """Trains a compiled `TwoTower` from where it stands to the last epoch.

    Where it stands is the optimizer's count of updates, so that a loaded
    checkpoint goes on with the very batches that it had not seen, and ends
    with the weights of a run that was never stopped, bit for bit on one kind
    of processor. The schedule of the momentum is the paper's. When training
    is interrupted from the keyboard, checkpoint and model are saved before
    the interrupt goes on; after any other failure the last checkpoint is
    whole and its numbers are finite.

    Args:
        run: Where checkpoints, history and TensorBoard logs go.
        model: The `TwoTower`.
        log: The clicks.
        epochs: Passes over the log, over the whole run.
        batch_size: Clicks a batch.
        seed: Of the order of the clicks.
        validation: Clicks for the loss after each epoch.
        verbose: 1 for a progress bar, 2 for a line an epoch, 0 for nothing.
        save_minutes: Time after which the checkpoint is replaced within an
            epoch, too.
        extra: Callbacks of your own.
        negatives: Titles to be told from the clicked one, beside those that
            the model takes by itself: given, or mined between epochs.
        frequencies: Of the clicked titles, for the correction of the loss.

    Returns:
        The number of updates taken, 0 when the run was finished before.

    Raises:
        InputError: The loss or a weight became NaN or infinite (the message
            names the batch's first texts), or a file of the logs was changed
            or removed meanwhile.
        OSError: A file of the run cannot be written.
    """
    steps = -(-log.count() // batch_size)
    end = epochs * steps
    done = int(model.optimizer.iterations.numpy())
    callbacks: list[keras.callbacks.Callback] = [
        HistoryFile(run, done // steps),
        Checkpoint(run, save_minutes),
        keras.callbacks.TensorBoard(run.logs, write_graph=False),
        *extra,
    ]
    if hasattr(model.optimizer, "look_ahead"):
        callbacks.append(NesterovSchedule(total_updates=end))
    if done and done % steps == 0:
        # A checkpoint made just before the end of an epoch: the whole run
        # brings its rows up to date there.
        model.settle()

    def batches(
        first: int, given: GivenNegatives | None = None
    ) -> tf.data.Dataset:
        found = training_batches(
            log, batch_size, epochs=epochs, seed=seed, first_update=first
        )
        if given:
            found = given.attach(found, first)
        return frequencies.attach(found) if frequencies else found

    first = done
    try:
        while first < end:
            epoch, inside = divmod(first, steps)
            last = epochs
            if isinstance(negatives, HardNegatives):
                last = min(last, negatives.next_mining(epoch))
                given = negatives.of_epoch(epoch, model, not inside)
            else:
                given = negatives
            if inside:
                # Keras knows whole epochs only: the rest of the one that was
                # interrupted is fitted on its own.
                last = epoch + 1
            model.fit(
                batches(first, given),
                initial_epoch=epoch,
                epochs=last,
                steps_per_epoch=steps - inside,
                validation_data=validation
                and evaluation_batches(validation, batch_size),
                callbacks=callbacks,
                verbose=verbose,
            )
            first = last * steps
    except KeyboardInterrupt:
        run.save(_without_optimizer(model), run.model)
        raise
    except (Diverged, tf.errors.OpError) as error:
        logs = (log, validation) if validation else (log,)
        explain(error, run, model, logs, batches)
        raise
    run.save(_without_optimizer(model), run.model)
    return max(0, end - done)


def _without_optimizer(model: Any) -> Any:
    """A copy that is half the size when saved, and loads uncompiled."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy

"""train_run: trains a model in a run folder, to be resumed at any update."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.data import ClickLog, evaluation_batches
from keras_lstm_dssm.training.faults import Diverged, explain
from keras_lstm_dssm.training.run_callbacks import Checkpoint, HistoryFile
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_plan import TrainingPlan, fit_clicks


def train_run(
    run: RunFolder,
    model: Any,
    plan: TrainingPlan,
    validation: ClickLog | None = None,
    verbose: int = 2,
    save_minutes: float = 10.0,
    extra: Sequence[keras.callbacks.Callback] = (),
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
        plan: What it is trained on.
        validation: Clicks for the loss after each epoch.
        verbose: 1 for a progress bar, 2 for a line an epoch, 0 for nothing.
        save_minutes: Time after which the checkpoint is replaced within an
            epoch, too.
        extra: Callbacks of your own.

    Returns:
        The number of updates taken, 0 when the run was finished before.

    Raises:
        InputError: The loss or a weight became NaN or infinite (the message
            names the batch's first texts), or a file of the logs was changed
            or removed meanwhile.
        OSError: A file of the run cannot be written.
    """
    done = int(model.optimizer.iterations.numpy())
    callbacks = [
        HistoryFile(run, done // plan.steps),
        Checkpoint(run, save_minutes),
        keras.callbacks.TensorBoard(run.logs, write_graph=False),
        *extra,
    ]
    try:
        fit_clicks(
            model,
            plan,
            callbacks,
            validation_data=validation
            and evaluation_batches(validation, plan.batch_size),
            verbose=verbose,
        )
    except KeyboardInterrupt:
        run.save(_without_optimizer(model), run.model)
        raise
    except (Diverged, tf.errors.OpError) as error:
        logs = (plan.log, validation) if validation else (plan.log,)
        explain(error, run, model, logs, plan.batches)
        raise
    run.save(_without_optimizer(model), run.model)
    return max(0, plan.updates - done)


def _without_optimizer(model: Any) -> Any:
    """A copy that is half the size when saved, and loads uncompiled."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy

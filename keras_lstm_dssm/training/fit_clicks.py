"""fit_clicks: fits a model to a click log, mining negatives on the way."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_lstm_dssm.training.hard_negatives import HardNegatives
from keras_lstm_dssm.training.nesterov_schedule import NesterovSchedule
from keras_lstm_dssm.training.training_plan import TrainingPlan


def fit_clicks(
    model: Any,
    plan: TrainingPlan,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    **kwargs: Any,
) -> None:
    """Fits a compiled `TwoTower` from where it stands to the last epoch.

    Where it stands is the optimizer's count of updates. The schedule of the
    momentum is the paper's, if the optimizer has one to change.

    Args:
        model: The `TwoTower`.
        plan: What it is trained on.
        callbacks: See `keras.Model.fit`.
        **kwargs: Of `TwoTower.fit`: validation_data, verbose.
    """
    steps, end = plan.steps, plan.updates
    callbacks = list(callbacks)
    if hasattr(model.optimizer, "look_ahead"):
        callbacks.append(NesterovSchedule(total_updates=end))
    done = int(model.optimizer.iterations.numpy())
    if done and done % steps == 0:
        # A checkpoint made just before the end of an epoch: the whole run
        # brings its rows up to date there.
        model.settle()
    negatives = plan.negatives
    while done < end:
        epoch, inside = divmod(done, steps)
        last = plan.epochs
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
            plan.batches(done, given),
            initial_epoch=epoch,
            epochs=last,
            steps_per_epoch=steps - inside,
            callbacks=callbacks,
            **kwargs,
        )
        done = last * steps

"""fit_plan: fits a model to a plan, in one or several calls of `fit`."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_lstm_dssm.layers.synced_weights import SyncAtEpochEnd
from keras_lstm_dssm.training.nesterov_schedule import NesterovSchedule


def fit_plan(
    model: Any,
    plan: Any,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = 0,
    **kwargs: Any,
) -> None:
    """Fits a compiled model from its last training step to the plan's end.

    The last training step is that of `optimizer.iterations`. Callbacks see
    one training, although `fit` is called again after each mining. If the
    optimizer has a momentum to change, it follows the recipe's schedule, if
    there is one.

    Args:
        model: The `TwoTower`, `PairScorer` or `KeyVec`.
        plan: The data and its order, a `TrainingPlan`, `TriplePlan` or
            `DocumentPlan`.
        callbacks: See `keras.Model.fit`; one that sets `model.stop_training`
            ends the training.
        verbose: See `keras.Model.fit`.
        **kwargs: Other arguments of `fit`: `validation_data`.

    Example:
    >>> recipe = dssm.Recipe("DSSMEncoder", {"units": [4]}, epochs=1)
    >>> recipe = recipe.replace(batch_size=2)
    >>> model = recipe.build()
    >>> model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(gamma=5.0))
    >>> clicks = dssm.data.open_log("parts")
    >>> fit_plan(model, dssm.training.TrainingPlan(clicks, recipe))
    >>> int(model.optimizer.iterations)
    2
    """
    recipe, steps, end = plan.recipe, plan.steps_per_epoch, plan.total_steps
    done = int(model.optimizer.iterations.numpy())
    before: list[keras.callbacks.Callback] = []
    if hasattr(model, "sync_weights"):
        before.append(SyncAtEpochEnd())
        if done and done % steps == 0:
            # A checkpoint made just before the end of an epoch: an
            # uninterrupted run brings its rows up to date there.
            model.sync_weights()
    if done >= end:
        return
    schedule = []
    if hasattr(model.optimizer, "look_ahead") and hasattr(
        recipe, "momentum_ends"
    ):
        schedule.append(
            NesterovSchedule(
                end,
                recipe.momentum_ends,
                recipe.momentum_middle,
                recipe.momentum_fraction,
            )
        )
    one_training = _OneTraining(
        [*before, *callbacks, *schedule],
        add_history=True,
        add_progbar=verbose != 0,
        model=model,
    )
    while done < end:
        epoch, inside = divmod(done, steps)
        batches, last = plan.batches_of_a_fit(done, model)
        if inside:
            # `fit` has a fixed number of steps per epoch: the rest of an
            # interrupted epoch needs a call of its own.
            last = epoch + 1
        one_training.set_params(
            {
                "verbose": verbose,
                "epochs": recipe.epochs,
                "steps": steps - inside,
            }
        )
        model.fit(
            batches,
            initial_epoch=epoch,
            epochs=last,
            steps_per_epoch=steps - inside,
            callbacks=one_training,
            verbose=verbose,
            **kwargs,
        )
        done = last * steps
        if model.stop_training:
            break
    one_training.end()


class _OneTraining(keras.callbacks.CallbackList):
    """Lets callbacks see several calls of `fit` as one training."""

    _began = False

    def on_train_begin(self, logs: Any = None) -> None:
        if not self._began:
            self._began = True
            super().on_train_begin(logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._last_logs = logs

    def end(self) -> None:
        """Calls `on_train_end` of each callback."""
        super().on_train_end(self._last_logs)

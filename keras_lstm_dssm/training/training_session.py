"""TrainingSession: runs one training and writes its results."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.cards import record_training
from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.training.base_plan import BasePlan
from keras_lstm_dssm.training.best_epoch import BestEpoch
from keras_lstm_dssm.training.faults import DeadNetwork, Diverged, explain
from keras_lstm_dssm.training.fit_plan import fit_plan
from keras_lstm_dssm.training.gate_histograms import GateHistograms
from keras_lstm_dssm.training.run_callbacks import Checkpoint, HistoryFile
from keras_lstm_dssm.training.run_folder import RunFolder


class TrainingSession(NamedTuple):
    """Runs one training with its callbacks, and writes its results.

    Attributes:
        run: The folder of its files.
        saved: Whether checkpoints, figures and the model are written to it.
        plan: The data and its order.
        validation: Clicks for the loss after each epoch, or `None`.
        best_epoch: Callback that measures the model after epochs and keeps
            the best one, or `None`.
    """

    run: RunFolder
    saved: bool
    plan: BasePlan
    validation: ClickLog | None
    best_epoch: BestEpoch | None

    def restore(self, model: Any) -> None:
        """Restores the figures of the epochs before a resume."""
        best = self.best_epoch
        if best is None:
            return
        best.on_best = self._save_model if self.saved else None
        steps = int(model.optimizer.iterations.numpy())
        epochs, inside = divmod(steps, self.plan.steps_per_epoch)
        rows = {int(row["epoch"]): row for row in self.run.read_history()}
        for epoch in range(1, epochs + 1):
            if best.name in rows.get(epoch, {}):
                best.count(epoch, rows[epoch][best.name])
        if best.best is not None and best.keep_best:
            best.best_weights = self.run.load_model().get_weights()
        if (
            epochs
            and not inside
            and epochs not in rows
            and best.is_due(epochs, self.plan.recipe.epochs)
        ):
            # Stopped after an epoch's last step, before its evaluation.
            logs: dict[str, float] = {}
            callbacks: list[keras.callbacks.Callback] = [best]
            if self.saved:
                callbacks.append(HistoryFile(self.run, epochs - 1))
            for callback in callbacks:
                callback.set_model(model)
                callback.set_params({"epochs": self.plan.recipe.epochs})
                callback.on_epoch_end(epochs - 1, logs)

    def fit(
        self,
        model: Any,
        callbacks: Sequence[keras.callbacks.Callback],
        verbose: Any,
        save_minutes: float,
        histograms: bool,
    ) -> Any:
        """Trains to the end, and writes the model and its figures."""
        run, plan, best = self.run, self.plan, self.best_epoch
        validation = self.validation
        if verbose == "auto":
            verbose = 1 if sys.stdout.isatty() else 2
        done = int(model.optimizer.iterations.numpy())
        files: list[keras.callbacks.Callback] = []
        if self.saved:
            if best:
                best.on_best = self._save_model
            files = [
                HistoryFile(run, done // plan.steps_per_epoch),
                Checkpoint(run, save_minutes, plan.needs_checkpoint),
                keras.callbacks.TensorBoard(run.logs, write_graph=False),
            ]
        if histograms:
            gates = GateHistograms.from_log(run.logs / "gates", model, plan.log)
            files.append(gates)
        if verbose:
            print(f"{plan.describe()}; {model.count_params():,} parameters")
        measured = [best] if best else []
        try:
            if not (best and best.should_stop):
                fit_plan(
                    model,
                    plan,
                    [*plan.watches, *measured, *files, *callbacks],
                    verbose,
                    # Shuffled, always in one order: negatives come from the
                    # batch, and in file order they could be more similar
                    # than in training.
                    validation_data=validation
                    and training_batches(
                        validation, plan.recipe.batch_size, epochs=1, seed=0
                    ),
                )
        except KeyboardInterrupt:
            if self.saved and not (best and best.best_weights):
                self._save_model(model)
            raise
        except (DeadNetwork, Diverged, tf.errors.OpError) as error:
            logs = (*plan.logs, validation) if validation else plan.logs
            explain(
                error, run if self.saved else None, model, logs, plan.batches
            )
            raise
        if best and best.best_weights is not None:
            model.set_weights(best.best_weights)
        if self.saved:
            self._write_results(model)
        return model

    def _save_model(self, model: Any) -> None:
        self.run.save(without_optimizer(model), self.run.model)

    def _write_results(self, model: Any) -> None:
        run = self.run
        self._save_model(model)
        history = run.read_history()
        # Empty if stopped between the last step of epoch 1 and its figures.
        run.add_metrics("train", history[-1] if history else {})
        bad_lines = {"data": self.plan.bad_lines}
        if self.validation:
            bad_lines["validation"] = self.validation.bad_lines()
        for name, bad in bad_lines.items():
            if bad:
                run.add_metrics(f"bad_lines/{name}", dict(bad))
        record_training(run.path, self.plan.log)


def without_optimizer(model: Any) -> Any:
    """Returns an uncompiled copy, which is half the size when saved."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy

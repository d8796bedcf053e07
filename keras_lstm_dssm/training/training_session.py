"""TrainingSession: runs one training and writes its results."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.training.faults import DeadNetwork, Diverged, explain
from keras_lstm_dssm.training.gate_histograms import GateHistograms
from keras_lstm_dssm.training.ranking_evaluation import RankingEvaluation
from keras_lstm_dssm.training.run_callbacks import Checkpoint, HistoryFile
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_plan import TrainingPlan, fit_plan
from keras_lstm_dssm.training.triple_plan import TriplePlan


class TrainingSession(NamedTuple):
    """Runs one training with its callbacks, and writes its results.

    Attributes:
        run: The folder of its files.
        saved: Whether checkpoints, figures and the model are written to it.
        plan: The data and its order.
        validation: Clicks for the loss after each epoch, or `None`.
        ranking: Callback that measures rankings after epochs, or `None`.
    """

    run: RunFolder
    saved: bool
    plan: TrainingPlan | TriplePlan
    validation: ClickLog | None
    ranking: RankingEvaluation | None

    def restore(self, model: Any) -> None:
        """Restores in `ranking` the figures of the epochs before a resume."""
        ranking = self.ranking
        if ranking is None:
            return
        steps = int(model.optimizer.iterations.numpy())
        epochs, inside = divmod(steps, self.plan.steps_per_epoch)
        rows = {int(row["epoch"]): row for row in self.run.read_history()}
        for epoch in range(1, epochs + 1):
            if ranking.name in rows.get(epoch, {}):
                ranking.count(epoch, rows[epoch][ranking.name])
        if ranking.best is not None:
            ranking.best_weights = self.run.load_model().get_weights()
        if (
            epochs
            and not inside
            and epochs not in rows
            and ranking.is_due(epochs, self.plan.recipe.epochs)
        ):
            # Stopped after an epoch's last step, before its evaluation.
            logs: dict[str, float] = {}
            for callback in (ranking, HistoryFile(self.run, epochs - 1)):
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
        run, plan, ranking = self.run, self.plan, self.ranking
        validation = self.validation
        if verbose == "auto":
            verbose = 1 if sys.stdout.isatty() else 2
        done = int(model.optimizer.iterations.numpy())
        files: list[keras.callbacks.Callback] = []
        if self.saved:
            files = [
                HistoryFile(run, done // plan.steps_per_epoch),
                Checkpoint(run, save_minutes),
                keras.callbacks.TensorBoard(run.logs, write_graph=False),
            ]
        if histograms:
            gates = GateHistograms.from_log(run.logs / "gates", model, plan.log)
            files.append(gates)
        if verbose:
            print(f"{plan.describe()}; {model.count_params():,} parameters")
        measured = [ranking] if ranking else []
        try:
            if not (ranking and ranking.should_stop):
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
            if self.saved and not (ranking and ranking.best_epoch):
                run.save(without_optimizer(model), run.model)
            raise
        except (DeadNetwork, Diverged, tf.errors.OpError) as error:
            logs = (*plan.logs, validation) if validation else plan.logs
            explain(
                error, run if self.saved else None, model, logs, plan.batches
            )
            raise
        if ranking and ranking.best_weights is not None:
            model.set_weights(ranking.best_weights)
        if self.saved:
            self._write_results(model)
        return model

    def _write_results(self, model: Any) -> None:
        run = self.run
        run.save(without_optimizer(model), run.model)
        history = run.read_history()
        # Empty if stopped between the last step of epoch 1 and its figures.
        run.add_metrics("train", history[-1] if history else {})
        logs = ("data", self.plan.log), ("validation", self.validation)
        for name, log in logs:
            if log and (bad := log.bad_lines()):
                run.add_metrics(f"bad_lines/{name}", bad)


class SavedRanking(RankingEvaluation):
    """Also writes the weights of the best epoch to `model.keras`."""

    def __init__(self, run: RunFolder, *args: Any) -> None:
        super().__init__(*args)
        self.run = run

    def keep(self) -> None:
        """Keeps the weights of the best epoch, and writes them."""
        super().keep()
        self.run.save(without_optimizer(self.model), self.run.model)


def without_optimizer(model: Any) -> Any:
    """Returns an uncompiled copy, which is half the size when saved."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy

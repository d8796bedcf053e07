"""TrainingPlan: what a model is trained on, in which order; and the fit."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickFrequencies,
    ClickLog,
    GivenNegatives,
    title_pairs,
    training_batches,
    with_pairs,
)
from keras_lstm_dssm.training.hard_negatives import (
    MINE_EVERY,
    MINE_TOP,
    HardNegatives,
)
from keras_lstm_dssm.training.nesterov_schedule import NesterovSchedule


class TrainingPlan(NamedTuple):
    """What a model is trained on, and in which order.

    Attributes:
        log: The clicks.
        epochs: Passes over the log, over the whole run.
        batch_size: Clicks a batch.
        seed: Of the order of the clicks.
        negatives: Titles to be told from the clicked one, beside those that
            the model takes by itself: given, or mined between epochs.
        frequencies: Of the clicked titles, for the correction of the loss.
    """

    log: ClickLog
    epochs: int
    batch_size: int
    seed: int = 0
    negatives: GivenNegatives | HardNegatives | None = None
    frequencies: ClickFrequencies | None = None

    @property
    def steps(self) -> int:
        """Updates in an epoch."""
        return -(-self.log.count() // self.batch_size)

    @property
    def updates(self) -> int:
        """Updates in all epochs."""
        return self.epochs * self.steps

    def batches(
        self, first: int, given: GivenNegatives | None = None
    ) -> tf.data.Dataset:
        """Returns the batches from update `first` on."""
        found = training_batches(
            self.log,
            self.batch_size,
            epochs=self.epochs,
            seed=self.seed,
            first_update=first,
        )
        if given:
            found = given.attach(found, first)
        return self.frequencies.attach(found) if self.frequencies else found


def make_plan(
    settings: Mapping[str, Any],
    clicks: ClickLog,
    titles: Callable[[], list[str]],
    folder: Path,
    judged: Mapping[str, Sequence[str]] | None = None,
) -> TrainingPlan:
    """Makes the plan that settings, such as those of a preset's recipe, name.

    Args:
        settings: `epochs`, `batch_size`, `seed`; and where they are wanted
            `title_pairs`, `hard_negatives` with `mine_every` and `mine_top`,
            `judged_negatives`, `logq`. See `lstm-dssm-train --help`.
        clicks: The clicks.
        titles: Gives all titles, clicked or not, for the pairs of titles.
        folder: Where the files go that the plan needs: `title_pairs.tsv`,
            `hard_negatives.json.gz`.
        judged: Query -> titles judged not to answer it, for the
            `judged_negatives`, which take the place of mined ones.
    """
    log, seed = clicks, settings["seed"]
    if each := settings.get("title_pairs"):
        folder.mkdir(parents=True, exist_ok=True)
        pairs = title_pairs(titles(), each, seed)
        log = with_pairs(clicks, pairs, folder / "title_pairs.tsv")
    negatives: GivenNegatives | HardNegatives | None = None
    if judged is not None:
        negatives = GivenNegatives(judged, settings["judged_negatives"], seed)
    elif k := settings.get("hard_negatives"):
        negatives = HardNegatives(
            folder / "hard_negatives.json.gz",
            clicks,
            k,
            settings.get("mine_every", MINE_EVERY),
            settings.get("mine_top", MINE_TOP),
            seed,
        )
    return TrainingPlan(
        log,
        settings["epochs"],
        settings["batch_size"],
        seed,
        negatives,
        ClickFrequencies.of(log) if settings.get("logq") else None,
    )


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

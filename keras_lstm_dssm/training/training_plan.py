"""TrainingPlan: the pairs that two towers are trained on, and their order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickFrequencies,
    ClickLog,
    GivenNegatives,
    title_pairs,
    training_batches,
    write_pairs,
)
from keras_lstm_dssm.models import Recipe, TwoTower
from keras_lstm_dssm.models.pair_model import ZeroLossWarning
from keras_lstm_dssm.teacher.taught_batches import TaughtBatches
from keras_lstm_dssm.training.base_plan import BasePlan
from keras_lstm_dssm.training.hard_negatives import HardNegatives
from keras_lstm_dssm.training.redrawn_titles import RedrawnTitles
from keras_lstm_dssm.training.replay import Replay


@dataclass(frozen=True)
class TrainingPlan(BasePlan):
    """Describes the data that a model is trained on, and their order.

    Attributes:
        log: The pairs to train on: clicks and synthetic pairs.
        recipe: Epochs, batch size and the schedule of the momentum.
        seed: Seed of the order of the pairs.
        negatives: Negatives beside those that the model takes from the
            batch: judged ones, or ones mined between epochs.
        frequencies: Click frequencies of titles, for the logQ correction.
        taught: What adds a teacher's vectors to the batches.
        redrawn: Synthetic pairs that change from epoch to epoch; `log` then
            has those from which they are made.
        replay: Old clicks that are mixed in, others in each epoch; `log` has
            none of them.

    Example:
    >>> recipe = dssm.PRESETS["lstm_32"].replace(epochs=2, batch_size=2)
    >>> plan = TrainingPlan(dssm.data.open_log("parts"), recipe)
    >>> plan.examples, plan.steps_per_epoch, plan.total_steps
    (3, 2, 4)
    """

    log: ClickLog
    recipe: Recipe
    seed: int = 0
    negatives: GivenNegatives | HardNegatives | None = None
    frequencies: ClickFrequencies | None = None
    taught: TaughtBatches | None = None
    redrawn: RedrawnTitles | None = None
    replay: Replay | None = None

    @property
    def examples(self) -> int:
        """Pairs in an epoch."""
        return self.log.count() + (self.replay.rows if self.replay else 0)

    @property
    def logs(self) -> tuple[ClickLog, ...]:
        """The click logs that are read while training."""
        return (self.log,)

    def batches(
        self, first: int, negatives: GivenNegatives | None = None
    ) -> tf.data.Dataset:
        """Returns the batches from training step `first` on.

        They end with the recipe's last epoch, or with the epoch of `first` if
        the pairs differ from epoch to epoch.
        """
        log, epochs = self.log, self.recipe.epochs
        frequencies = self.frequencies
        if self.redrawn or self.replay:
            epoch = first // self.steps_per_epoch
            log, epochs = self._log_of(epoch), epoch + 1
        if self.replay and frequencies:  # those of what batches are drawn from
            frequencies = ClickFrequencies.from_log(log, frequencies.split)
        batches = training_batches(
            log,
            self.recipe.batch_size,
            epochs=epochs,
            seed=self.seed,
            first_step=first,
            shuffle_buffer=self.recipe.shuffle_buffer,
        )
        if negatives:
            batches = negatives.attach(batches, first)
        if frequencies:
            batches = frequencies.attach(batches)
        if self.taught:
            batches = self.taught.attach(batches)
        return batches

    def _log_of(self, epoch: int) -> ClickLog:
        """Returns the pairs of an epoch that differ from those of others."""
        if self.redrawn:
            return self.redrawn.of_epoch(epoch)
        assert self.replay
        return self.replay.joined(self.log, epoch)

    def describe(self) -> str:
        """Describes the amount of data."""
        if self.replay:
            return (
                f"{self.examples:,} pairs, {self.replay.rows:,} of them old "
                "clicks"
            )
        return f"{self.examples:,} pairs"

    def needs_checkpoint(self, epochs: int) -> bool:
        """Returns whether negatives are mined before the next epoch."""
        return (
            isinstance(self.negatives, HardNegatives)
            and self.negatives.next_mining(epochs - 1) == epochs
        )

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """The callback that warns of a training without negatives."""
        return [ZeroLossWarning()]

    def batches_of_a_fit(
        self, first: int, model: TwoTower
    ) -> tuple[tf.data.Dataset, int]:
        """Mines negatives if they are due; see `BasePlan.batches_of_a_fit`."""
        epoch, inside = divmod(first, self.steps_per_epoch)
        negatives, last = self.negatives, self.recipe.epochs
        if isinstance(negatives, HardNegatives):
            last = min(last, negatives.next_mining(epoch))
            mined = negatives.clicks
            if self.replay:
                mined = self.replay.joined(mined, epoch)
            negatives = negatives.of_epoch(epoch, model, not inside, mined)
        if self.redrawn or self.replay:
            last = epoch + 1
        return self.batches(first, negatives), last


def make_plan(
    recipe: Recipe,
    seed: int,
    clicks: ClickLog,
    titles: Callable[[], Sequence[str]],
    folder: Path,
    model: TwoTower,
    judged: Mapping[str, Sequence[str]] | None = None,
    resumed: bool = False,
    taught: TaughtBatches | None = None,
    replay: Replay | None = None,
    continued: bool = False,
) -> TrainingPlan:
    """Makes the plan that a recipe describes.

    Args:
        recipe: The `Recipe` of the training.
        seed: Seed of the order, of synthetic pairs and of drawn negatives.
        clicks: The click log, without synthetic pairs.
        titles: Function that returns all document titles, clicked or not,
            for the synthetic pairs.
        folder: Folder for the files of the plan, `title_pairs.tsv`,
            `epoch_pairs.tsv` and `hard_negatives.json.gz`.
        model: The model, whose encoders determine which texts are equal.
        judged: Query -> titles judged not relevant, for
            `recipe.judged_negatives`.
        resumed: Whether to use an existing `title_pairs.tsv`.
        taught: What adds a teacher's vectors to the batches; the synthetic
            pairs are then redrawn for each epoch.
        replay: Old clicks to mix in, none of which is mined as a negative.
        continued: Whether the model is trained already, so that negatives
            are mined from the first epoch on.
    """
    log = clicks
    redrawn = None
    if recipe.title_pairs:
        path = folder / "title_pairs.tsv"
        if not (resumed and path.exists()):
            write_pairs(title_pairs(titles(), recipe.title_pairs, seed), path)
        log = ClickLog([*clicks.paths, path], clicks.max_bad_lines)
        if taught:
            redrawn = RedrawnTitles(
                clicks, ClickLog(path), folder / "epoch_pairs.tsv", seed
            )
    negatives: GivenNegatives | HardNegatives | None = None
    if recipe.judged_negatives and judged is not None:
        negatives = GivenNegatives(
            judged,
            recipe.judged_negatives,
            seed,
            model.query_encoder.trigrams.split,
        )
    elif recipe.hard_negatives:
        negatives = HardNegatives(
            folder / "hard_negatives.json.gz",
            clicks,
            recipe.hard_negatives,
            recipe.mine_every,
            recipe.mine_top,
            seed,
            from_start=continued,
            clusters=recipe.mine_clusters,
            known=replay.log if replay else (),
        )
    return TrainingPlan(
        log,
        recipe,
        seed,
        negatives,
        ClickFrequencies.from_log(
            log, split=model.document_encoder.trigrams.split
        )
        if recipe.logq
        else None,
        taught,
        redrawn,
        replay,
    )

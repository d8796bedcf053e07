"""The training of two towers: the model, pairs and their order, the teacher."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import keras
import tensorflow as tf

from keras_lstm_dssm.data.augmentation import title_pairs
from keras_lstm_dssm.data.batches import (
    ClickFrequencies,
    GivenNegatives,
    training_batches,
)
from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.sources import DataSource
from keras_lstm_dssm.data.statistics import alphabet_warning
from keras_lstm_dssm.distillation.teacher_vectors import (
    TaughtBatches,
    TeacherVectors,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.losses import CosineSoftmax, Distillation
from keras_lstm_dssm.models.recipes import Recipe
from keras_lstm_dssm.models.two_tower import TwoTower, ZeroLossWarning
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.training.config import (
    TWO_TOWERS,
    DataOptions,
    given_texts,
    open_clicks,
)
from keras_lstm_dssm.training.initial_model import Parent
from keras_lstm_dssm.training.mining import HardNegatives
from keras_lstm_dssm.training.replay import RedrawnTitles, Replay, ReplaySpec
from keras_lstm_dssm.training.session import BasePlan, BaseTraining

Teacher = str | os.PathLike[str] | TeacherVectors


def open_teacher(teacher: Teacher | None) -> TeacherVectors | None:
    """Opens a teacher's vectors.

    Args:
        teacher: Folder that `lstm-dssm-teach` has written, or its vectors, or
            `None`.

    Raises:
        InputError: The folder is wrong.
    """
    if teacher is None or isinstance(teacher, TeacherVectors):
        return teacher
    return TeacherVectors.open(teacher)


def check_knows(
    teacher: TeacherVectors, texts: Sequence[str], spec: str
) -> None:
    """Checks that each text has a vector.

    Args:
        teacher: The teacher.
        texts: The queries or the titles of the data.
        spec: Data specification of the clicks, for the message.

    Raises:
        InputError: A text has none.
    """
    missing = teacher.rows(texts) < 0
    if missing.any():
        raise InputError(
            f"{teacher.folder or 'teacher'}: has no vector of"
            f" {int(missing.sum()):,} texts of {spec}, the first"
            f" {texts[int(missing.argmax())]!r:.80}; expected all training"
            " queries and titles: run lstm-dssm-teach on these data, with"
            " another --output"
        )


def teacher_folder(teacher: Teacher | None, saved: bool) -> str | None:
    """Returns the folder of a teacher, for `config.json`, or `None`.

    Args:
        teacher: As `train` was given it.
        saved: Whether the run is written to a folder, to be resumed.

    Raises:
        InputError: The run is to be written, and the vectors are not those of
            a folder.
    """
    if isinstance(teacher, TeacherVectors):
        if teacher.folder is None and saved:
            raise InputError(
                "teacher has vectors of no folder, which a resumed run cannot"
                " read: give the folder of lstm-dssm-teach, or no output"
            )
        return teacher.folder
    return None if teacher is None else os.path.abspath(teacher)


def check_same_teacher(
    teacher: TeacherVectors, folder: Path, resumed: bool
) -> None:
    """Writes a hash of the teacher into a run, or compares it when resumed.

    Args:
        teacher: The teacher.
        folder: The folder of the run; the file is `teacher.json`.
        resumed: Whether the run was begun before.

    Raises:
        InputError: The run was begun with another teacher.
    """
    path = folder / "teacher.json"
    if not resumed:
        write_json(path, {"folder": teacher.folder, "sha256": teacher.sha256})
    elif read_json(path).get("sha256") != teacher.sha256:
        raise InputError(
            f"{teacher.folder}: found other vectors than those that the run in"
            f" {folder} was started with: restore the folder, or train anew in"
            " another --output"
        )


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
            recipe,
            seed,
            from_start=continued,
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


@dataclass(frozen=True)
class TowerTraining(BaseTraining):
    """Makes the model and the plan of a training of two towers.

    Attributes:
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        log: The clicks.
        spec: Data specification from which `log` can be opened again.
        titles: Titles beyond those of `spec`.
        judged: Query -> titles judged not relevant.
        teacher: Vectors of an outside encoder to learn from, or `None`.
        replay: Old clicks to mix in, or `None`.
        continued: Whether the weights start from those of a trained model.
        min_relevant: Grade from which a judged title counts as clicked.
    """

    recipe: Recipe
    seed: int
    log: ClickLog
    spec: str
    titles: tuple[str, ...] = ()
    judged: Mapping[str, Sequence[str]] | None = None
    teacher: TeacherVectors | None = None
    replay: ReplaySpec | None = None
    continued: bool = False
    min_relevant: int = 1

    @classmethod
    def open(
        cls,
        recipe: Recipe,
        seed: int,
        run: RunFolder,
        options: DataOptions,
    ) -> "TowerTraining":
        """Opens and checks the clicks.

        Raises:
            InputError: The clicks are wrong, or options are given that only
                other models use.
        """
        options.check(TWO_TOWERS)
        replay = ReplaySpec.parse(options.replay)
        if replay and options.teacher is not None:
            raise InputError(
                "replay and teacher are both set: expected one of them, since "
                "a teacher has no vectors of old clicks: leave one out"
            )
        log, spec = open_clicks(options, run)
        log.files()  # raises for a wrong file before the work
        titles, judged = given_texts(options, run)
        if recipe.judged_negatives and judged is None:
            judged = DataSource(spec).judged_negatives(options.min_relevant)
        training = cls(
            recipe, seed, log, spec, titles, judged,
            open_teacher(options.teacher),
            replay, options.continued, options.min_relevant,
        )  # fmt: skip
        if training.teacher is not None:
            for texts in (training.queries, training.data_titles):
                check_knows(training.teacher, texts, spec)
        return training

    def new_model(self, parent: Parent | None = None) -> TwoTower:
        """Builds, adapts and compiles the model.

        That of a parent is adapted already: the word weights stay those of
        the titles that the parent was adapted to.
        """
        recipe = self.recipe
        model = recipe.build(self.seed)
        if parent is not None:
            parent.check_kind(TwoTower)
            parent.give_weights(model)
        if model.needs_adapt:
            model.adapt(self.all_titles)
        model.compile(
            NesterovMomentum(
                recipe.learning_rate,
                recipe.momentum_ends,
                threshold=recipe.threshold,
            ),
            CosineSoftmax(recipe.gamma)
            if self.teacher is None
            else Distillation(
                recipe.gamma,
                recipe.teacher_weight,
                recipe.teacher_temperature,
                recipe.teacher_gamma,
            ),
        )
        return model

    def plan(
        self, folder: Path, model: TwoTower, resumed: bool = False
    ) -> TrainingPlan:
        """Makes the plan; see `make_plan`.

        Raises:
            InputError: A resumed run has another teacher than it began with.
        """
        taught = None
        if self.teacher is not None:
            check_same_teacher(self.teacher, folder, resumed)
            texts = [*self.queries, *self.all_titles]
            taught = TaughtBatches(self.teacher, texts)
        replay = self.replay and Replay(
            self.replay,
            self.log.count(),
            folder,
            self.seed,
            self.min_relevant,
            self.max_bad_lines,
        )
        return make_plan(
            self.recipe,
            self.seed,
            self.log,
            lambda: self.all_titles,
            folder,
            model,
            self.judged,
            resumed,
            taught,
            replay,
            self.continued,
        )

    @cached_property
    def queries(self) -> list[str]:
        """The queries, each once; reads the whole click log."""
        return list(dict.fromkeys(pair.query for pair in self.log))

    @cached_property
    def data_titles(self) -> list[str]:
        """The titles of the data, each once; reads the whole click log."""
        return DataSource(self.spec).titles(self.log)

    @property
    def all_titles(self) -> list[str]:
        """The known document titles, each once."""
        return list(dict.fromkeys([*self.titles, *self.data_titles]))

    def warn(self, model: TwoTower) -> None:
        """Prints a warning if the encoders cannot read the clicks' letters."""
        if not self.recipe.encoder_config.get("oov_buckets"):
            if line := alphabet_warning(self.log):
                print(f"warning: {line}", file=sys.stderr)

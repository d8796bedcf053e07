"""TowerTraining: what clicks and a recipe of two towers are trained as."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from keras_lstm_dssm.data import (
    ClickLog,
    alphabet_warning,
    judged_negatives,
    titles_of,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import Recipe, TwoTower
from keras_lstm_dssm.teacher import TeacherVectors
from keras_lstm_dssm.teacher.taught_batches import TaughtBatches
from keras_lstm_dssm.training.base_training import BaseTraining
from keras_lstm_dssm.training.cosine_softmax import CosineSoftmax
from keras_lstm_dssm.training.distillation import Distillation
from keras_lstm_dssm.training.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.training.parent import Parent
from keras_lstm_dssm.training.replay import Replay, ReplaySpec
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.run_teacher import (
    check_knows,
    check_same_teacher,
    open_teacher,
)
from keras_lstm_dssm.training.training_data import (
    TWO_TOWERS,
    DataOptions,
    given_texts,
    open_clicks,
)
from keras_lstm_dssm.training.training_plan import TrainingPlan, make_plan


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
            judged = judged_negatives(spec, options.min_relevant)
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
        return titles_of(self.spec, self.log)

    @property
    def all_titles(self) -> list[str]:
        """The known document titles, each once."""
        return list(dict.fromkeys([*self.titles, *self.data_titles]))

    def warn(self, model: TwoTower) -> None:
        """Prints a warning if the encoders cannot read the clicks' letters."""
        if not self.recipe.encoder_config.get("oov_buckets"):
            if line := alphabet_warning(self.log):
                print(f"warning: {line}", file=sys.stderr)

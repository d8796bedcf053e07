"""The training of a pair scorer: its model, its triples and their order."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import tensorflow as tf

from keras_lstm_dssm.callbacks.failures import DeadNetworkWatch
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.sources import is_collection, open_collection
from keras_lstm_dssm.data.triples import Triples
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.losses import PairwiseHinge
from keras_lstm_dssm.matchers.deep_match import SMALL_LEVELS, topic_levels
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.recipes import ScorerRecipe
from keras_lstm_dssm.optimizers.adagrad import Adagrad
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.text.vocabulary import vocabulary_of
from keras_lstm_dssm.training.config import (
    PAIR_SCORERS,
    DataOptions,
    open_clicks,
)
from keras_lstm_dssm.training.initial_model import Parent
from keras_lstm_dssm.training.mining import FILE_NAME, MinedLists
from keras_lstm_dssm.training.session import BasePlan, BaseTraining
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors


@dataclass(frozen=True)
class TriplePlan(BasePlan):
    """Describes the data that a pair scorer is trained on, and their order.

    The counterpart of `TrainingPlan`.

    Attributes:
        triples: The triples to train on.
        recipe: Epochs and batch size.
        seed: Seed of the order of the triples.
        log: The click log that the triples were mined from, or `None`.

    Example:
    >>> triples = Triples([("hex bolt", ["steel hex bolt"], ["wood glue"])])
    >>> plan = TriplePlan(triples, dssm.SCORER_PRESETS["mv_lstm_tensor"])
    >>> plan.examples, plan.steps_per_epoch
    (1, 1)
    """

    triples: Triples
    recipe: ScorerRecipe
    seed: int = 0
    log: ClickLog | None = None

    examples_name = "triples"

    @property
    def examples(self) -> int:
        """Triples in an epoch."""
        return len(self.triples)

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """Callbacks that stop a training which cannot succeed any more."""
        return [DeadNetworkWatch(self.recipe.margin, self.steps_per_epoch)]

    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""
        return self.triples.batches(
            self.recipe.batch_size,
            epochs=self.recipe.epochs,
            seed=self.seed,
            first_step=first,
        )

    def describe(self) -> str:
        """Describes the amount of data."""
        return self.triples.describe()


@dataclass(frozen=True)
class ScorerTraining(BaseTraining):
    """Makes the model and the plan of a training of a pair scorer.

    The counterpart of `TowerTraining`.

    Attributes:
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        triples: The triples to train on.
        spec: Data specification from which they can be made again.
        log: The click log that the triples were mined from; `None` for
            judged lists.
    """

    recipe: ScorerRecipe
    seed: int
    triples: Triples
    spec: str
    log: ClickLog | None = None

    @classmethod
    def open(
        cls,
        recipe: ScorerRecipe,
        seed: int,
        run: RunFolder,
        options: DataOptions,
    ) -> "ScorerTraining":
        """Opens judged lists, or mines negatives for clicks.

        A folder whose training split has documents judged not relevant gives
        its judged lists; anything else is read as clicks. A resumed run reads
        negatives that towers have mined from the run folder.

        Raises:
            InputError: The data are wrong, or options are given that only
                other models use.
        """
        options.check(PAIR_SCORERS)
        clicks, negatives_from = options.data, options.negatives_from
        if isinstance(clicks, str | os.PathLike) and is_collection(clicks):
            spec = os.fspath(clicks)
            collection = open_collection(spec)
            minimum = options.min_relevant
            if collection.has_judged_negatives(minimum):
                if negatives_from is not None:
                    raise InputError(
                        f"negatives_from mines negatives for clicks, but "
                        f"{spec} has judged ones: leave it out, or name the "
                        "click files"
                    )
                triples = Triples.from_collection(
                    collection, min_relevant=minimum
                )
                return cls(recipe, seed, triples, spec)
        log, spec = open_clicks(options, run)
        if negatives_from is None:
            triples = Triples.from_clicks(
                log, recipe.mined_negatives, seed=seed
            )
        else:
            mined = MinedLists(
                run.path / FILE_NAME, log, recipe.mined_negatives, seed
            )
            lists = (
                mined.read() if options.resumed else mined.mine(negatives_from)
            )
            triples = Triples(lists, name=", ".join(log.paths[:3]))
        return cls(recipe, seed, triples, spec, log)

    def new_model(self, parent: Parent | None = None) -> PairScorer:
        """Builds, pre-trains and compiles the model.

        That of a parent has its words: words of the new texts that it does
        not know stay unknown.
        """
        model = self._of_parent(parent) if parent else self._pretrained()
        model.compile(
            Adagrad(
                self.recipe.learning_rate,
                multipliers=model.matcher.multipliers,
            ),
            PairwiseHinge(self.recipe.margin),
        )
        return model

    def _of_parent(self, parent: Parent) -> PairScorer:
        parent.check_kind(PairScorer)
        parent.check_words(self.recipe.words)
        levels = getattr(parent.model.matcher, "topics", SMALL_LEVELS)
        recipe = _with_topics(self.recipe, levels)
        model = recipe.build(self.seed, parent.vocabulary)
        parent.give_weights(model)
        return model

    def _pretrained(self) -> PairScorer:
        recipe, texts = self.recipe, self.triples.texts
        vocabulary, vectors = [], None
        if recipe.words != "trigrams":
            vocabulary = vocabulary_of(
                texts, recipe.min_count, split=recipe.split
            )
            if recipe.skip_gram:
                vectors = skip_gram_vectors(
                    texts,
                    vocabulary,
                    recipe.word_dimension,
                    epochs=recipe.skip_gram_epochs,
                    seed=self.seed,
                    split=recipe.split,
                )
        recipe = _with_topics(recipe, topic_levels(self.triples.positives))
        model = recipe.build(self.seed, vocabulary, vectors)
        if model.matcher.needs_pretraining:
            queries, documents = self.triples.positive_pairs()
            model.matcher.pretrain(model.words, queries, documents, self.seed)
        return model

    def plan(
        self, folder: Path, model: PairScorer, resumed: bool = False
    ) -> TriplePlan:
        """Makes the plan."""
        return TriplePlan(self.triples, self.recipe, self.seed, self.log)

    def warn(self, model: PairScorer) -> None:
        """Warns of mined negatives, and of answers of dev or test in train."""
        if self.log is not None and is_collection(self.spec):
            print(
                f"warning: {self.spec}: no document of the training split is "
                "judged not relevant: negatives are mined among its titles",
                file=sys.stderr,
            )
        if shared := self.triples.shared_answers:
            print(
                f"warning: {self.spec}: {shared:,} answers of dev or test are "
                "positives of the training split, too",
                file=sys.stderr,
            )


def _with_topics(recipe: ScorerRecipe, levels: Sequence[int]) -> ScorerRecipe:
    """Adds numbers of topics to a recipe of `DeepMatch` that has none."""
    if recipe.matcher != "DeepMatch" or "topics" in recipe.matcher_config:
        return recipe
    return recipe.with_matcher(topics=list(levels))

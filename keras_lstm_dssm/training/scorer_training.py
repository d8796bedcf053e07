"""The training of a pair scorer on triples."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.callbacks import DeadNetworkWatch
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.sources import is_collection, open_collection
from keras_lstm_dssm.data.triples import JudgedList, Triples, clicked_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.files import write_json_gz
from keras_lstm_dssm.matchers.deep_match import SMALL_LEVELS, topic_levels
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.models.word_builders import build_scorer, compile_scorer
from keras_lstm_dssm.plain_files import one_line, read_json_gz
from keras_lstm_dssm.run_folder import open_towers
from keras_lstm_dssm.settings.recipes import ScorerRecipe
from keras_lstm_dssm.text.vocabulary import vocabulary_of
from keras_lstm_dssm.training.initial_model import InitialModel
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from keras_lstm_dssm.training.train import Training, open_clicks

FILE_NAME = "mined_lists.json.gz"  # negatives that two towers have mined


class ScorerTraining(Training):
    """The training of a pair scorer."""

    recipe: ScorerRecipe

    examples_name = "triples"

    def open(self) -> None:
        """Opens judged lists, or opens clicks and mines negatives."""
        config, recipe = self.config, self.recipe
        data, negatives_from = config.data, config.negatives_from
        if isinstance(data, str | os.PathLike) and is_collection(data):
            self.spec = os.fspath(data)
            collection = open_collection(self.spec)
            minimum = config.min_relevant
            if collection.has_judged_negatives(minimum):
                if negatives_from is not None:
                    raise InputError(
                        f"negatives_from mines negatives for clicks, but "
                        f"{self.spec} has judged negatives: leave "
                        "negatives_from out, or give the click files as data"
                    )
                self.triples = Triples.from_collection(
                    collection, min_relevant=minimum
                )
                return
        self.log, source = open_clicks(
            data, self.run, config.min_relevant, config.max_bad_lines
        )
        self.spec = source.spec
        if negatives_from is None:
            self.triples = Triples.from_clicks(
                self.log, recipe.mined_negatives, seed=config.seed
            )
            return
        path = self.run.path / FILE_NAME
        if self.resumed:
            lists = read_lists(path, self.log)
        else:
            top, seed = recipe.mined_negatives, config.seed
            lists = mine_lists(path, self.log, negatives_from, top, seed)
        self.triples = Triples(lists, name=", ".join(self.log.paths[:3]))

    def count(self) -> int:
        """Returns the number of triples in an epoch."""
        return len(self.triples)

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """A callback that stops the training if the network is dead."""
        return [DeadNetworkWatch(self.recipe.margin, self.steps_per_epoch)]

    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""
        return self.triples.batches(
            self.recipe.batch_size,
            epochs=self.recipe.epochs,
            seed=self.config.seed,
            first_step=first,
        )

    def describe(self) -> str:
        """Describes the triples in one line."""
        return self.triples.describe()

    def dev_task(self, spec: str) -> Task:
        """Makes the task that reranks the judged lists of dev."""
        collection = open_collection(spec)
        minimum = self.config.min_relevant
        return Task.from_collection(collection, "dev", "rerank", minimum)

    def new_model(self, initial: InitialModel | None = None) -> PairScorer:
        """Compiles a copy of `initial`, or a new and pre-trained model."""
        model = self._copied(initial) if initial else self._pretrained()
        compile_scorer(model, self.recipe)
        return model

    def _copied(self, initial: InitialModel) -> PairScorer:
        initial.check(self.recipe)
        levels = getattr(initial.model.matcher, "topics", SMALL_LEVELS)
        recipe = _with_topics(self.recipe, levels)
        model = build_scorer(recipe, self.config.seed, initial.vocabulary)
        initial.copy_weights_to(model)
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
                    seed=self.config.seed,
                    split=recipe.split,
                )
        recipe = _with_topics(recipe, topic_levels(self.triples.positives))
        model = build_scorer(recipe, self.config.seed, vocabulary, vectors)
        if model.matcher.needs_pretraining:
            queries, documents = self.triples.positive_pairs()
            seed = self.config.seed
            model.matcher.pretrain(model.words, queries, documents, seed)
        return model

    def warn(self, model: PairScorer) -> None:
        """Warns if a collection has no negatives, or splits share positives."""
        if self.log is not None and is_collection(self.spec):
            self.print_warning(
                "no document of the training split is judged not relevant:"
                " negatives are mined among the clicked titles"
            )
        if shared := self.triples.shared_answers:
            self.print_warning(
                f"{shared:,} answers of dev or test are positives of the"
                " training split, too"
            )


def _with_topics(recipe: ScorerRecipe, levels: Sequence[int]) -> ScorerRecipe:
    """Sets `topics` of a `DeepMatch` matcher if the recipe has no `topics`."""
    if recipe.matcher != "DeepMatch" or "topics" in recipe.matcher_config:
        return recipe
    return recipe.with_matcher(topics=list(levels))


def mine_lists(
    path: Path,
    log: ClickLog,
    towers: TwoTower | str | os.PathLike[str],
    top: int,
    seed: int,
) -> list[JudgedList]:
    """Mines negatives for each query, and writes the lists to a file."""
    towers = open_towers(towers, "negatives_from")
    # `clicked_lists` compares titles in the form that `one_line` returns.
    index = Index(towers, map(one_line, log.documents()))
    lists = list(clicked_lists(log, top, index, seed))
    write_json_gz(path, {"lists": lists})
    return lists


def read_lists(path: Path, log: ClickLog) -> list[JudgedList]:
    """Reads the lists of `mine_lists`, and checks the number of clicks."""

    def parse(value: Any) -> tuple[list[JudgedList], int]:
        lists = [JudgedList(*fields) for fields in value["lists"]]
        for query, positives, negatives, weights in lists:
            if not all(
                isinstance(text, str)
                for text in (query, *positives, *negatives)
            ) or (weights and not all(isinstance(w, float) for w in weights)):
                raise TypeError(
                    "expected lists of texts, with numbers as weights"
                )
        return lists, sum(len(judged.positives) for judged in lists)

    lists, positives = read_json_gz(path, parse, "mined negatives")
    clicks = sum(1 for _ in log)
    if clicks != positives:
        raise InputError(
            f"{', '.join(log.paths[:3])}: found {clicks:,} clicks,"
            f" expected the {positives:,} that {path.name} was mined"
            " from: restore the clicks, or train anew in another --output"
        )
    return lists

"""Builds and compiles models with word vectors: pair scorers and KeyVecs."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_lstm_dssm.layers.word_vectors import (
    TrigramVectors,
    VocabularyVectors,
)
from keras_lstm_dssm.losses import KeyVecLoss, PairwiseHinge
from keras_lstm_dssm.matchers.matcher import Matcher
from keras_lstm_dssm.models.builders import (
    check_arguments,
    registered_class,
    seeded_initializers,
)
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.optimizers import Adagrad
from keras_lstm_dssm.settings.recipes import (
    KeyVecRecipe,
    ScorerRecipe,
    WordsRecipe,
)


def _new_words(
    recipe: WordsRecipe, vocabulary: Sequence[str], vectors: np.ndarray | None
) -> VocabularyVectors | TrigramVectors:
    options: dict[str, Any] = {
        "dimension": recipe.word_dimension,
        "max_words": recipe.max_words,
        "name": "words",
    }
    if recipe.words == "trigrams":
        return TrigramVectors(**options)
    words = VocabularyVectors(vocabulary, split=recipe.split, **options)
    if vectors is not None:
        words.set_vectors(vectors)
    return words


def check_scorer(recipe: ScorerRecipe) -> None:
    """Checks the class and the arguments of a recipe's matcher."""
    check_arguments(
        registered_class("matcher", recipe.matcher, Matcher),
        Matcher,
        "matcher_config",
        recipe.matcher_config,
        ("word_dimension",),
    )


def build_scorer(
    recipe: ScorerRecipe,
    seed: int = 0,
    vocabulary: Sequence[str] = (),
    vectors: np.ndarray | None = None,
) -> PairScorer:
    """Builds a pair scorer; `vectors` are initial vectors of the words."""
    matcher_class = registered_class("matcher", recipe.matcher, Matcher)
    with seeded_initializers(seed):
        words = _new_words(recipe, vocabulary, vectors)
        matcher = matcher_class(
            recipe.word_dimension, name="matcher", **recipe.matcher_config
        )
    return PairScorer(words, matcher, seed)


def compile_scorer(model: PairScorer, recipe: ScorerRecipe) -> None:
    """Compiles a pair scorer."""
    model.compile(
        Adagrad(recipe.learning_rate, multipliers=model.matcher.multipliers),
        PairwiseHinge(recipe.margin),
    )


def build_keyvec(
    recipe: KeyVecRecipe,
    seed: int = 0,
    vocabulary: Sequence[str] = (),
    vectors: np.ndarray | None = None,
    stems: Sequence[str] = (),
) -> KeyVec:
    """Builds a `KeyVec`; `vocabulary` has the possible key words.

    If `recipe.words` is `"stems"`, `stems` are the words with vectors.
    """
    with seeded_initializers(seed):
        return KeyVec(
            _new_words(
                recipe,
                stems if recipe.words == "stems" else vocabulary,
                vectors,
            ),
            None if recipe.words == "vocabulary" else vocabulary,
            recipe.filters,
            recipe.windows,
            recipe.units,
            recipe.dimension,
            recipe.weighted,
            recipe.dropout,
            recipe.max_sentences,
            seed,
        )


def compile_keyvec(model: KeyVec, recipe: KeyVecRecipe, documents: int) -> None:
    """Compiles a `KeyVec` to train on the given number of documents."""
    learning_rate: Any = recipe.learning_rate
    if recipe.decay:
        steps = recipe.epochs * math.ceil(documents / recipe.batch_size)
        learning_rate = keras.optimizers.schedules.CosineDecay(
            learning_rate, steps
        )
    model.compile(
        keras.optimizers.Adam(learning_rate),
        KeyVecLoss(recipe.read_weight, recipe.word_weight, recipe.normalize),
    )

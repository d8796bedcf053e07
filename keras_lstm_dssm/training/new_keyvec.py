"""new_keyvec: builds, initialises and compiles the `KeyVec` of a recipe."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_lstm_dssm.models import KeyVec, KeyVecRecipe
from keras_lstm_dssm.text import normalize, vocabulary_of
from keras_lstm_dssm.training.keyvec_loss import KeyVecLoss
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors


def new_keyvec(
    recipe: KeyVecRecipe, seed: int, sentences: Sequence[str], documents: int
) -> KeyVec:
    """Builds and compiles the model that a recipe describes.

    Args:
        recipe: The recipe.
        seed: Seed of the weights and of the skip-gram vectors.
        sentences: The sentences of the training documents, from which the
            vocabulary is taken, and the skip-gram vectors with which words
            and key words start.
        documents: The number of training documents; with `recipe.decay`, it
            gives the number of steps in which the learning rate falls to 0.

    Raises:
        InputError: No word is frequent enough, or gensim is not installed.
    """
    vocabulary = vocabulary_of(
        sentences, recipe.min_count, recipe.vocabulary_size
    )
    stems: Sequence[str] = ()
    if recipe.words == "stems":
        stems = vocabulary_of(
            sentences, recipe.min_count, recipe.vocabulary_size, recipe.split
        )
        # The most frequent word of each stem is its key word.
        key_words: dict[str, str] = {}
        normal = normalize(vocabulary, recipe.split)
        for stem, word in zip(normal, vocabulary, strict=True):
            key_words.setdefault(stem, word)
        vocabulary = list(key_words.values())
    vectors = None
    if recipe.words != "trigrams" and recipe.skip_gram:
        vectors = skip_gram_vectors(
            sentences,
            stems or vocabulary,
            recipe.word_dimension,
            epochs=recipe.skip_gram_epochs,
            seed=seed,
            split=recipe.split,
        )
    model = recipe.build(seed, vocabulary, vectors, stems)
    if recipe.key_word_start:
        # Often the same vectors; `skip_gram_vectors` then trains only once.
        vectors = skip_gram_vectors(
            sentences,
            vocabulary,
            recipe.dimension,
            epochs=recipe.skip_gram_epochs,
            seed=seed,
        )
        model.word_scores.kernel.assign(
            recipe.key_word_start * _directions(vectors).T
        )
    compile_keyvec(model, recipe, documents)
    return model


def compile_keyvec(model: KeyVec, recipe: KeyVecRecipe, documents: int) -> None:
    """Compiles a `KeyVec` with the optimizer and the loss of its recipe.

    Args:
        model: The model.
        recipe: The recipe.
        documents: The number of training documents. With `recipe.decay` the
            learning rate falls to 0 over `recipe.epochs` passes over them.
    """
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


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Scales vectors to unit length, and subtracts their mean.

    The skip-gram vectors of all words have a direction in common. In W_v it
    would change the scores of all key words by the same number.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return directions - directions.mean(axis=0)

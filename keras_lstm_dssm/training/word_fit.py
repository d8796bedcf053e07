"""`fit_words` fits word vectors to the text vectors of a teacher.

The sum of a text's word vectors approximates the teacher's vector of the text.
The teacher is a sentence encoder. `teach` stores the vectors of the teacher.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from keras_lstm_dssm.data.teacher_folder import (
    BLOCK,
    TeacherFolder,
    TeacherVectors,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.layers.fixed_words import WordRows, word_keys
from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.model_cards import record_training
from keras_lstm_dssm.models.builders import build_towers
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.recipes import Recipe
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.version import __version__
from lstm_dssm_client.bm25 import idf

QUERY_WEIGHT = 3.0  # weight of a query in the fit; other texts have weight 1
STRENGTH = 0.1  # strength of the regularisation of word vectors
TRIGRAM_STRENGTH = 1.0  # strength of the regularisation of trigram vectors
STEPS = 30  # number of steps of conjugate gradients
_COLUMNS = 64  # number of columns solved at once, which limits the memory
_TINY = np.float32(1e-30)


class FittedWords(NamedTuple):
    """The fitted vectors of words and of trigrams."""

    words: np.ndarray  # keys of the words (`word_keys`), int64 `[n]`
    word_rows: np.ndarray  # vectors of the words, float32 `[n, d]`
    trigrams: np.ndarray  # ids of the trigrams, int64 `[m]`
    trigram_rows: np.ndarray  # vectors of the trigrams, float32 `[m, d]`

    @property
    def config(self) -> dict[str, int]:
        """Arguments for a `WordSumEncoder` that can hold these vectors."""
        return {
            "known_words": len(self.words),
            "known_trigrams": len(self.trigrams),
            "units": self.word_rows.shape[1],
        }

    def write_to(self, layer: WordRows) -> None:
        """Sets the vectors of a layer."""
        layer.of_words.set_rows(self.words, self.word_rows)
        layer.of_trigrams.set_rows(self.trigrams, self.trigram_rows)


def fit_words(
    folder: str | os.PathLike[str], hashing: LetterTrigrams
) -> FittedWords:
    """Fits word vectors to the text vectors that `teach` has written.

    The matrix A has a row for each query, title and span of a title: the counts
    of the words times sqrt(IDF), scaled to length 1. The rows of T are the
    teacher's vectors of these texts, scaled to length 1. W^2 is the diagonal
    matrix of the weights of the texts.

        X = argmin |W (A X - T)|^2 + STRENGTH |X - X_0|^2

    A row of X_0 is the teacher's vector of the word if the word is a text by
    itself, or else 0. The vector of a word is its row of X times sqrt(IDF).

    The matrix B has a row for each word: the counts of its trigrams.

        U = argmin |B U - X|^2 + TRIGRAM_STRENGTH |U|^2

    The vector of a trigram is its row of U times the largest sqrt(IDF).

    Fitting takes memory for the vectors of words and trigrams, and 12 bytes for
    each word of each text.
    """
    files = TeacherFolder(folder)
    # The texts are queries, then titles, then spans of titles, then words.
    settings, texts = files.read_settings(), files.read_texts()
    queries = settings["queries"]
    spans_end = len(texts) - settings.get("words", 0)
    titles_end = spans_end - settings.get("spans", 0)
    keys, text_bounds, trigrams, word_bounds = _hash_words(texts, hashing)
    words, word_index = np.unique(keys, return_inverse=True)
    counts = _count_matrix(word_index, text_bounds, len(words))
    counts.sum_duplicates()
    # For a text of one word, the index of this word; for other texts, -1.
    is_single = np.diff(text_bounds) == 1
    single = np.where(is_single, counts.indices[counts.indptr[:-1]], -1)
    counts = counts[:spans_end]
    titles = counts[queries:titles_end] if titles_end > queries else counts
    frequency = np.bincount(titles.indices, minlength=len(words))
    word_weights = np.sqrt(idf(frequency, titles.shape[0])).astype(np.float32)
    # `matrix` is A, and `text_weights` is the diagonal of W^2.
    matrix = _unit_rows(counts @ sparse.diags(word_weights)).tocsr()
    text_weights = np.ones(spans_end, np.float32)
    text_weights[:queries] = QUERY_WEIGHT
    projected, start = _targets(files, matrix, text_weights, single)
    weighted = sparse.diags(np.sqrt(text_weights)) @ matrix
    vectors = ridge(weighted, projected, STRENGTH, start)
    ids, id_index = np.unique(trigrams, return_inverse=True)
    trigram_counts = _count_matrix(id_index, word_bounds, len(ids))
    trigram_vectors = ridge(
        trigram_counts, trigram_counts.T @ vectors, TRIGRAM_STRENGTH
    )
    return FittedWords(
        words,
        vectors * word_weights[:, np.newaxis],
        ids.astype(np.int64),
        # Trigrams represent unknown words, which get the largest weight.
        trigram_vectors * word_weights.max(),
    )


def _count_matrix(
    columns: np.ndarray, bounds: np.ndarray, width: int
) -> sparse.csr_matrix:
    """Makes a matrix whose row i counts `columns[bounds[i]:bounds[i + 1]]`."""
    ones = np.ones(len(columns), np.float32)
    return sparse.csr_matrix((ones, columns, bounds), (len(bounds) - 1, width))


def with_fitted_words(
    recipe: Recipe, teacher: str | os.PathLike[str], seed: int
) -> Any:
    """Builds two towers with word vectors that are fitted to a teacher."""
    hashing = build_towers(recipe, seed).query_encoder.trigrams
    words = fit_words(teacher, hashing)
    model: Any = build_towers(recipe, seed, **words.config)
    for tower in dict.fromkeys(model.towers):
        words.write_to(tower.word_rows)
    return model


def fit_word_sum(
    config: TrainingConfig, run: RunFolder, verbose: Any, saved: bool
) -> TwoTower:
    """Fits two towers of the preset `word_sum` to `config.teacher`."""
    recipe, teacher = config.recipe, config.teacher
    model: TwoTower = with_fitted_words(recipe, teacher, config.seed)
    layer: Any = model.query_encoder.word_rows
    if verbose:
        print(
            f"vectors of {layer.words:,} words and {layer.trigrams:,} trigrams"
        )
    if saved:
        settings = {**config.to_dict(), "data": os.path.abspath(teacher)}
        run.create({"version": __version__, **settings}, model)
        run.save(model, run.model)
        run.add_metrics("train", {"words": layer.words})
        record_training(run.path)
    return model


def check_fitted(encoder: Any, teacher: TeacherVectors) -> None:
    """Checks that `encoder` is fitted to vectors of the teacher's width."""
    width = teacher.vectors.shape[1]
    if not getattr(encoder, "fitted", False) or encoder.dimension != width:
        raise InputError(
            f"{teacher.folder}: found vectors of {width} numbers that the"
            " encoder was not fitted to: expected a run of word_sum that was"
            " fitted to this teacher"
        )


def ridge(
    matrix: sparse.csr_matrix,
    projected: np.ndarray,
    strength: float,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Minimises |M X - T|^2 + strength |X - start|^2 by conjugate gradients.

    `matrix` is M `[n, m]`, and `projected` is M' T `[m, d]`. `start` is 0 by
    default. Returns X after `STEPS` steps, float32 `[m, d]`.
    """
    result = np.zeros_like(projected) if start is None else start.copy()
    transposed = matrix.T.tocsr()

    def multiply(x: np.ndarray) -> np.ndarray:
        """Returns (M' M + strength I) x."""
        product: np.ndarray = transposed @ (matrix @ x)
        return product + strength * x

    for first in range(0, projected.shape[1], _COLUMNS):
        columns = slice(first, first + _COLUMNS)
        x = result[:, columns]
        residual = projected[:, columns] + strength * x - multiply(x)
        direction = residual.copy()
        square = np.sum(residual**2, axis=0)
        for _ in range(STEPS):
            product = multiply(direction)
            step = square / np.maximum(
                np.sum(direction * product, axis=0), _TINY
            )
            x += step * direction
            residual -= step * product
            square, last_square = np.sum(residual**2, axis=0), square
            direction *= square / np.maximum(last_square, _TINY)
            direction += residual
    return result


def _hash_words(
    texts: Sequence[str], hashing: LetterTrigrams
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hashes the words of texts, and the trigrams of the distinct words.

    Returns the arrays `keys` (int64), `text_bounds`, `ids` and `word_bounds`.
    `keys[text_bounds[i]:text_bounds[i + 1]]` has the keys of the words of text
    i. `ids[word_bounds[j]:word_bounds[j + 1]]` has the trigram ids of the
    distinct word with the j-th smallest key, j >= 0.
    """
    keys, lengths = [], []
    ids_of: dict[int, np.ndarray] = {}
    for start in range(0, len(texts), BLOCK):
        batch = hashing.distinct(texts[start : start + BLOCK])
        distinct_keys = word_keys(batch).numpy()
        ids = batch.trigrams.numpy()[batch.trigram_index.numpy()]
        ends = np.cumsum(np.bincount(batch.word_index.numpy()))
        for key, word_ids in zip(
            distinct_keys.tolist(), np.split(ids, ends), strict=False
        ):
            if key not in ids_of:
                ids_of[key] = word_ids.copy()
        text_index = batch.text_index.numpy()
        length = batch.lengths.numpy()[text_index]
        words = distinct_keys[batch.words.numpy()][text_index]
        keys.append(words[np.arange(words.shape[1]) < length[:, np.newaxis]])
        lengths.append(length)
    text_bounds = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    sorted_ids = [ids_of[key] for key in sorted(ids_of)]
    word_bounds = np.concatenate([[0], np.cumsum([*map(len, sorted_ids)])])
    return (
        np.concatenate(keys),
        text_bounds,
        np.concatenate(sorted_ids),
        word_bounds,
    )


def _unit_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sparse.diags(1 / np.maximum(length, _TINY)) @ matrix


def _targets(
    files: TeacherFolder,
    matrix: sparse.csr_matrix,
    text_weights: np.ndarray,
    single: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Computes A' W^2 T and X_0 of `fit_words`, both `[words, d]`."""
    for number, first in enumerate(range(0, len(single), BLOCK)):
        words = single[first : first + BLOCK]
        vectors = unit_vectors(files.read_block(number, len(words)), "text")
        if not number:
            shape = matrix.shape[1], vectors.shape[1]
            projected, start = np.zeros((2, *shape), np.float32)
        start[words[words >= 0]] = vectors[words >= 0]
        rows = matrix[first : first + BLOCK]
        weights = text_weights[first : first + BLOCK, np.newaxis]
        projected += rows.T @ (weights * vectors[: rows.shape[0]])
    return projected, start

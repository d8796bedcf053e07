"""`fit_words`: word vectors whose sums are a teacher's vectors of texts."""

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

QUERY_WEIGHT = 3.0
"""Weight of a query among the texts; that of a title is 1."""

STRENGTH = 0.1
"""Weight of the distance of a word's vector from the teacher's of the word."""

TRIGRAM_STRENGTH = 1.0
"""Weight of the squares of the trigrams' vectors."""

STEPS = 30
"""Steps of conjugate gradients."""

_COLUMNS = 64  # that are solved at once, which bounds the memory


class FittedWords(NamedTuple):
    """Vectors of words and of trigrams, which `WordRows` looks up."""

    words: np.ndarray  # numbers of the words (`word_keys`), int64 `[n]`
    word_rows: np.ndarray  # float32 `[n, d]`
    trigrams: np.ndarray  # ids of the trigrams, int64 `[m]`
    trigram_rows: np.ndarray  # float32 `[m, d]`

    @property
    def config(self) -> dict[str, int]:
        """The arguments of a `WordSumEncoder` with these vectors."""
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
    """Fits word vectors to the vectors of a folder of `teach`, in closed form.

    With A the matrix of texts and words, whose numbers are the words' counts
    times sqrt(IDF), rows of length 1, and T the teacher's vectors:

        X = argmin |W (A X - T)|^2 + STRENGTH |X - X_0|^2

    X_0 has the teacher's vector of each word alone, as far as the folder has
    it, and W^2 the weights of the texts: those of queries count more, as there
    are few. The vector of a word is its row of X times sqrt(IDF). The vectors
    U of trigrams are fitted to them by the words' trigrams B:

        U = argmin |B U - X|^2 + TRIGRAM_STRENGTH |U|^2

    Memory grows with the number of words, not with that of texts, of which a
    block at a time is read (and their words, 12 bytes each).

    Args:
        folder: The folder, whose texts and vectors are complete.
        hashing: What separates and hashes words, as the encoder's.

    Raises:
        InputError: The folder is none of `teach`, or a file is damaged.
    """
    files = TeacherFolder(folder)
    settings, texts = files.read_settings(), files.read_texts()
    queries = settings["queries"]
    end = len(texts) - settings.get("words", 0)
    keys, rows, trigrams, bounds = _words_of(texts, hashing)
    lengths = np.diff(rows)
    known, word = np.unique(keys, return_inverse=True)
    counts = sparse.csr_matrix(
        (np.ones(len(word), np.float32), word, rows), (len(texts), len(known))
    )
    counts.sum_duplicates()
    single = np.where(lengths == 1, counts.indices[counts.indptr[:-1]], -1)
    counts = counts[:end]
    whole = counts[: end - settings.get("spans", 0)]
    titles = whole[queries:] if whole.shape[0] > queries else counts
    frequency = np.bincount(titles.indices, minlength=len(known))
    weight = np.sqrt(idf(frequency, titles.shape[0])).astype(np.float32)
    matrix = _unit_rows(counts @ sparse.diags(weight)).tocsr()
    importance = np.ones(end, np.float32)
    importance[:queries] = QUERY_WEIGHT
    projected, start = _targets(files, matrix, importance, single)
    weighted = sparse.diags(np.sqrt(importance)) @ matrix
    vectors = ridge(weighted, projected, STRENGTH, start)
    # A word that is in no title, such as a misspelled one, has this weight.
    unknown = weight.max()
    ids, place = np.unique(trigrams, return_inverse=True)
    of_words = sparse.csr_matrix(
        (np.ones(len(place), np.float32), place, bounds),
        (len(known), len(ids)),
    )
    rows_of_ids = ridge(of_words, of_words.T @ vectors, TRIGRAM_STRENGTH)
    return FittedWords(
        known,
        vectors * weight[:, np.newaxis],
        ids.astype(np.int64),
        rows_of_ids * unknown,
    )


def with_fitted_words(
    recipe: Recipe, teacher: str | os.PathLike[str], seed: int
) -> Any:
    """Builds towers whose encoders have vectors of words fitted to a teacher.

    Args:
        recipe: A recipe that `has_word_sum`.
        teacher: The folder of `teach`.
        seed: Seed of all other weights.

    Raises:
        InputError: The folder is damaged.
    """
    hashing = build_towers(recipe, seed).query_encoder.trigrams
    fitted = fit_words(teacher, hashing)
    model: Any = build_towers(recipe, seed, **fitted.config)
    for tower in dict.fromkeys(model.towers):
        fitted.write_to(tower.word_rows)
    return model


def fit_word_sum(
    config: TrainingConfig, run: RunFolder, verbose: Any, saved: bool
) -> TwoTower:
    """Trains two towers of the preset `word_sum`, without epochs.

    Their encoders add up vectors of words, which are computed by least squares
    so that the sums approximate the text vectors that `lstm-dssm-teach` wrote
    to `config.teacher`. A damaged folder raises `InputError`.
    """
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
    """Checks that an encoder's vectors can be compared with a teacher's.

    Raises:
        InputError: It was not fitted to vectors of this width.
    """
    width = teacher.vectors.shape[1]
    if not getattr(encoder, "fitted", False) or encoder.dimension != width:
        raise InputError(
            f"{teacher.folder}: found vectors of {width} numbers that the"
            " encoder was not fitted to: expected the run of word_sum with this"
            " teacher"
        )


def ridge(
    matrix: sparse.csr_matrix,
    projected: np.ndarray,
    strength: float,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Solves a ridge regression by conjugate gradients.

    Args:
        matrix: M, `[n, m]`.
        projected: M' T of the targets T, `[m, d]`.
        strength: Weight of the squared distance from `start`.
        start: Solution without data, `[m, d]`; by default zero.

    Returns:
        The X that minimises `|M X - T|^2 + strength |X - start|^2`, as near as
        `STEPS` steps come to it, float32 `[m, d]`.
    """
    result = np.zeros_like(projected) if start is None else start.copy()
    transposed = matrix.T.tocsr()

    def times(x: np.ndarray) -> np.ndarray:
        product: np.ndarray = transposed @ (matrix @ x)
        return product + strength * x

    for column in range(0, projected.shape[1], _COLUMNS):
        part = slice(column, column + _COLUMNS)
        x = result[:, part]
        residual = projected[:, part] + strength * x - times(x)
        direction = residual.copy()
        square = np.sum(residual**2, axis=0)
        for _ in range(STEPS):
            change = times(direction)
            step = square / np.maximum(
                np.sum(direction * change, axis=0), _TINY
            )
            x += step * direction
            residual -= step * change
            square, before = np.sum(residual**2, axis=0), square
            direction *= square / np.maximum(before, _TINY)
            direction += residual
    return result


_TINY = np.float32(1e-30)


def _words_of(
    texts: Sequence[str], hashing: LetterTrigrams
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hashes the words of texts, and the trigrams of the distinct words.

    Returns:
        The number of each word of each text, int64; where those of each text
        begin, and the end; the trigrams of each distinct word, in ascending
        order of its number; and where those of each word begin, and the end.
    """
    keys, lengths = [], []
    trigrams: dict[int, np.ndarray] = {}
    for start in range(0, len(texts), BLOCK):
        batch = hashing.distinct(texts[start : start + BLOCK])
        of_word = word_keys(batch).numpy()
        ids = batch.trigrams.numpy()[batch.trigram_index.numpy()]
        ends = np.cumsum(np.bincount(batch.word_index.numpy()))
        for key, part in zip(
            of_word.tolist(), np.split(ids, ends), strict=False
        ):
            if key not in trigrams:
                trigrams[key] = part.copy()
        text = batch.text_index.numpy()
        length = batch.lengths.numpy()[text]
        words = of_word[batch.words.numpy()][text]
        keys.append(words[np.arange(words.shape[1]) < length[:, np.newaxis]])
        lengths.append(length)
    rows = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    parts = [trigrams[key] for key in sorted(trigrams)]
    bounds = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return np.concatenate(keys), rows, np.concatenate(parts), bounds


def _unit_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Scales the rows of a matrix to length 1."""
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sparse.diags(1 / np.maximum(length, _TINY)) @ matrix


def _targets(
    files: TeacherFolder,
    matrix: sparse.csr_matrix,
    importance: np.ndarray,
    single: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Computes A' W^2 T and X_0, both `[words, d]`, from blocks of T.

    `matrix` is A and `importance` the diagonal of W^2. `single` has the word of
    each text that has one only, and -1 for the others.
    """
    for number, begin in enumerate(range(0, len(single), BLOCK)):
        of_block = single[begin : begin + BLOCK]
        vectors = unit_vectors(files.read_block(number, len(of_block)), "text")
        if not number:
            shape = matrix.shape[1], vectors.shape[1]
            projected, start = np.zeros((2, *shape), np.float32)
        start[of_block[of_block >= 0]] = vectors[of_block >= 0]
        part = matrix[begin : begin + BLOCK]
        weights = importance[begin : begin + BLOCK, np.newaxis]
        projected += part.T @ (weights * vectors[: part.shape[0]])
    return projected, start

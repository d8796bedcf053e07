"""Test whether the words of one cell are more similar than chance."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import each_activations
from keras_lstm_dssm.analysis.chance_tests import (
    NO_COMPARISON,
    ChanceComparison,
    compare_with_draws,
)
from keras_lstm_dssm.analysis.keywords import active_cells, assigned
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError, import_optional

_LEAST_CONTEXTS = 3
_MOST_WORDS = 1500
_DRAWS = 499


class WordAssignments(NamedTuple):
    """The active cells of texts, and the words that are assigned to them.

    Attributes:
        active: int `[texts, slots]`, the active cells of each text, counted
            as in `topics`.
        text: int `[n]`, the text of each assignment.
        slot: int `[n]`, the column of `active` that has its cell.
        word: str `[n]`, its word.
        cells: The number of cells.
    """

    active: np.ndarray
    text: np.ndarray
    slot: np.ndarray
    word: np.ndarray
    cells: int


class WordVectors(NamedTuple):
    """Unit vectors `[words, d]`, and the row of each word."""

    rows: dict[str, int]
    vectors: np.ndarray


def assign_words(
    encoder: TextEncoder, texts: Sequence[str], cells: int, change: float
) -> WordAssignments:
    """Assign the words of texts to cells; see `topics` for the arguments."""
    active, assignments = [], []
    number_of_cells = 0
    for text, read in enumerate(each_activations(encoder, texts)):
        number_of_cells = len(read.recurrent_vector)
        active_of_text: list[int] = []
        for network in read.directions:
            words = assigned(network, cells, change)
            for cell, _ in active_cells(network, cells):
                slot = len(active_of_text)
                for position in np.flatnonzero(words[:, cell]):
                    assignments.append((text, slot, read.words[position]))
                active_of_text.append(cell + network.offset)
        active.append(active_of_text)
    text_of, slots, words_of = (
        zip(*assignments, strict=True) if assignments else ((), (), ())
    )
    return WordAssignments(
        np.array(active),
        np.array(text_of, int),
        np.array(slots, int),
        np.array(words_of, object),
        number_of_cells,
    )


def context_vectors(contexts: Sequence[Sequence[str]]) -> WordVectors:
    """Compute word vectors from the texts that words occur in (LSA).

    They are the 100 largest singular vectors of the TF-IDF matrix of words
    and contexts, of which words in fewer than three contexts are left out.
    Neither the model nor the spelling of a word has an influence on them.

    Args:
        contexts: The words of each text.

    Raises:
        InputError: scikit-learn is not installed, or fewer than two words
            occur often enough.

    Source: Deerwester et al. 1990, "Indexing by Latent Semantic Analysis".
    """
    text = import_optional("sklearn.feature_extraction.text", "analysis")
    decomposition = import_optional("sklearn.decomposition", "analysis")
    counts = Counter(word for words in contexts for word in set(words))
    if sum(count >= _LEAST_CONTEXTS for count in counts.values()) < 2:
        raise InputError(
            f"{len(contexts)} contexts: found no two words that occur in "
            f"{_LEAST_CONTEXTS} of them or more: name data with more clicks"
        )
    vectorizer = text.TfidfVectorizer(analyzer=tuple, min_df=_LEAST_CONTEXTS)
    table = vectorizer.fit_transform(contexts)
    size = min(100, min(table.shape) - 1)
    svd = decomposition.TruncatedSVD(size, random_state=0).fit(table)
    vectors = svd.components_.T * svd.singular_values_
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.maximum(lengths, 1e-12)
    return WordVectors(vectorizer.vocabulary_, vectors.astype(np.float32))


def coherence(
    encoder: TextEncoder,
    assignments: WordAssignments,
    word_vectors: WordVectors,
    same_trigrams: bool = True,
) -> ChanceComparison:
    """Compute how similar the words of one cell are.

    It is the mean cosine of the vectors of all pairs of different words that
    are assigned to the same cell. A random choice gives each text the active
    cells of another text: which words occur together in a text stays the
    same, and which cells they are assigned to does not.

    Args:
        encoder: The encoder of the assignments, for the words' trigrams.
        assignments: From `assign_words`.
        word_vectors: From `context_vectors`. Words without a vector are left
            out.
        same_trigrams: Whether pairs that share a letter trigram count. Any
            encoder of trigrams treats such words alike, even untrained.

    Returns:
        Mean cosines; `number` is that of the different words, which are the
        1500 most frequent ones at most.
    """
    names, name_of, counts = np.unique(
        assignments.word.astype(str), return_inverse=True, return_counts=True
    )
    known = np.array([name in word_vectors.rows for name in names], bool)
    if not known.any():
        return NO_COMPARISON
    frequent = np.argsort(-np.where(known, counts, 0), kind="stable")[
        :_MOST_WORDS
    ]
    frequent = frequent[known[frequent]]
    number = np.full(len(names), -1)
    number[frequent] = np.arange(len(frequent))
    rows = number[name_of] >= 0
    text, slot = assignments.text[rows], assignments.slot[rows]
    word = number[name_of][rows]
    pairs = 1 - np.eye(len(frequent), dtype=np.float32)
    if not same_trigrams:
        pairs[_share_trigram(encoder, names[frequent])] = 0
    vectors = word_vectors.vectors[
        [word_vectors.rows[name] for name in names[frequent]]
    ]
    similarity = pairs * (vectors @ vectors.T)
    sparse = import_optional("scipy.sparse", "analysis")

    def mean(active: np.ndarray) -> float:
        table = sparse.csr_array(
            (np.ones(len(word), np.float32), (active[text, slot], word)),
            shape=(assignments.cells, len(frequent)),
        )
        total = table.multiply(table @ pairs).sum()
        return float(table.multiply(table @ similarity).sum() / max(total, 1))

    random = np.random.default_rng(0)
    active = assignments.active
    shuffled = [mean(random.permutation(active)) for _ in range(_DRAWS)]
    return compare_with_draws(np.array(shuffled), mean(active), len(frequent))


def _share_trigram(encoder: TextEncoder, words: np.ndarray) -> np.ndarray:
    """Return which words share a letter trigram, bool `[words, words]`."""
    sparse = import_optional("scipy.sparse", "analysis")
    ids = encoder.trigrams(list(words)).to_list()
    table = sparse.csr_array(
        (
            np.ones(sum(len(t) for text in ids for t in text), np.float32),
            (
                [i for i, text in enumerate(ids) for t in text for _ in t],
                [j for text in ids for t in text for j in t],
            ),
        ),
        shape=(len(words), encoder.trigrams.size),
    )
    return (table @ table.T).toarray() > 0

"""Whether the words of a cell are more alike than chance."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import each_activations
from keras_lstm_dssm.analysis.keywords import active_cells, assigned
from keras_lstm_dssm.analysis.word_statistics import NOTHING, Finding, against
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError, import_optional


class Assignments(NamedTuple):
    """Which active cell of which text took up which word, as in `topics`.

    Attributes:
        active: int `[texts, slots]`, the active cells of each text, as
            places in the sentence vector.
        text: int `[n]`, the text of each assignment.
        slot: int `[n]`, the place of its cell in that row of `active`.
        word: str `[n]`.
        cells: Width of the sentence vector.
    """

    active: np.ndarray
    text: np.ndarray
    slot: np.ndarray
    word: np.ndarray
    cells: int


class Likeness(NamedTuple):
    """How alike words are: unit vectors `[words, d]`, and who they are."""

    words: dict[str, int]
    vectors: np.ndarray


def assign(
    encoder: TextEncoder, texts: Sequence[str], cells: int, change: float
) -> Assignments:
    """Assigns the words of texts to cells; arguments as for `topics`."""
    active, found = [], []
    for text, read in enumerate(each_activations(encoder, texts)):
        row: list[int] = []
        for one in read.directions:
            taken = assigned(one, cells, change)
            for cell, _ in active_cells(one, cells):
                for place in np.flatnonzero(taken[:, cell]):
                    found.append((text, len(row), read.words[place]))
                row.append(cell + one.offset)
        active.append(row)
    texts_of, slots, words = zip(*found, strict=True) if found else ((),) * 3
    return Assignments(
        np.array(active),
        np.array(texts_of, int),
        np.array(slots, int),
        np.array(words, object),
        encoder.dimension,
    )


def likeness(
    contexts: Sequence[Sequence[str]], least: int = 3, seed: int = 0
) -> Likeness:
    """Makes word vectors of the company that words keep (LSA).

    TF-IDF of words by contexts, its 100 largest singular values. The model
    under test has no part in it, nor has spelling.

    Args:
        contexts: The words of each text.
        least: Contexts that a word must occur in.
        seed: Of the decomposition.

    Raises:
        InputError: scikit-learn is not installed, or fewer than two words
            occur often enough.

    Source: Deerwester et al. 1990, "Indexing by Latent Semantic Analysis".
    """
    text = import_optional("sklearn.feature_extraction.text", "analysis")
    decomposition = import_optional("sklearn.decomposition", "analysis")
    found = Counter(word for words in contexts for word in set(words))
    if sum(count >= least for count in found.values()) < 2:
        raise InputError(
            f"{len(contexts)} contexts: found no two words that occur in "
            f"{least} of them; give more clicks"
        )
    counter = text.TfidfVectorizer(analyzer=tuple, min_df=least)
    table = counter.fit_transform(contexts)
    size = min(100, min(table.shape) - 1)
    svd = decomposition.TruncatedSVD(size, random_state=seed).fit(table)
    vectors = svd.components_.T * svd.singular_values_
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.maximum(lengths, 1e-12)
    return Likeness(counter.vocabulary_, vectors.astype(np.float32))


def coherence(
    encoder: TextEncoder,
    given: Assignments,
    alike: Likeness,
    spelling: bool = True,
    most: int = 1500,
    draws: int = 499,
    seed: int = 0,
) -> Finding:
    """Measures how alike the words of one cell are.

    The mean cosine of all pairs of different words that one cell took up.
    Chance hands each text's set of active cells to another text: which words
    of a text go together stays, which cell takes them does not.

    Args:
        encoder: Of the assignments.
        given: From `assign`.
        alike: From `likeness`.
        spelling: False leaves out pairs that share a letter trigram, which
            an encoder of trigrams puts together without having learnt
            anything.
        most: Words looked at, the most frequent ones.
        draws: Shuffles.
        seed: Of these.

    Returns:
        Mean cosines; counted are the different words.
    """
    names, places, counts = np.unique(
        given.word.astype(str), return_inverse=True, return_counts=True
    )
    known = np.array([name in alike.words for name in names], bool)
    if not known.any():
        return NOTHING
    kept = np.argsort(-np.where(known, counts, 0), kind="stable")[:most]
    kept = kept[known[kept]]
    number = np.full(len(names), -1)
    number[kept] = np.arange(len(kept))
    rows = number[places] >= 0
    text, slot, word = given.text[rows], given.slot[rows], number[places][rows]
    pairs = 1 - np.eye(len(kept), dtype=np.float32)
    if not spelling:
        pairs[_share_trigram(encoder, names[kept])] = 0
    own = alike.vectors[[alike.words[name] for name in names[kept]]]
    near = pairs * (own @ own.T)
    sparse = import_optional("scipy.sparse", "analysis")

    def mean(active: np.ndarray) -> float:
        table = sparse.csr_array(
            (np.ones(len(word), np.float32), (active[text, slot], word)),
            shape=(given.cells, len(kept)),
        )
        total = table.multiply(table @ pairs).sum()
        return float(table.multiply(table @ near).sum() / max(total, 1))

    random = np.random.default_rng(seed)
    shuffled = [mean(random.permutation(given.active)) for _ in range(draws)]
    return against(np.array(shuffled), mean(given.active), len(kept))


def _share_trigram(encoder: TextEncoder, words: np.ndarray) -> np.ndarray:
    """Tells which words share one, bool `[words, words]`."""
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

"""Patches of DeepMatch: words of both sides that belong to one topic."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.layers import WordVectors

SMALL_LEVELS = (20, 50, 100)
LARGE_LEVELS = (50, 100, 200)
"""Numbers of topics for up to and for above 20,000 training pairs."""

_BATCH = 1024  # texts whose words are looked up at a time


class Patches(NamedTuple):
    """Holds the words of each patch.

    Attributes:
        query: int32 `[patches, largest]`, vocabulary ids of the query words
            of each patch; 0 fills a row.
        document: int32 `[patches, largest]`, the same of its document words.
    """

    query: np.ndarray
    document: np.ndarray


def topic_levels(pairs: int) -> tuple[int, ...]:
    """Chooses the numbers of topics by the number of training pairs.

    Example:
    >>> topic_levels(1000)
    (20, 50, 100)
    """
    return LARGE_LEVELS if pairs > 20_000 else SMALL_LEVELS


def text_ids(words: WordVectors, texts: Sequence[str]) -> list[np.ndarray]:
    """List the vocabulary ids of the words of each text.

    Args:
        words: Word vectors of a vocabulary.
        texts: n strings.

    Returns:
        n int32 arrays `[length]`; unknown words are 0.
    """
    ids: list[np.ndarray] = []
    for start in range(0, len(texts), _BATCH):
        batch = words.distinct(tf.constant(texts[start : start + _BATCH]))
        sequences = words(batch)
        lengths = sequences.lengths.numpy()
        rows = sequences.words.numpy()
        ids += [rows[i, : lengths[i]] for i in batch.text_index.numpy()]
    return ids


def find_patches(
    queries: Sequence[np.ndarray],
    documents: Sequence[np.ndarray],
    topics: int,
    largest: int = 200,
    mass: float = 0.9,
    passes: int = 10,
    seed: int = 0,
) -> Patches:
    """Find the patches of one level by latent Dirichlet allocation.

    A query and its document make one text, in which a word of the query and
    the same word of the document are different words. Each topic is a patch:
    of either side, its most probable words. The topics come from gensim's
    `LdaModel`, that is from variational inference; the paper sampled them.

    Args:
        queries: Vocabulary ids of the words of each query. Id 0, the unknown
            word, is left out.
        documents: The same of the document of each query.
        topics: Number of topics.
        largest: Largest number of words of a patch on one side.
        mass: Probability of the words of a patch on one side, as a share of
            that of all words of the side.
        passes: Passes of `LdaModel` over the pairs.
        seed: Seed of its random numbers.

    Returns:
        `topics` patches.

    Raises:
        InputError: gensim is not installed, or a side has no known word.

    Example:
    >>> pair = [np.array([1, 2])], [np.array([2])]
    >>> find_patches(*pair, topics=1, largest=2, mass=1.0).document
    array([[2, 0]], dtype=int32)
    """
    models = import_optional("gensim.models", "baselines")
    # The known words of the queries come first, then those of the documents.
    query_ids = _known(queries, "query")
    document_ids = _known(documents, "document")
    texts = []
    for query, document in zip(queries, documents, strict=True):
        both = np.concatenate(
            [
                np.searchsorted(query_ids, query[query > 0]),
                np.searchsorted(document_ids, document[document > 0])
                + len(query_ids),
            ]
        )
        numbers, counts = np.unique(both, return_counts=True)
        texts.append(list(zip(numbers.tolist(), counts.tolist(), strict=True)))
    size = len(query_ids) + len(document_ids)
    model = models.LdaModel(
        [text for text in texts if text],
        num_topics=topics,
        id2word={number: str(number) for number in range(size)},
        passes=passes,
        eval_every=None,
        random_state=seed,
    )
    probabilities: Any = model.get_topics()
    split = len(query_ids)
    return Patches(
        probable_words(probabilities[:, :split], query_ids, largest, mass),
        probable_words(probabilities[:, split:], document_ids, largest, mass),
    )


def _known(texts: Sequence[np.ndarray], side: str) -> np.ndarray:
    ids = np.unique(np.concatenate([*texts, np.zeros(1, np.int32)]))[1:]
    if not len(ids):
        raise InputError(
            f"no {side} has a word of the vocabulary; make the vocabulary"
            " from the training texts"
        )
    return ids


def probable_words(
    probabilities: np.ndarray, ids: np.ndarray, largest: int, mass: float
) -> np.ndarray:
    """List the most probable words of each topic.

    Args:
        probabilities: Positive `[topics, words]`, in any scale.
        ids: Vocabulary ids `[words]`, above 0.
        largest: Largest number of words of a topic.
        mass: Share of the probability at which no more word is added.

    Returns:
        int32 `[topics, largest]`, the most probable word first; 0 fills a
        row.

    Example:
    >>> shares, ids = np.array([[1.0, 6.0, 3.0]]), np.array([7, 8, 9])
    >>> probable_words(shares, ids, 3, 0.9)
    array([[8, 9, 0]], dtype=int32)
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    shares = np.take_along_axis(probabilities, order, axis=1).astype("float64")
    shares /= shares.sum(axis=1, keepdims=True)
    before = np.cumsum(shares, axis=1) - shares
    # A little less than the mass, so that rounding adds no word.
    words = np.where(before < mass - 1e-9, ids[order], 0)[:, :largest]
    missing = max(0, largest - words.shape[1])
    return np.pad(words, [(0, 0), (0, missing)]).astype("int32")


def overlapping(coarse: Patches, fine: Patches, overlap: float) -> np.ndarray:
    """Tell which patches of two levels have words in common.

    Args:
        coarse: Patches of one level.
        fine: Patches of the next level.
        overlap: Least number of words in common on each side, as a share of
            the words of the patch that has fewer there. One word at least.

    Returns:
        bool `[coarse patches, fine patches]`.
    """
    connected = np.ones((len(coarse.query), len(fine.query)), bool)
    for one, other in zip(coarse, fine, strict=True):
        size = 1 + max(one.max(), other.max())
        members, others = _members(one, size), _members(other, size)
        fewer = np.minimum(members.sum(1)[:, np.newaxis], others.sum(1))
        common = members @ others.T
        connected &= (common >= overlap * fewer) & (common > 0)
    return connected


def _members(ids: np.ndarray, size: int) -> np.ndarray:
    """Return which word is in which patch, float32 `[patches, size]`."""
    members = np.zeros((len(ids), size), np.float32)
    np.put_along_axis(members, ids, 1, axis=1)
    members[:, 0] = 0  # not a word
    return members

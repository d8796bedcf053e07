"""PLSA's EM with Dirichlet priors, over the words that titles have.

The model is P(w|d) = sum over z of P(w|z) P(z|d). In all of this file
`topics` is P(w|z), `[words, T]`, whose columns sum to one, `mixtures` is
P(z|d), `[titles, T]`, whose rows do, and `counts` is a CSR array
`[titles, words]`. All numbers are float32.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

# Words of titles held at once: their rows of `topics` stay in the cache.
_BLOCK = 512

# Far below any probability that matters; without a prior, probabilities that
# EM drives towards 0 would become subnormal numbers, which are slow.
_TINY = np.float32(1e-12)


def em_step(
    counts: Any,
    topics: np.ndarray,
    mixtures: np.ndarray,
    word_prior: float,
    topic_prior: float,
) -> np.ndarray:
    """Takes one EM step for the mixtures, then one for the topics.

    Each part maximises the expected log posterior under
    P(z|w, d) = P(w|z) P(z|d) / P(w|d), taken afresh, so that no step lowers
    the posterior (ECM, Meng and Rubin 1993):

        P(z|d) ~ topic_prior + sum over w of n(d, w) P(z|w, d)
        P(w|z) ~ word_prior + sum over d of n(d, w) P(z|w, d)

    Without priors these are the multiplicative updates of KL-divergence
    NMF, normalised (Gaussier and Goutte 2005).

    Args:
        counts: n(d, w).
        topics: P(w|z), as it was.
        mixtures: P(z|d), changed in place.
        word_prior: Pseudo-count of each word in each topic: the parameter
            of a symmetric Dirichlet prior, less one.
        topic_prior: The same of each topic in each title.

    Returns:
        The new P(w|z).
    """
    ratios = counts.copy()
    for titles, cells in _blocks(counts):
        numbers = counts.data[cells]
        rows = topics[counts.indices[cells]]
        mixed = _infer(rows, numbers, mixtures[titles], topic_prior, 1)
        mixtures[titles] = mixed
        ratios.data[cells] = numbers / _probabilities(rows, mixed)
    new = topics * (ratios.T @ mixtures) + np.float32(word_prior)
    np.maximum(new, _TINY, out=new)
    return new / new.sum(axis=0)


def fold_in(
    counts: Any, topics: np.ndarray, topic_prior: float, steps: int
) -> np.ndarray:
    """Finds P(z|d) of titles, with P(w|z) fixed, from the uniform mixture.

    Args:
        counts: n(d, w) of any titles.
        topics: P(w|z).
        topic_prior: As in training.
        steps: EM steps.

    Returns:
        P(z|d); uniform where a title has no word.
    """
    mixtures = uniform_mixtures(counts.shape[0], topics.shape[1])
    for titles, cells in _blocks(counts):
        mixtures[titles] = _infer(
            topics[counts.indices[cells]],
            counts.data[cells],
            mixtures[titles],
            topic_prior,
            steps,
        )
    return mixtures


def uniform_mixtures(titles: int, topics: int) -> np.ndarray:
    """Returns P(z|d) where nothing is known."""
    return np.full((titles, topics), 1 / topics, np.float32)


def _blocks(counts: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Walks over titles with equally many words, some at a time.

    Yields:
        titles: Integers `[B]`.
        cells: Integers `[B, L]`: where their words stand in `counts.data`.
    """
    sizes = np.diff(counts.indptr)
    for size in np.unique(sizes[sizes > 0]):
        titles = np.flatnonzero(sizes == size)
        for block in np.array_split(titles, -(-len(titles) * size // _BLOCK)):
            yield block, counts.indptr[block, None] + np.arange(size)


def _infer(
    rows: np.ndarray,
    numbers: np.ndarray,
    mixtures: np.ndarray,
    prior: float,
    steps: int,
) -> np.ndarray:
    """EM for P(z|d) `[B, T]`, given P(w|z) `[B, L, T]` and n(d, w) `[B, L]`."""
    for _ in range(steps):
        ratios = numbers / _probabilities(rows, mixtures)
        mixtures = mixtures * (ratios[:, None] @ rows)[:, 0] + np.float32(prior)
        mixtures = np.maximum(mixtures, _TINY)
        mixtures /= mixtures.sum(axis=1, keepdims=True)
    return mixtures


def _probabilities(rows: np.ndarray, mixtures: np.ndarray) -> np.ndarray:
    """P(w|d) `[B, L]`."""
    return (rows @ mixtures[:, :, None])[:, :, 0]

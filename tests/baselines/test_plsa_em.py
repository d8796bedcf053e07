import warnings

import numpy as np
import pytest
from scipy import sparse

from keras_lstm_dssm.baselines import plsa
from keras_lstm_dssm.baselines.plsa import em_step, fold_in

TITLES, WORDS, TOPICS = 30, 12, 4


@pytest.fixture
def start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts with an empty title, P(w|z) and P(z|d)."""
    random = np.random.default_rng(0)
    counts = random.poisson(0.6, (TITLES, WORDS)).astype(np.float32)
    counts[3] = 0
    topics = random.random((WORDS, TOPICS)).astype(np.float32)
    mixtures = random.random((TITLES, TOPICS)).astype(np.float32)
    return (
        counts,
        topics / topics.sum(axis=0),
        mixtures / mixtures.sum(axis=1, keepdims=True),
    )


def expected_counts(counts, topics, mixtures) -> np.ndarray:
    """n(d, w) P(z|w, d), `[titles, words, T]`, in float64."""
    joint = mixtures[:, None].astype(float) * topics[None]
    return counts[:, :, None] * joint / joint.sum(axis=2, keepdims=True)


def plain_em(counts, topics, mixtures, word_prior, topic_prior):
    """One step as Hofmann's (1999) equations have it, with pseudo-counts."""
    full = counts.sum(axis=1) > 0
    new = expected_counts(counts, topics, mixtures).sum(axis=1) + topic_prior
    mixtures = mixtures.astype(float)
    mixtures[full] = (new / new.sum(axis=1, keepdims=True, initial=1e-300))[
        full
    ]
    new = expected_counts(counts, topics, mixtures).sum(axis=0) + word_prior
    return new / new.sum(axis=0), mixtures


def posterior(counts, topics, mixtures, word_prior, topic_prior) -> float:
    likelihood = np.sum(counts * np.log(mixtures.astype(float) @ topics.T))
    full = counts.sum(axis=1) > 0
    return (
        likelihood
        + word_prior * np.log(topics.astype(float)).sum()
        + topic_prior * np.log(mixtures[full].astype(float)).sum()
    )


@pytest.mark.parametrize("priors", [(0.0, 0.0), (0.01, 0.02), (1.0, 0.5)])
def test_steps_are_those_of_plain_em(start, priors, monkeypatch) -> None:
    monkeypatch.setattr(plsa, "_EM_BLOCK", 7)  # several blocks of a size
    counts, topics, mixtures = start
    sparse_counts = sparse.csr_array(counts)
    plain_topics, plain_mixtures = topics, mixtures.copy()
    for _ in range(10):
        topics = em_step(sparse_counts, topics, mixtures, *priors)
        plain_topics, plain_mixtures = plain_em(
            counts, plain_topics, plain_mixtures, *priors
        )
    assert topics == pytest.approx(plain_topics, rel=2e-4, abs=1e-7)
    assert mixtures == pytest.approx(plain_mixtures, rel=2e-4, abs=1e-7)


@pytest.mark.parametrize("priors", [(0.0, 0.0), (0.05, 0.02)])
def test_no_step_lowers_the_posterior(start, priors) -> None:
    counts, topics, mixtures = start
    values = []
    for _ in range(30):
        topics = em_step(sparse.csr_array(counts), topics, mixtures, *priors)
        values.append(posterior(counts, topics, mixtures, *priors))
    assert np.all(np.diff(values) > -1e-3)
    assert values[-1] > values[0] + 5


def test_steps_are_those_of_kl_divergence_nmf(start) -> None:
    """Without priors: scikit-learn's multiplicative updates, normalised."""
    decomposition = pytest.importorskip("sklearn.decomposition")
    counts, topics, mixtures = start
    counts, mixtures = np.delete(counts, 3, 0), np.delete(mixtures, 3, 0)
    lengths = counts.sum(axis=1, keepdims=True)
    for _ in range(5):
        nmf = decomposition.NMF(
            TOPICS,
            init="custom",
            solver="mu",
            beta_loss="kullback-leibler",
            max_iter=1,
            tol=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one iteration does not converge
            left = nmf.fit_transform(
                counts,
                W=lengths * mixtures,
                H=np.ascontiguousarray(topics.T),
            )
        right = nmf.components_.T / nmf.components_.sum(axis=1)
        topics = em_step(sparse.csr_array(counts), topics, mixtures, 0.0, 0.0)
        assert topics == pytest.approx(right, rel=1e-4, abs=1e-7)
        assert lengths * mixtures == pytest.approx(left, rel=1e-4, abs=1e-6)


def test_fold_in_is_em_with_fixed_topics(start) -> None:
    counts, topics, _ = start
    expected = np.full((TITLES, TOPICS), 1 / TOPICS)
    for _ in range(20):
        _, expected = plain_em(counts, topics, expected, 0.0, 0.1)
    found = fold_in(sparse.csr_array(counts), topics, 0.1, 20)
    assert found == pytest.approx(expected, rel=1e-4)
    assert found[3].tolist() == [0.25] * 4  # no word: uniform

import math

import numpy as np
import pytest
from scipy import sparse

from keras_lstm_dssm.papers import plsa
from keras_lstm_dssm.papers.plsa import PLSASystem, em_step, fold_in

TITLES = [
    "red hat", "wool hat coat", "red coat", "winter coat hat", "wool coat",
    "garden hose", "hose reel", "garden reel", "hose reel water", "water hose",
] * 3  # fmt: skip
DOCUMENTS = {"a": "red hat", "b": "water reel", "c": "unheard of", "d": ""}


@pytest.fixture(scope="module")
def system() -> PLSASystem:
    return PLSASystem(topics=2, iterations=100).fit(TITLES)


def test_finds_topics_without_a_common_word(system):
    run = system.retrieve({"q": "winter", "r": "garden"}, DOCUMENTS, 4)
    assert list(run["q"])[0] == "a" and list(run["q"])[3] == "b"
    assert list(run["r"])[0] == "b" and list(run["r"])[3] == "a"


def test_scores(system):
    words = {
        w: i for i, w in enumerate(dict.fromkeys(" ".join(TITLES).split()))
    }
    corpus = " ".join(TITLES).split()
    assert system.topics_.shape == (len(words), 2)
    assert system.parameters == 2 * len(words)

    def score(query: str, title: str) -> float:
        known = [system.topics_[words[w]] for w in title.split() if w in words]
        mixture = np.full(2, 0.5)
        for _ in range(20 if known else 0):
            new = 0.01 + sum(p * mixture / (p @ mixture) for p in known)
            mixture = new / new.sum()
        return sum(
            math.log(
                0.9 * system.topics_[words[w]] @ mixture
                + 0.1 * corpus.count(w) / len(corpus)
            )
            for w in query.split()
            if w in words
        )

    query = "hat tie hat water"
    expected = {d: score(query, title) for d, title in DOCUMENTS.items()}
    run = system.rerank({"q": query}, {"q": list(DOCUMENTS)}, DOCUMENTS)
    assert run["q"] == pytest.approx(expected, rel=1e-4)
    assert system.retrieve({"q": query}, DOCUMENTS, 4) == run


def test_same_words_same_score(system):
    documents = {f"d{i}": ("hat coat", "coat hat")[i % 2] for i in range(40)}
    ranked = system.retrieve({"q": "red wool"}, documents, 40)["q"]
    steps = -np.diff(np.float32(list(ranked.values())))
    assert set(steps) == {
        np.spacing(np.float32(max(map(abs, ranked.values()))))
    }


def test_queries_without_known_words(system):
    run = system.retrieve({"q": "unheard", "r": ""}, DOCUMENTS, 4)
    assert [set(ranked) for ranked in run.values()] == [set("abcd")] * 2
    assert max(run["q"].values()) == 0


def test_many_queries_are_scored_alike(system):
    queries = {str(i): TITLES[i % 10] for i in range(150)}
    run = system.retrieve(queries, DOCUMENTS, 4)
    for query_id in ("0", "64", "149"):
        alone = {query_id: queries[query_id]}
        ranked = system.retrieve(alone, DOCUMENTS, 4)[query_id]
        assert ranked == pytest.approx(run[query_id], rel=1e-5)


def test_another_corpus_is_folded_in_anew(system):
    assert list(system.retrieve({"q": "winter"}, DOCUMENTS, 1)["q"]) == ["a"]
    documents = DOCUMENTS | {"a": DOCUMENTS["b"], "b": DOCUMENTS["a"]}
    assert list(system.retrieve({"q": "winter"}, documents, 1)["q"]) == ["b"]


def test_topics_depend_on_the_seed():
    fits = [PLSASystem(3, seed=s).fit(TITLES).topics_ for s in (1, 1, 2)]
    assert np.array_equal(fits[0], fits[1])
    assert not np.allclose(fits[0], fits[2])


ROWS, WORDS, TOPICS = 30, 12, 4


@pytest.fixture
def start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws counts of words with an empty title, P(w|z) and P(z|d)."""
    random = np.random.default_rng(0)
    counts = random.poisson(0.6, (ROWS, WORDS)).astype(np.float32)
    counts[3] = 0
    topics = random.random((WORDS, TOPICS)).astype(np.float32)
    mixtures = random.random((ROWS, TOPICS)).astype(np.float32)
    return (
        counts,
        topics / topics.sum(axis=0),
        mixtures / mixtures.sum(axis=1, keepdims=True),
    )


def expected_counts(counts, topics, mixtures) -> np.ndarray:
    """Returns n(d, w) P(z|w, d), `[titles, words, T]`, in float64."""
    joint = mixtures[:, None].astype(float) * topics[None]
    return counts[:, :, None] * joint / joint.sum(axis=2, keepdims=True)


def plain_em(counts, topics, mixtures, word_prior, topic_prior):
    """Takes one step of Hofmann's (1999) equations, with pseudo-counts."""
    full = counts.sum(axis=1) > 0
    new = expected_counts(counts, topics, mixtures).sum(axis=1) + topic_prior
    mixtures = mixtures.astype(float)
    mixtures[full] = (new / new.sum(axis=1, keepdims=True, initial=1e-300))[
        full
    ]
    new = expected_counts(counts, topics, mixtures).sum(axis=0) + word_prior
    return new / new.sum(axis=0), mixtures


@pytest.mark.parametrize("priors", [(0.0, 0.0), (0.01, 0.02), (1.0, 0.5)])
def test_steps_are_those_of_plain_em(start, priors, monkeypatch):
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


def test_fold_in_is_em_with_fixed_topics(start):
    counts, topics, _ = start
    expected = np.full((ROWS, TOPICS), 1 / TOPICS)
    for _ in range(20):
        _, expected = plain_em(counts, topics, expected, 0.0, 0.1)
    found = fold_in(sparse.csr_array(counts), topics, 0.1, 20)
    assert found == pytest.approx(expected, rel=1e-4)
    assert found[3].tolist() == [0.25] * 4  # no word: uniform

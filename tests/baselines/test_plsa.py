import math

import numpy as np
import pytest

from keras_lstm_dssm.baselines import PLSASystem
from keras_lstm_dssm.errors import InputError

TITLES = [
    "red hat", "wool hat coat", "red coat", "winter coat hat", "wool coat",
    "garden hose", "hose reel", "garden reel", "hose reel water", "water hose",
] * 3  # fmt: skip
DOCUMENTS = {"a": "red hat", "b": "water reel", "c": "unheard of", "d": ""}


@pytest.fixture(scope="module")
def system() -> PLSASystem:
    return PLSASystem(topics=2, iterations=100).fit(TITLES)


def test_finds_topics_without_a_common_word(system: PLSASystem) -> None:
    run = system.retrieve({"q": "winter", "r": "garden"}, DOCUMENTS, 4)
    assert list(run["q"])[0] == "a" and list(run["q"])[3] == "b"
    assert list(run["r"])[0] == "b" and list(run["r"])[3] == "a"


def test_scores(system: PLSASystem) -> None:
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


def test_same_words_same_score(system: PLSASystem) -> None:
    documents = {f"d{i}": ("hat coat", "coat hat")[i % 2] for i in range(40)}
    ranked = system.retrieve({"q": "red wool"}, documents, 40)["q"]
    steps = -np.diff(np.float32(list(ranked.values())))
    assert set(steps) == {
        np.spacing(np.float32(max(map(abs, ranked.values()))))
    }


def test_queries_without_known_words(system: PLSASystem) -> None:
    run = system.retrieve({"q": "unheard", "r": ""}, DOCUMENTS, 4)
    assert [set(ranked) for ranked in run.values()] == [set("abcd")] * 2
    assert max(run["q"].values()) == 0


def test_many_queries_are_scored_alike(system: PLSASystem) -> None:
    queries = {str(i): TITLES[i % 10] for i in range(150)}
    run = system.retrieve(queries, DOCUMENTS, 4)
    for query_id in ("0", "64", "149"):
        alone = {query_id: queries[query_id]}
        ranked = system.retrieve(alone, DOCUMENTS, 4)[query_id]
        assert ranked == pytest.approx(run[query_id], rel=1e-5)


def test_another_corpus_is_folded_in_anew(system: PLSASystem) -> None:
    documents = dict(DOCUMENTS)
    system.retrieve({"q": "winter"}, documents, 1)
    documents["a"], documents["b"] = documents["b"], documents["a"]
    assert list(system.retrieve({"q": "winter"}, documents, 1)["q"]) == ["b"]


def test_seed() -> None:
    fits = [PLSASystem(3, seed=s).fit(TITLES).topics_ for s in (1, 1, 2)]
    assert np.array_equal(fits[0], fits[1])
    assert not np.allclose(fits[0], fits[2])


@pytest.mark.parametrize(
    "settings",
    [{"topics": 0}, {"topic_prior": -0.1}, {"background": 1.5}],
)
def test_wrong_settings(settings) -> None:
    with pytest.raises(InputError, match="expected"):
        PLSASystem(**settings)


def test_wrong_use() -> None:
    with pytest.raises(InputError, match="found no word in 1 titles"):
        PLSASystem().fit([""])
    with pytest.raises(InputError, match="PLSASystem is not trained"):
        PLSASystem().retrieve({"q": "x"}, {"a": "x"}, 1)

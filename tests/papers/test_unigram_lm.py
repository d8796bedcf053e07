import math

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import alphanumeric
from keras_lstm_dssm.papers.baselines import UnigramLMSystem

DOCUMENTS = {
    "a": "hat red hat",
    "b": "a blue hat for the winter",
    "c": "garden hose",
    "d": "",
}


def likelihood(query: str, title: str, mu: float) -> float:
    """Zhai and Lafferty 2004, word by word."""
    titles = [alphanumeric(t) for t in DOCUMENTS.values()]
    corpus = [word for other in titles for word in other]
    words = alphanumeric(title)
    return sum(
        math.log(
            (words.count(w) + mu * corpus.count(w) / len(corpus))
            / (len(words) + mu)
        )
        for w in alphanumeric(query)
        if w in corpus
    )


@pytest.mark.parametrize("mu", [0.5, 10.0, 2000.0])
def test_scores(mu):
    query = "red HAT hat tie"
    expected = {d: likelihood(query, t, mu) for d, t in DOCUMENTS.items()}
    system = UnigramLMSystem(mu)
    run = system.rerank({"q": query}, {"q": list(DOCUMENTS)}, DOCUMENTS)
    assert run["q"] == pytest.approx(expected, rel=1e-6)
    found = system.retrieve({"q": query}, DOCUMENTS, 10)
    assert found == {"q": {d: run["q"][d] for d in ("a", "b")}}
    assert list(found["q"]) == ["a", "b"]


def test_textbook_example():
    """Manning, Raghavan, Schuetze 2008, example 12.3.

    It mixes title and corpus half and half, which mu = |d| = 8 does too.
    """
    documents = {
        "d1": "Xyzzy reports a profit but revenue is down",
        "d2": "Quorus narrows quarter loss but revenue decreases further",
    }
    run = UnigramLMSystem(8).retrieve({"q": "revenue down"}, documents, 2)
    assert list(run["q"]) == ["d1", "d2"]
    assert math.exp(run["q"]["d1"]) == pytest.approx(3 / 256, rel=1e-5)
    assert math.exp(run["q"]["d2"]) == pytest.approx(1 / 256, rel=1e-5)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan])
def test_wrong_mu(mu):
    with pytest.raises(InputError, match="expected a number above 0"):
        UnigramLMSystem(mu)

import math
import unicodedata

import pytest

from keras_lstm_dssm.evaluation import BM25System
from keras_lstm_dssm.evaluation.bm25 import alphanumeric, words

DOCUMENTS = {
    "a": "Red angle-bracket",
    "b": "angle bracket for the angle grinder",
    "c": "garden hose",
    "d": "",
}
QUERIES = {"q1": "ANGLE bracket", "q2": "unheard", "q3": ""}


def bm25(query: list[str], title: list[str], titles: list[list[str]]) -> float:
    """Robertson and Zaragoza 2009 with Lucene's IDF, without (k1 + 1)."""
    average = sum(map(len, titles)) / len(titles)
    total = 0.0
    for word in query:
        df = sum(word in other for other in titles)
        idf = math.log(1 + (len(titles) - df + 0.5) / (df + 0.5))
        tf = title.count(word)
        total += (
            idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * len(title) / average))
        )
    return total


@pytest.mark.parametrize("tokenizer", [words, alphanumeric])
def test_scores(tokenizer) -> None:
    titles = {d: tokenizer(title) for d, title in DOCUMENTS.items()}
    expected = {
        d: bm25(["angle", "bracket"], title, list(titles.values()))
        for d, title in titles.items()
    }
    system = BM25System(tokenizer=tokenizer)
    run = system.rerank(QUERIES, {"q1": list(DOCUMENTS)}, DOCUMENTS)
    assert run["q1"] == pytest.approx(expected, rel=1e-6, abs=1e-30)
    found = system.retrieve(QUERIES, DOCUMENTS, 10)
    assert found["q1"] == {d: s for d, s in run["q1"].items() if expected[d]}
    assert len(found["q1"]) == (1 if tokenizer is words else 2)


def test_what_matches_nothing_is_not_found() -> None:
    run = BM25System().retrieve(QUERIES, DOCUMENTS, 10)
    assert run["q2"] == run["q3"] == {}


def test_depth() -> None:
    run = BM25System().retrieve({"q": "angle hose red"}, DOCUMENTS, 2)
    assert len(run["q"]) == 2


def test_rerank_keeps_all_candidates() -> None:
    candidates = {"q2": ["c", "a", "b"], "q3": ["d"]}
    run = BM25System().rerank(QUERIES, candidates, DOCUMENTS)
    assert set(run["q2"]) == {"a", "b", "c"}
    assert run["q3"] == {"d": 0.0}


def test_corpus_without_words() -> None:
    run = BM25System().rerank({"q": "x"}, {"q": ["a", "b"]}, {"a": "", "b": ""})
    assert set(run["q"]) == {"a", "b"}


def test_tokenizers() -> None:
    text = (
        "  Cr\u00e8me-Br\u00fbl\u00e9e, \ufb01ve_2x4 STRASSE\u00df\u3000\u65b0 "
    )
    assert words(text) == [
        "cr\u00e8me-br\u00fbl\u00e9e,",
        "five_2x4",
        "strassess",
        "\u65b0",
    ]
    assert alphanumeric(text) == [
        "cr\u00e8me",
        "br\u00fbl\u00e9e",
        "five",
        "2x4",
        "strassess",
        "\u65b0",
    ]
    assert unicodedata.is_normalized("NFKC", " ".join(words(text)))


def test_words_are_those_of_the_model() -> None:
    tf = pytest.importorskip("tensorflow")
    from keras_lstm_dssm.text import split_words

    texts = [
        "  Angle Bracket,\t12-Gauge \n",
        "\uff21\uff22\uff23 \ufb01ve STRASSE\u00df \u0130stanbul",
        "\u65b0 \u3000\u5e74 \u0645\u0631\u062d\u0628\u0627 \U0001f600",
    ]
    seen = split_words(tf.constant(texts)).to_list()
    assert [[w.encode() for w in words(text)] for text in texts] == seen

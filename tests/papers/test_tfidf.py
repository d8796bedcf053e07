import gzip
import json

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import ClusterTask, mean
from keras_lstm_dssm.evaluation.bm25 import space_separated
from keras_lstm_dssm.papers.baselines import LSASystem, TfidfSystem

pytest.importorskip("sklearn")

TEXTS = ["red hat hat", "Blue hat", "garden hose", "red hose reel"]


def weights_by_formula(counts: dict[str, int]) -> dict[str, float]:
    """(1 + ln tf) (1 + ln((1 + n)/(1 + df))), scaled to length 1."""
    frequency = {
        word: sum(word in text.lower().split() for text in TEXTS)
        for word in " ".join(TEXTS).lower().split()
    }
    weights = {
        word: (1 + np.log(count))
        * (1 + np.log((1 + len(TEXTS)) / (1 + frequency[word])))
        for word, count in counts.items()
    }
    length = np.sqrt(sum(w * w for w in weights.values()))
    return {word: w / length for word, w in weights.items()}


def test_weights_equal_their_formula():
    system = TfidfSystem().fit(TEXTS)
    assert system.parameters == 6
    words = ["red", "hat", "blue", "garden", "hose", "reel"]
    vectors = system.encode(["Hat red hat HAT unheard", "", "unheard"])
    expected = weights_by_formula({"hat": 3, "red": 1})
    row = dict(zip(words, vectors.toarray()[0].tolist(), strict=True))
    assert row == pytest.approx(dict.fromkeys(words, 0.0) | expected)
    assert not vectors[1:].toarray().any()


def test_rare_words_are_dropped():
    system = TfidfSystem(min_count=2).fit(TEXTS)
    assert system.parameters == 3  # red, hat, hose
    assert not system.encode(["blue garden reel"]).toarray().any()
    with pytest.raises(InputError, match="no word is in min_count=3 of 4 text"):
        TfidfSystem(min_count=3).fit(TEXTS)


def test_ranks_by_cosine():
    system = TfidfSystem().fit(TEXTS)
    documents = {"a": "red hat", "b": "hose", "c": "reel", "d": ""}
    queries = {"q": "red hose", "none": "unheard"}
    run = system.retrieve(queries, documents, 10)
    query, first = (
        weights_by_formula({"red": 1, word: 1}) for word in ("hose", "hat")
    )
    assert run == {
        "q": {
            "b": pytest.approx(query["hose"]),
            "a": pytest.approx(query["red"] * first["red"]),
        },
        "none": {},
    }
    ranked = system.rerank(queries, {"q": ["d", "a", "b"]}, documents)["q"]
    assert list(ranked) == ["b", "a", "d"]


def test_lsa_is_the_best_approximation_of_the_cosines():
    """With all components, the vectors of the training keep their products."""
    tfidf = TfidfSystem().fit(TEXTS).encode(TEXTS).toarray()
    whole = LSASystem().fit(TEXTS)
    vectors = whole.encode(TEXTS)
    assert vectors.shape == (4, 4)
    np.testing.assert_allclose(vectors @ vectors.T, tfidf @ tfidf.T, atol=1e-6)
    two = LSASystem(2).fit(TEXTS)
    assert two.parameters == 6 + 2 * 6
    singular = np.linalg.svd(tfidf)[1]
    np.testing.assert_allclose(
        np.linalg.norm(two.encode(TEXTS), axis=0), singular[:2], rtol=1e-6
    )
    assert not two.encode(["unheard"]).any()


def test_settings():
    system = LSASystem(1, min_count=2, tokenizer=space_separated, seed=3)
    texts = ["red-hat hose", "red-hat garden hose"]
    assert system.fit(texts).tfidf.parameters == 2
    assert system.encode(["red-hat hose"]) == pytest.approx(1)
    assert LSASystem().fit(["red hat"]).encode(["hat"]).shape == (1, 1)
    assert LSASystem().fit(["hat", "hat"]).encode(["hat"]) == pytest.approx(1)


def test_wrong_use():
    for kind in (TfidfSystem, LSASystem):
        with pytest.raises(InputError, match=f"{kind.__name__} is not trained"):
            kind().encode(["hat"])
        with pytest.raises(InputError, match="found no word in 1 titles"):
            kind().fit([""])


def test_clusters_of_news_equal_the_reference_figures(shared_data):
    """The figures are k-means on TF-IDF and SVD 100, the mean of 5 seeds."""
    with gzip.open(shared_data / "bbc" / "documents.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    texts = {row["_id"]: "\n".join(row["sentences"]) for row in rows}
    test = [row for row in rows if row["split"] == "test"]
    task = ClusterTask.from_classes(
        {row["_id"]: texts[row["_id"]] for row in test},
        {row["_id"]: row["class"] for row in test},
    )
    assert task.describe() == "357 documents in 5 classes"
    assert task.random() == pytest.approx(
        {"f1": 0.203, "v": 0.015, "ari": 0.001, "ami": 0.001}, abs=0.003
    )
    training = [texts[r["_id"]] for r in rows if r["split"] == "train"]
    lsa = LSASystem().fit(training)
    assert mean(task.measure(lsa)[1], task.measures) == pytest.approx(
        {"f1": 0.948, "v": 0.922, "ari": 0.934, "ami": 0.921}, abs=0.01
    )

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import PairSystem
from keras_lstm_dssm.evaluation.bm25 import BM25System

QUERIES = {"q1": "hex bolt", "q2": "glue", "unused": "lamp"}
DOCUMENTS = {"a": "steel bolt", "b": "wood glue 8 oz", "c": "hex nut bolt"}


def lengths(queries: list[str], documents: list[str]) -> np.ndarray:
    """Scores pairs by the product of their lengths, the shortest highest."""
    sizes = [-len(q) * len(d) for q, d in zip(queries, documents, strict=True)]
    return np.array(sizes, np.float32)


def test_rerank_orders_each_list_by_its_scores():
    candidates = {"q2": ["b", "a"], "q1": ["c", "b", "a"]}
    system = PairSystem(lengths)
    scores = system.list_scores(QUERIES, candidates, DOCUMENTS)
    assert scores == {
        "q2": {"b": -56.0, "a": -40.0},
        "q1": {"c": -96.0, "b": -112.0, "a": -80.0},
    }
    run = system.rerank(QUERIES, candidates, DOCUMENTS)
    assert {q: list(found) for q, found in run.items()} == {
        "q2": ["a", "b"],
        "q1": ["a", "c", "b"],
    }


def test_retrieve_reorders_what_the_first_stage_finds():
    system = PairSystem(lengths, first_stage=BM25System())
    run = system.retrieve({"q1": QUERIES["q1"]}, DOCUMENTS, 10)
    assert list(BM25System().retrieve(QUERIES, DOCUMENTS, 10)["q1"]) == [
        "c",
        "a",
    ]
    assert list(run["q1"]) == ["a", "c"]
    with pytest.raises(InputError, match="give PairSystem a first_stage"):
        PairSystem(lengths).retrieve(QUERIES, DOCUMENTS, 10)

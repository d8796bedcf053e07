"""What all baselines have in common."""

import subprocess
import sys

import pytest

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.evaluation.bm25 import BM25System, stemmed
from keras_lstm_dssm.papers.baselines import UnigramLMSystem
from keras_lstm_dssm.papers.gensim_baselines import Doc2VecSystem
from keras_lstm_dssm.papers.plsa import PLSASystem
from tests.bare_package import BARE_PACKAGE


def test_importing_baselines_is_cheap():
    code = """
import keras_lstm_dssm.papers
heavy = {"bm25s", "gensim", "scipy", "sklearn", "snowballstemmer", "torch"}
heavy = (heavy | {"ir_measures", "tensorflow", "keras"}) & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", BARE_PACKAGE + code], check=True)


@pytest.mark.parametrize("system", [BM25System(), UnigramLMSystem()])
def test_what_matches_nothing_is_not_found_and_yet_reranked(system):
    documents = {"a": "red hat", "b": "garden hose", "c": ""}
    queries = {"q1": "unheard", "q2": ""}
    nothing = {"q1": {}, "q2": {}}
    assert system.retrieve(queries, documents, 10) == nothing
    candidates = {"q1": ["b", "a", "c"], "q2": ["c"]}
    run = system.rerank(queries, candidates, documents)
    assert {q: set(found) for q, found in run.items()} == {
        q: set(found) for q, found in candidates.items()
    }
    assert run["q2"] == {"c": 0.0}
    # A corpus without words.
    run = system.rerank({"q": "x"}, {"q": ["a"]}, {"a": "", "b": ""})
    assert run == {"q": {"a": 0.0}}


def test_every_system_beats_chance(shared_data):
    collection = Collection(shared_data / "bestbuy")
    rerank = Task.from_collection(collection, "dev", "rerank")
    retrieve = Task.from_collection(collection, "dev", "retrieve")
    titles = list(collection.documents.values())
    ndcg, mrr = rerank.random()["ndcg@1"], retrieve.random()["mrr@10"]
    for system, better in (
        (BM25System(tokenizer=stemmed), 0.1),
        (UnigramLMSystem(tokenizer=stemmed), 0.1),
        (PLSASystem(100, tokenizer=stemmed).fit(titles), 0.1),
        # With the paper's `sample`, 437 titles are next to nothing.
        (Doc2VecSystem(tokenizer=stemmed).fit(titles), -0.02),
    ):
        assert rerank.evaluate(rerank.run(system))["ndcg@1"] > ndcg + better
        assert retrieve.evaluate(retrieve.run(system))["mrr@10"] > 5 * mrr

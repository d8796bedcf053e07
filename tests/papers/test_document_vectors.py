import subprocess
import sys

import numpy as np
import pytest

from keras_lstm_dssm.evaluation import ClusterTask, Task, evaluate_systems, mean
from keras_lstm_dssm.papers.baselines import (
    RandomVectorSystem,
    document_baselines,
)
from tests.bare_package import BARE_PACKAGE

pytest.importorskip("sklearn")
pytest.importorskip("gensim")


def test_random_vectors_depend_on_the_text_alone():
    system = RandomVectorSystem(vector_size=400)
    vectors = system.encode(["red hat", "blue hat", "red hat"])
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[0], vectors[2])
    code = f"""{BARE_PACKAGE}
from keras_lstm_dssm.papers import RandomVectorSystem
print(RandomVectorSystem(400).encode(["red hat"]).tobytes().hex())
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == vectors[:1].tobytes().hex()
    # Independent directions: the cosine has deviation 1/sqrt(400).
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert abs(unit[0] @ unit[1]) < 4 / 20
    other = RandomVectorSystem(400, seed=1).encode(["red hat"])[0]
    assert abs(other @ unit[0] / np.linalg.norm(other)) < 4 / 20


def test_every_baseline_ranks_and_clusters():
    """All baselines but random vectors find the two topics of the texts."""
    rng = np.random.default_rng(0)
    topics = {"wear": "hat coat shoe wool scarf", "tools": "hose pump saw nail"}
    texts = {
        f"{topic}{i}": "\n".join(
            " ".join(rng.choice(words.split(), 6)) for _ in range(8)
        )
        for topic, words in topics.items()
        for i in range(12)
    }
    systems = document_baselines(list(texts.values()))
    qrels = {
        topic: {d: 1 for d in texts if d.startswith(topic)} for topic in topics
    }
    task = Task(topics, texts, qrels, depth=len(texts))
    results = evaluate_systems(task, systems)
    assert list(results) == [
        "bm25", "tfidf", "lsa", "word2vec", "doc2vec", "random_vectors",
        "random",
    ]  # fmt: skip
    for name in ("bm25", "tfidf", "lsa"):
        assert results[name]["map"] == pytest.approx(1)
    classes = {document: document.rstrip("0123456789") for document in texts}
    clustering = ClusterTask.from_classes(texts, classes, seeds=1)
    ari = {
        name: mean(clustering.measure(system)[1], ["ari"])["ari"]
        for name, system in systems.items()
        if name != "bm25"
    }
    assert ari["tfidf"] == ari["lsa"] == 1
    assert abs(ari["random_vectors"]) < 0.2
    widths = [
        systems[n].encode(["hat"]).shape[1] for n in ("word2vec", "doc2vec")
    ]
    assert widths == [100, 100]

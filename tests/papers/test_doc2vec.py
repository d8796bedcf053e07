import os
import subprocess
import sys

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.papers.gensim_baselines import Doc2VecSystem, _hash
from tests.bare_package import BARE_PACKAGE

gensim = pytest.importorskip("gensim.models.doc2vec")

TITLES = [
    "red wool hat", "warm wool hat", "warm red coat", "garden hose reel",
    "water hose reel", "garden water pump",
] * 20  # fmt: skip

SETTINGS = {"vector_size": 8, "sample": 0.0}


@pytest.fixture(scope="module")
def system() -> Doc2VecSystem:
    return Doc2VecSystem(**SETTINGS).fit(TITLES)


def test_settings_of_the_paper():
    model = Doc2VecSystem().fit(["red hat", "blue hat"]).model_
    assert (model.window, model.vector_size, model.sample) == (5, 100, 1e-4)
    assert (model.negative, model.epochs, model.min_count) == (5, 30, 1)
    assert model.dm and model.workers == 1


def test_parameters(system):
    # Words in, words out, titles.
    assert system.parameters == 8 * (10 + 10 + len(TITLES))


def test_trains_as_gensim_does(system):
    model = gensim.Doc2Vec(
        [gensim.TaggedDocument(t.split(), [i]) for i, t in enumerate(TITLES)],
        vector_size=8, window=5, sample=0, negative=5, epochs=30, min_count=1,
        seed=0, workers=1,
    )  # fmt: skip
    assert np.array_equal(model.wv.vectors, system.model_.wv.vectors)


def test_infers_as_gensim_does(system, monkeypatch):
    """With gensim's start and random numbers, vectors equal gensim's."""
    start = gensim.pseudorandom_weak_vector

    def stable(size: int, seed_string: str) -> np.ndarray:
        return start(size, seed_string, _hash)

    found = system.encode(["Red, unheard hose!"])
    monkeypatch.setattr(gensim, "pseudorandom_weak_vector", stable)
    system.model_.random.seed(0)
    assert np.array_equal(found[0], system.model_.infer_vector(["red", "hose"]))


def test_vectors_do_not_depend_on_other_texts():
    texts = ["red hat", "garden hose", "wool"]
    one = Doc2VecSystem(**SETTINGS).fit(TITLES)
    other = Doc2VecSystem(**SETTINGS).fit(TITLES)
    assert np.array_equal(one.encode(texts), other.encode(texts[::-1])[::-1])
    third = Doc2VecSystem(**SETTINGS, seed=1).fit(TITLES)
    assert not np.allclose(one.encode(texts), third.encode(texts))


def test_processes_agree():
    code = f"""{BARE_PACKAGE}
from keras_lstm_dssm.papers import Doc2VecSystem
from keras_lstm_dssm.papers.gensim_baselines import _hash
system = Doc2VecSystem(vector_size=4).fit({TITLES[:6]!r})
print(system.encode(["red hat"]).tobytes().hex())
"""
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] != ""


def test_ranks_by_cosine(system):
    documents = {"a": "wool hat", "b": "Red coat", "c": "unheard", "d": ""}
    run = system.rerank(
        {"q": "red coat"}, {"q": ["c", "a", "b", "d"]}, documents
    )
    vectors = system.encode(["red coat", "wool hat"])
    cosine = np.prod(vectors, axis=0).sum() / np.prod(
        np.linalg.norm(vectors, axis=1)
    )
    expected = {"a": cosine, "b": 1.0, "c": 0.0, "d": 0.0}
    assert run["q"] == pytest.approx(expected, rel=1e-5, abs=1e-30)
    assert next(iter(run["q"])) == "b"
    assert system.retrieve({"q": "red coat"}, documents, 4) == run


def test_wrong_use():
    with pytest.raises(InputError, match="found no word in 1 titles"):
        Doc2VecSystem().fit([""])
    with pytest.raises(InputError, match="no word occurs min_count=2 times"):
        Doc2VecSystem(min_count=2).fit(["red hat"])
    with pytest.raises(InputError, match="Doc2VecSystem is not trained"):
        Doc2VecSystem().encode(["hat"])

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.papers.gensim_baselines import Word2VecSystem

gensim = pytest.importorskip("gensim.models.word2vec")

TEXTS = [
    "Red wool hat.\nWarm wool hat", "warm red coat", "garden hose reel\n",
    "water hose reel\n\ngarden water pump",
] * 20  # fmt: skip
SENTENCES = [
    ["red", "wool", "hat"], ["warm", "wool", "hat"], ["warm", "red", "coat"],
    ["garden", "hose", "reel"], ["water", "hose", "reel"],
    ["garden", "water", "pump"],
] * 20  # fmt: skip


@pytest.fixture(scope="module")
def system() -> Word2VecSystem:
    return Word2VecSystem(vector_size=8).fit(TEXTS)


def test_trains_skip_gram_on_lines_as_gensim_does(system):
    model = gensim.Word2Vec(
        SENTENCES, vector_size=8, window=5, negative=5, epochs=20, min_count=5,
        sg=1, seed=0, workers=1,
    )  # fmt: skip
    assert model.wv.index_to_key == system.words_.index_to_key
    assert np.array_equal(model.wv.vectors, system.words_.vectors)
    assert system.parameters == 2 * 8 * 10


def test_the_vector_of_a_text_is_the_mean_over_its_words(system):
    vectors = system.encode(["Red, red\nhose unheard!", "", "unheard"])
    words = system.words_
    expected = (2 * words["red"] + words["hose"]) / 3
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-5)
    assert not vectors[1:].any()


def test_ranks_by_cosine(system):
    documents = {"a": "wool hat", "b": "Red coat", "c": "unheard"}
    run = system.retrieve({"q": "coat red"}, documents, 3)
    assert run["q"]["b"] == pytest.approx(1)
    assert run["q"]["c"] == pytest.approx(0)
    other = Word2VecSystem(vector_size=8, seed=1).fit(TEXTS)
    assert not np.allclose(other.encode(["hat"]), system.encode(["hat"]))


def test_no_word_of_a_long_text_is_left_out():
    """gensim would ignore all words of a sentence after the 10,000th."""
    long = ["hat"] * 10_000 + ["hose", "reel"] * 20
    found = Word2VecSystem(vector_size=2, epochs=1).fit([" ".join(long)])
    parts = [long[:10_000], long[10_000:]]
    expected = gensim.Word2Vec(
        parts, vector_size=2, epochs=1, sg=1, seed=0, workers=1
    )
    assert np.array_equal(expected.wv.vectors, found.words_.vectors)


def test_wrong_use():
    with pytest.raises(InputError, match="found no word in 2 titles"):
        Word2VecSystem().fit(["", "..."])
    with pytest.raises(InputError, match="no word occurs min_count=5 times in"):
        Word2VecSystem().fit(["red hat"])
    with pytest.raises(InputError, match="Word2VecSystem is not trained"):
        Word2VecSystem().encode(["hat"])
    with pytest.raises(InputError, match="found 'red hat', expected a sequen"):
        Word2VecSystem().fit("red hat")
    with pytest.raises(InputError, match="title 2: found 3, expected a str"):
        Word2VecSystem().fit(["red hat", 3])

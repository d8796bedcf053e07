"""Word vectors to start from, trained by gensim, and a KeyVec that does."""

import sys

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.text import vocabulary_of
from keras_lstm_dssm.training.keyvec_training import new_keyvec
from keras_lstm_dssm.training.skip_gram import (
    skip_gram_cache,
    skip_gram_vectors,
)
from tests.training.small_documents import QUICK_KEYVEC, documents

word2vec = pytest.importorskip("gensim.models.word2vec")

TITLES = [
    "Red wool hat!", "warm wool-hat", "warm red coat", "garden hose, reel",
    "water hose reel", "garden water pump", "",
] * 40  # fmt: skip
VOCABULARY = vocabulary_of(TITLES)


def test_trains_as_gensim_does():
    vectors = skip_gram_vectors(TITLES, VOCABULARY, 8, window=2, seed=3)
    sentences = [
        title.lower().replace("!", "").replace("-", " ").replace(",", "")
        for title in TITLES
    ]
    trained = word2vec.Word2Vec(
        [sentence.split() for sentence in sentences],
        vector_size=8, window=2, sg=1, min_count=1, epochs=5, seed=3,
        workers=1,
    )  # fmt: skip
    assert vectors.dtype == np.float32 and vectors.shape == (10, 8)
    np.testing.assert_array_equal(vectors, trained.wv[VOCABULARY])


def test_other_words_are_left_out_and_unseen_ones_random():
    vocabulary = ["hose", "unseen", "hat", "never"]
    vectors = skip_gram_vectors(TITLES, vocabulary, 40, seed=1)
    only = [
        " ".join(word for word in ("hat", "hose") if word in title)
        for title in TITLES
    ]
    np.testing.assert_array_equal(
        vectors, skip_gram_vectors(only, vocabulary, 40, seed=1)
    )
    random = vectors[[1, 3]]
    assert -0.1 <= random.min() < -0.09 and 0.09 < random.max() <= 0.1
    # gensim starts within 1 / (2 * 40), and two words alone learn little.
    assert np.abs(vectors[[0, 2]]).max() < 0.05
    other = skip_gram_vectors(TITLES, vocabulary, 40, seed=2)
    assert (other != vectors).mean() > 0.99


def test_equal_trainings_are_run_once(monkeypatch):
    first = skip_gram_vectors(TITLES, VOCABULARY, 8, seed=5)
    expected = first.copy()
    first[:] = 0  # the caller's own
    monkeypatch.setattr("gensim.models.Word2Vec", None)  # not called again
    again = skip_gram_vectors(iter(TITLES), tuple(VOCABULARY), 8, seed=5)
    np.testing.assert_array_equal(again, expected)
    with pytest.raises(TypeError):
        skip_gram_vectors(TITLES, VOCABULARY, 8, seed=6)


def test_results_are_cached_on_disk(tmp_path):
    expected = skip_gram_vectors(TITLES, VOCABULARY, 8, seed=7)
    folder = tmp_path / "skip_gram"
    with skip_gram_cache(folder):
        trained = skip_gram_vectors(TITLES, VOCABULARY, 8, seed=7)
        (file,) = folder.iterdir()
        np.save(file, expected + 1)
        read = skip_gram_vectors(iter(TITLES), VOCABULARY, 8, seed=7)
        other = skip_gram_vectors(TITLES, VOCABULARY, 8, seed=8)
    np.testing.assert_array_equal(trained, expected)
    np.testing.assert_array_equal(read, expected + 1)
    assert (other != expected).all() and len([*folder.iterdir()]) == 2
    np.testing.assert_array_equal(
        skip_gram_vectors(TITLES, VOCABULARY, 8, seed=7), expected
    )


SAVE_VECTORS = """
import sys, numpy as np
from tests.fresh_process import FreshProcesses
from tests.training.test_skip_gram import *
np.save(sys.argv[1], skip_gram_vectors(TITLES, VOCABULARY))
"""


def test_a_fresh_process_computes_the_same(tmp_path, fresh_process):
    """Also where Python hashes strings in another way."""
    fresh_process(SAVE_VECTORS, tmp_path / "vectors.npy")
    vectors = skip_gram_vectors(TITLES, VOCABULARY)
    np.testing.assert_array_equal(np.load(tmp_path / "vectors.npy"), vectors)
    layer = VocabularyVectors(VOCABULARY)
    layer.set_vectors(vectors)
    np.testing.assert_array_equal(layer.get_weights()[0][1:], vectors)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"dimension": 0}, "dimension is 0: expected a whole number of 1 or more"),
    ({"window": 0}, "window is 0: expected a whole number of 1 or more"),
    ({"epochs": 0}, "epochs is 0: expected a whole number of 1 or more"),
    ({"seed": -1}, "seed is -1: expected a whole number of 0 or more"),
    ({"vocabulary": ["Hat"]},
     "found no word of the vocabulary in 280 texts, expected the texts"),
    ({"texts": "hat"}, "expected a list of texts, got one text, 'hat'"),
])  # fmt: skip
def test_wrong_arguments_are_one_clear_line(arguments, message):
    with pytest.raises(InputError, match=message):
        skip_gram_vectors(
            **{"texts": TITLES, "vocabulary": VOCABULARY, **arguments}
        )


def test_a_missing_gensim_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.delitem(sys.modules, "gensim.models.word2vec")
    message = (
        'gensim is not installed: pip install "keras-lstm-dssm.baselines]"$'
    )
    with pytest.raises(InputError, match=f"^{message}"):
        skip_gram_vectors(TITLES, VOCABULARY)


# --- a KeyVec that starts from them

SENTENCES = [text for one in documents() for text in one.sentences]
START = QUICK_KEYVEC.replace(
    word_dimension=3, key_word_start=2.5, skip_gram_epochs=2
)


@pytest.mark.parametrize("recipe", [
    START,
    START.replace(word_dimension=4),
    START.replace(skip_gram=False),
    START.replace(words="stems"),
    START.replace(words="trigrams"),
], ids=lambda r: f"{r.words} {r.word_dimension} {r.skip_gram}")  # fmt: skip
def test_key_words_start_from_skip_gram_vectors(recipe):
    model = new_keyvec(recipe, 5, SENTENCES, 10)
    words = model.key_vocabulary
    vectors = skip_gram_vectors(SENTENCES, words, 3, epochs=2, seed=5)
    lengths = np.sqrt(np.sum(vectors**2, axis=1, keepdims=True))
    expected = vectors / lengths
    expected = 2.5 * (expected - np.sum(expected, axis=0) / len(words))
    np.testing.assert_allclose(
        model.word_scores.kernel.numpy(), expected.T, rtol=1e-4, atol=1e-5
    )


def test_words_start_from_skip_gram_vectors():
    model = new_keyvec(START, 5, SENTENCES, 10)
    one_more = new_keyvec(START.replace(skip_gram_epochs=3), 5, SENTENCES, 10)
    words = model.key_vocabulary
    vectors = skip_gram_vectors(SENTENCES, words, 3, epochs=2, seed=5)
    found = model.words.weights[0].numpy()[-len(words) :]  # 0 is unknown
    np.testing.assert_array_equal(found, vectors)
    assert not np.array_equal(found, one_more.words.weights[0].numpy()[1:])


def test_only_the_weights_of_key_words_depend_on_the_start():
    random, started = (
        new_keyvec(START.replace(key_word_start=length), 5, SENTENCES, 10)
        for length in (0, 2.5)
    )
    assert np.std(random.word_scores.kernel.numpy()) > 0
    for one, other in zip(
        random.trainable_variables, started.trainable_variables, strict=True
    ):
        equal = np.array_equal(one.numpy(), other.numpy())
        assert equal == (other is not started.word_scores.kernel)

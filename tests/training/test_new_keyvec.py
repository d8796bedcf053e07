"""new_keyvec: the initial weights of a KeyVec."""

import numpy as np
import pytest

from keras_lstm_dssm.training.keyvec_training import new_keyvec
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from tests.training.small_documents import QUICK_KEYVEC, documents

pytest.importorskip("gensim")

SENTENCES = [text for one in documents() for text in one.sentences]
START = QUICK_KEYVEC.replace(
    word_dimension=3, key_word_start=2.5, skip_gram_epochs=2
)


@pytest.mark.parametrize(
    "recipe",
    [
        START,
        START.replace(word_dimension=4),
        START.replace(skip_gram=False),
        START.replace(words="stems"),
        START.replace(words="trigrams"),
    ],
    ids=lambda one: f"{one.words} {one.word_dimension} {one.skip_gram}",
)
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

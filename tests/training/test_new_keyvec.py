"""new_keyvec: what the weights of a KeyVec start from."""

import numpy as np
import pytest

from keras_lstm_dssm import KeyVecRecipe
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.training.new_keyvec import new_keyvec
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from tests.training.small_documents import QUICK_KEYVEC, documents

pytest.importorskip("gensim")

SENTENCES = [text for one in documents() for text in one.sentences]
START = QUICK_KEYVEC.replace(word_dimension=3, key_word_start=2.5)


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
def test_key_words_start_from_skip_gram_vectors(recipe: KeyVecRecipe) -> None:
    model = new_keyvec(recipe, 5, SENTENCES, 10)
    words = model.key_vocabulary
    vectors = skip_gram_vectors(SENTENCES, words, 3, seed=5)
    lengths = np.sqrt(np.sum(vectors**2, axis=1, keepdims=True))
    expected = vectors / lengths
    expected = 2.5 * (expected - np.sum(expected, axis=0) / len(words))
    np.testing.assert_allclose(
        model.word_scores.kernel.numpy(), expected.T, rtol=1e-4, atol=1e-5
    )


def test_the_paper_says_nothing_so_that_they_may_start_at_random() -> None:
    model = new_keyvec(START.replace(key_word_start=0), 5, SENTENCES, 10)
    again = new_keyvec(QUICK_KEYVEC.replace(word_dimension=3), 5, SENTENCES, 1)
    for one, other in zip(
        model.get_weights(), again.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [-1, float("nan"), True])
def test_a_length_must_be_a_number(value: object) -> None:
    with pytest.raises(InputError, match="key_word_start is .*: expected a fi"):
        QUICK_KEYVEC.replace(key_word_start=value)


def test_the_text_of_key_words_must_exist() -> None:
    with pytest.raises(InputError, match="key_words_of is 'body': expected o"):
        QUICK_KEYVEC.replace(key_words_of="body")

import unicodedata

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import (
    STOP_WORDS,
    TokenizedTitles,
    alphanumeric,
    cached_titles,
    count_matrix,
    space_separated,
    stemmed,
    training_titles,
)


def test_tokenizers():
    text = (
        "  Cr\u00e8me-Br\u00fbl\u00e9e, \ufb01ve_2x4 STRASSE\u00df\u3000\u65b0 "
    )
    words = "cr\u00e8me-br\u00fbl\u00e9e, five_2x4 strassess \u65b0"
    assert space_separated(text) == words.split(" ")
    words = "cr\u00e8me br\u00fbl\u00e9e five 2x4 strassess \u65b0"
    assert alphanumeric(text) == words.split(" ")
    assert unicodedata.is_normalized("NFKC", " ".join(space_separated(text)))


def test_words_are_those_of_the_model():
    tf = pytest.importorskip("tensorflow")
    from keras_lstm_dssm.text.word_hashing import split_words

    texts = [
        "  Angle Bracket,\t12-Gauge \n",
        "\uff21\uff22\uff23 \ufb01ve STRASSE\u00df \u0130stanbul",
        "\u65b0 \u3000\u5e74 \u0645\u0631\u062d\u0628\u0627 \U0001f600",
    ]
    seen = split_words(tf.constant(texts)).to_list()
    ours = [[word.encode() for word in space_separated(t)] for t in texts]
    assert ours == seen


def test_stems():
    text = "Angle-Brackets for the HANGING of 2 shelves; it's"
    assert stemmed(text) == "angl bracket hang 2 shelv s".split()
    assert stemmed("to be or not to be") == []
    # From the sample vocabulary of the stemmer's own page.
    text = "consigned consolation knightly knocking"
    assert stemmed(text) == "consign consol knight knock".split()


def test_stop_words():
    assert len(STOP_WORDS) == 33
    lists = pytest.importorskip("sklearn.feature_extraction.text")
    assert STOP_WORDS - lists.ENGLISH_STOP_WORDS == set()


def test_ids_and_counts():
    titles = ["Red hat red", "", "blue hat"]
    tokenized = TokenizedTitles(titles, space_separated)
    assert tokenized.vocabulary == {"red": 0, "hat": 1, "blue": 2}
    assert tokenized.ids == [[0, 1, 0], [], [2, 1]]
    counts = tokenized.counts
    assert counts.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert counts.dtype == np.float32
    assert counts.indices.tolist() == [0, 1, 1, 2]
    assert counts.indices.dtype == counts.indptr.dtype == np.int32
    # With a vocabulary of others.
    words = {"red": 0, "hat": 1}
    tokenized = TokenizedTitles(["hat coat hat"], space_separated, words)
    assert tokenized.ids == [[1, 1]]
    assert tokenized.counts.toarray().tolist() == [[0, 2]]
    assert count_matrix([], 3).shape == (0, 3)


def test_cache_compares_the_titles():
    first = cached_titles(("red hat", "hose"), space_separated)
    assert cached_titles(("red hat", "hose"), space_separated) is first
    assert cached_titles(("red hat", "hoses"), space_separated).ids == first.ids
    assert "hoses" not in first.vocabulary


@pytest.mark.parametrize(
    ("titles", "message"),
    [
        ([], "found no word in 0 titles, expected a sequence of titles"),
        (["", " \n"], "found no word in 2 titles"),
        ("red hat", "found 'red hat', expected a sequence of titles"),
        (iter(["red"]), "expected a sequence of titles with at least one"),
        (None, "found None, expected a sequence"),
        (["red", b"hat"], "title 2: found b'hat', expected a str"),
    ],
)
def test_wrong_titles(titles, message):
    with pytest.raises(InputError, match=message) as error:
        training_titles(titles, space_separated)
    assert "\n" not in str(error.value)

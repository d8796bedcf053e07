import unicodedata

import pytest

from keras_lstm_dssm.baselines.tokenizers import (
    STOP_WORDS,
    alphanumeric,
    stemmed,
    words,
)


def test_tokenizers() -> None:
    text = (
        "  Cr\u00e8me-Br\u00fbl\u00e9e, \ufb01ve_2x4 STRASSE\u00df\u3000\u65b0 "
    )
    assert words(text) == [
        "cr\u00e8me-br\u00fbl\u00e9e,",
        "five_2x4",
        "strassess",
        "\u65b0",
    ]
    assert alphanumeric(text) == [
        "cr\u00e8me",
        "br\u00fbl\u00e9e",
        "five",
        "2x4",
        "strassess",
        "\u65b0",
    ]
    assert unicodedata.is_normalized("NFKC", " ".join(words(text)))


def test_words_are_those_of_the_model() -> None:
    tf = pytest.importorskip("tensorflow")
    from keras_lstm_dssm.text import split_words

    texts = [
        "  Angle Bracket,\t12-Gauge \n",
        "\uff21\uff22\uff23 \ufb01ve STRASSE\u00df \u0130stanbul",
        "\u65b0 \u3000\u5e74 \u0645\u0631\u062d\u0628\u0627 \U0001f600",
    ]
    seen = split_words(tf.constant(texts)).to_list()
    assert [[w.encode() for w in words(text)] for text in texts] == seen


def test_stems() -> None:
    assert stemmed("Angle-Brackets for the HANGING of 2 shelves; it's") == [
        "angl",
        "bracket",
        "hang",
        "2",
        "shelv",
        "s",
    ]
    assert stemmed("to be or not to be") == []
    # From the sample vocabulary of the stemmer's own page.
    for word, stem in {
        "consigned": "consign",
        "consolation": "consol",
        "knightly": "knight",
        "knocking": "knock",
    }.items():
        assert stemmed(word) == [stem]


def test_stop_words() -> None:
    assert len(STOP_WORDS) == 33
    lists = pytest.importorskip("sklearn.feature_extraction.text")
    assert STOP_WORDS - lists.ENGLISH_STOP_WORDS == set()

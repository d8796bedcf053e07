"""BM25, and how it splits titles into words."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import (
    STOP_WORDS,
    BM25System,
    TokenizedTitles,
    alphanumeric,
    cached_titles,
    count_matrix,
    space_separated,
    stemmed,
    training_titles,
)
from keras_lstm_dssm.text.word_hashing import normalize_and_split
from lstm_dssm_client.bm25 import SPLIT
from lstm_dssm_client.words import split_words as served_words
from tests import reference

DOCUMENTS = {
    "a": "Red angle-bracket", "b": "angle bracket for the angle grinder",
    "c": "garden hose", "d": "",
}  # fmt: skip
QUERIES = {"q1": "ANGLE bracket", "q2": "unheard", "q3": ""}


@pytest.mark.parametrize("tokenizer", [space_separated, alphanumeric])
def test_both_modes_have_the_same_scores(tokenizer):
    """test_postings.py compares them with bm25s."""
    system = BM25System(tokenizer=tokenizer)
    run = system.rerank(QUERIES, {"q1": list(DOCUMENTS)}, DOCUMENTS)
    found = system.retrieve(QUERIES, DOCUMENTS, 10)
    assert found["q1"] == {d: s for d, s in run["q1"].items() if s > 0}
    assert len(found["q1"]) == (1 if tokenizer is space_separated else 2)
    run = system.retrieve({"q": "angle hose garden"}, DOCUMENTS, 1)
    assert len(run["q"]) == 1


def test_another_corpus_is_another_index():
    def found(**options: float) -> dict[str, dict[str, float]]:
        return BM25System(**options).retrieve(QUERIES, DOCUMENTS, 10)

    first = found()
    assert list(first["q1"]) == ["b"]
    documents = DOCUMENTS | {"c": "bracket"}
    run = BM25System().retrieve(QUERIES, documents, 10)
    assert set(run["q1"]) == {"b", "c"}
    assert found() == first and first not in (found(k1=2), found(b=0))


def test_tokenizers():
    text = (
        "  Cr\u00e8me-Br\u00fbl\u00e9e, \ufb01ve_2x4 STRASSE\u00df\u3000\u65b0 "
    )
    words = "cr\u00e8me-br\u00fbl\u00e9e, five_2x4 strassess \u65b0"
    assert space_separated(text) == words.split(" ")
    words = "cr\u00e8me br\u00fbl\u00e9e five 2x4 strassess \u65b0"
    assert alphanumeric(text) == words.split(" ")
    assert unicodedata.is_normalized("NFKC", " ".join(space_separated(text)))


@pytest.mark.parametrize("text", [
    "हिन्दी किताब", "กระเป๋า", "தமிழ்", "বাংলা বই", "తెలుగు", "မြန်မာ", "ខ្មែរ",
    "كِتَاب", "סֵפֶר", "ọ̀rọ̀", "İstanbul", "Grund\u00adpreis", "a\u2060b",
    "hex-bolt 3/8", "Quikrete™ 3½", "10,000 mAh", "",
])  # fmt: skip
def test_marks_stay_in_words_as_the_server_has_them(text):
    assert alphanumeric(text) == served_words(text, SPLIT)
    words = reference.split(text, "alphanumeric")
    assert alphanumeric(text) == (words if text else [])
    encoded = tf.constant([text])
    seen = normalize_and_split(encoded, None, "alphanumeric").to_list()[0]
    assert alphanumeric(text) == [word.decode() for word in seen if text]


def test_words_that_differ_in_marks_only_are_two():
    assert alphanumeric("दाल") != alphanumeric("दिल")
    documents = {"lentils": "दाल", "heart": "दिल"}
    run = BM25System(tokenizer=alphanumeric).retrieve(
        {"q": "दिल"}, documents, 2
    )
    assert [*run["q"]] == ["heart"]


def test_words_are_those_of_the_model():
    texts = [
        "  Angle Bracket,\t12-Gauge \n",
        "\uff21\uff22\uff23 \ufb01ve STRASSE\u00df \u0130stanbul",
        "\u65b0 \u3000\u5e74 \u0645\u0631\u062d\u0628\u0627 \U0001f600",
    ]
    seen = normalize_and_split(tf.constant(texts)).to_list()
    ours = [[word.encode() for word in space_separated(t)] for t in texts]
    assert ours == seen


def test_stems_and_stop_words():
    text = "Angle-Brackets for the HANGING of 2 shelves; it's"
    assert stemmed(text) == "angl bracket hang 2 shelv s".split()
    assert stemmed("to be or not to be") == []
    # From the sample vocabulary of the stemmer's own page.
    text = "consigned consolation knightly knocking"
    assert stemmed(text) == "consign consol knight knock".split()
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


@pytest.mark.parametrize(("titles", "message"), [
    ([], "found no word in 0 titles, expected a sequence of titles"),
    (["", " \n"], "found no word in 2 titles"),
    ("red hat", "found 'red hat', expected a sequence of titles"),
    (iter(["red"]), "expected a sequence of titles with at least one"),
    (None, "found None, expected a sequence"),
    (["red", b"hat"], "title 2: found b'hat', expected a str"),
])  # fmt: skip
def test_wrong_titles(titles, message):
    with pytest.raises(InputError, match=message) as error:
        training_titles(titles, space_separated)
    assert "\n" not in str(error.value)

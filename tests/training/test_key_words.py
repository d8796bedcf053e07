"""Key words against the formula and hand-made examples."""

import math

import numpy as np
import pytest

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.training.document_targets import KeyWords

DOCUMENTS = [
    Document("d1", "", ["Sorts a list.", "Quickly!"],
             ["Sort the LIST, then sort it: list's order."]),
    Document("d2", "", ["A list of trees."], ["Trees; an x, and order"]),
    Document("d3", "", ["No list here."], []),
    Document("d4", "", ["\u4e16 \u754c"], ["\u4e16 \u754c \u4e16", "1st"]),
]  # fmt: skip


def test_hand_made_key_words():
    key_words = KeyWords(DOCUMENTS)
    assert key_words.documents == 4
    # df: sort 1, list 3, order 2, trees 1; "sorts" is another word.
    idf = {"sort": 1, "list": 3, "order": 2, "trees": 1, "none": 0}
    for word, frequency in idf.items():
        expected = math.log(5 / (1 + frequency)) + 1
        assert key_words.idf(word) == pytest.approx(expected)
    assert list(key_words.of(DOCUMENTS)) == [
        ["sort", "list", "order"],  # 2 * 1.92, 2 * 1.22, 1.51
        ["trees", "order"],
        [],
        ["\u4e16", "\u754c", "1st"],
    ]


def test_key_words_of_the_whole_document():
    """The term frequency counts words of the sentences and the summary."""
    of_all = KeyWords(DOCUMENTS, count=4, source="document")
    assert list(of_all.of(DOCUMENTS)) == [
        ["sort", "list", "sorts", "quickly"],  # 2 * 1.92, 3 * 1.22, 1.92
        ["trees", "order", "list"],
        ["list"],
        ["\u4e16", "\u754c", "1st"],
    ]
    with pytest.raises(InputError, match="source must be one of summary, doc"):
        KeyWords(DOCUMENTS, source="title")


def test_number_and_stop_words():
    of_first = [DOCUMENTS[0]]
    assert list(KeyWords(DOCUMENTS, count=1).of(of_first)) == [["sort"]]
    all_words = KeyWords(DOCUMENTS, stop_words=(), split="space")
    assert list(all_words.of(of_first)) == [
        ["sort", "the", "list,", "then", "it:", "list's", "order."]
    ]
    with pytest.raises(InputError, match="count must be 1 or more, not 0"):
        KeyWords(DOCUMENTS, count=0)
    with pytest.raises(InputError, match="split must be one of"):
        KeyWords(DOCUMENTS, split="letters")
    with pytest.raises(InputError, match="found no training documents"):
        KeyWords([])


def test_many_documents_against_numpy():
    rng = np.random.default_rng(1)
    words = np.array([f"w{number}x" for number in range(80)])

    def drawn(count: int) -> np.ndarray:
        return (rng.pareto(0.7, count) * 4).astype(int).clip(0, 79)

    bodies = [drawn(30) for _ in range(600)]
    summaries = [drawn(60) for _ in range(600)]
    documents = [
        Document(str(n), "", [" ".join(words[body])], [" ".join(words[part])])
        for n, (body, part) in enumerate(zip(bodies, summaries, strict=True))
    ]
    chosen = list(KeyWords(documents, count=10).of(documents))
    both = [
        np.bincount(np.concatenate(pair), minlength=80) > 0
        for pair in zip(bodies, summaries, strict=True)
    ]
    idf = np.log((1 + 600) / (1 + np.sum(both, axis=0))) + 1
    for summary, key_words in zip(summaries, chosen, strict=True):
        weights = np.bincount(summary, minlength=80) * idf
        expected = np.sort(weights[weights > 0])[::-1][:10]
        found = [weights[int(word[1:-1])] for word in key_words]
        np.testing.assert_allclose(found, expected)


def test_the_idf_is_that_of_scikit_learn():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    vectorizer = text.TfidfVectorizer(token_pattern=r"\w+")
    vectorizer.fit(
        [" ".join((*one.sentences, *one.summary)) for one in DOCUMENTS]
    )
    key_words = KeyWords(DOCUMENTS)
    for word, column in vectorizer.vocabulary_.items():
        assert key_words.idf(word) == pytest.approx(vectorizer.idf_[column])

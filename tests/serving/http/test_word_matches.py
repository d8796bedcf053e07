"""Words that are near to those of a query."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.serving.search_page import (
    letter_similarity,
    marked_parts,
    nearest_words,
    query_words_of,
    strengths,
    trigrams,
    words_of,
)


def test_words() -> None:
    assert words_of(["CSV writer", "the csv file"]) == [
        "csv", "writer", "the", "file",
    ]  # fmt: skip
    assert words_of(["a b c", "d"], most=2) == ["a", "b"]
    assert len(query_words_of(" ".join(map(str, range(99))))) == 12


def test_a_misspelled_word_shares_trigrams() -> None:
    similarity = letter_similarity(["aray", "of"], ["array", "of", "mean"])
    # #ar, ray and ay# of 4 + 5 trigrams.
    np.testing.assert_allclose(similarity, [[6 / 9, 0, 0], [0, 1, 0]])
    assert nearest_words(
        ["aray", "x"], ["array", "of"], similarity[:, :2] * [[1], [0]], 0.4
    ) == [
        {
            "word": "aray",
            "exact": False,
            "nearest": [
                {
                    "word": "array",
                    "similarity": 0.667,
                    "shared": ["#ar", "ray", "ay#"],
                }
            ],
        }
    ]
    strength = strengths(["array", "of", "mean"], similarity, 0.4)
    assert strength == {"array": 6 / 9, "of": 1}
    assert strengths([], np.zeros((2, 0)), 0.4) == {}
    assert marked_parts("Mean of an ARRAY.", strength) == [
        {"text": "Mean ", "strength": 0},
        {"text": "of", "strength": 1},
        {"text": " an ", "strength": 0},
        {"text": "ARRAY", "strength": 0.667},
        {"text": ".", "strength": 0},
    ]


@settings(deadline=None)
@given(st.text(), st.text(max_size=9))
def test_parts_give_the_title_and_similarities_are_shares(
    title: str, query: str
) -> None:
    asked, words = query_words_of(query), words_of([title])
    similarity = letter_similarity(asked, words)
    assert ((similarity >= 0) & (similarity <= 1)).all()
    for row, word in enumerate(asked):
        for column, other in enumerate(words):
            same = trigrams(word) == trigrams(other)
            assert not same or similarity[row, column] == 1
    parts = marked_parts(title, strengths(words, similarity, 0.4))
    assert "".join(part["text"] for part in parts) == title

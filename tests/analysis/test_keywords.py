import numpy as np
import pytest

from keras_lstm_dssm.analysis import (
    ActiveCell,
    Keyword,
    active_cells,
    keywords,
    topics,
)
from keras_lstm_dssm.analysis.words import assigned, distinctive_words
from keras_lstm_dssm.encoders.activations import Activations, each_activations
from tests.encoders.small import small_encoder

WORDS = ("hotels", "in", "shanghai")
FORWARD = [[0.1, 0.0, 0.2, 0.0], [0.1, 0.4, 0.3, 0.0], [0.8, 0.5, 0.3, 0.01]]
BACKWARD = [[0.6, 0.3, -0.4, 0.1], [0.5, 0.3, 0.2, 0.0], [0.5, 0.0, 0.0, 0.0]]


def by_hand(y: list[list[float]], reverse: bool = False) -> Activations:
    return Activations(
        WORDS, None, None, None, None, np.array(y), reverse=reverse
    )


BOTH = by_hand(FORWARD)._replace(backward=by_hand(BACKWARD, reverse=True))


def test_most_active_cells_are_those_far_from_zero():
    assert active_cells(BOTH, 2) == [ActiveCell(0, 0.8), ActiveCell(1, 0.5)]
    assert BOTH.backward is not None
    assert active_cells(BOTH.backward, 3) == [
        ActiveCell(0, 0.6), ActiveCell(2, -0.4), ActiveCell(1, 0.3),
    ]  # fmt: skip
    assert len(active_cells(BOTH, 9)) == 4


def test_counting_of_one_direction():
    # Of the active cells 0, 1 and 2, which end at 0.8, 0.5 and 0.3, "in"
    # moves the last two (by 0.4 and 0.1), "shanghai" the first (by 0.7; the
    # 0.1 of the second is too little); 1.2 cells are needed for a keyword.
    assert keywords(by_hand(FORWARD), cells=3, change=0.25) == [
        Keyword("hotels", (None,), False),
        Keyword("in", (2,), True),
        Keyword("shanghai", (1,), False),
    ]


def test_counting_of_both_directions():
    # From the right "in" moves cells 1 (by 0.3) and 2 (by 0.2), "hotels" cell
    # 2 (by -0.6); its 0.1 in cell 0 is under a quarter of 0.6.
    assert keywords(BOTH, cells=3, change=0.25) == [
        Keyword("hotels", (None, 1), False),
        Keyword("in", (2, 2), True),
        Keyword("shanghai", (1, None), False),
    ]


def test_thresholds():
    found = keywords(BOTH, cells=3, change=0.25, share=0.3)
    assert [one.keyword for one in found] == [True, True, True]
    found = keywords(BOTH, cells=3, change=0.1)
    assert [one.counts for one in found] == [(None, 2), (2, 2), (2, None)]
    # Exactly the share is not more than it: 2 of 4 cells, 50 %.
    found = keywords(BOTH, cells=4, change=0.25, share=0.5)
    assert not found[1].keyword
    # No more cells than there are.
    assert keywords(BOTH, cells=9, share=0.5) == keywords(
        BOTH, cells=4, share=0.5
    )


def test_one_word_has_no_count():
    one = by_hand([FORWARD[2]])._replace(words=("hotels",))
    assert keywords(one) == [Keyword("hotels", (None,), False)]


@pytest.mark.parametrize("name", ["lstm_None_keep", "bilstm", "rnn"])
def test_topics_list_the_words_of_each_cell(name):
    encoder = small_encoder(name)
    queries = ["fried chicken recipes", "sinus infections", "pizza"]
    found = topics(encoder, queries, cells=2, change=0.2)
    expected = set()
    for query, read in enumerate(each_activations(encoder, queries)):
        for place, one in enumerate(read.directions):
            offset = place * one.y.shape[1]
            for word, cell in np.argwhere(assigned(one, 2, 0.2)):
                expected.add((offset + cell, read.words[word], query))
    assert expected
    assert expected == {
        (cell, word.word, word.query)
        for cell, words in found.items()
        for word in words
    }
    sizes = [len(words) for words in found.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_words_are_distinctive_if_frequent_here_and_rare_elsewhere():
    groups = [
        ["the"] * 4 + ["fft"] * 3 + ["once"],
        ["the"] * 9 + ["csv", "csv"],
    ]
    # 16 / (13 + 5) and 9 / (3 + 5); 81 / 18 and 4 / 7.
    assert distinctive_words(groups, 2) == [
        [("fft", 3), ("the", 4)],
        [("the", 9), ("csv", 2)],
    ]
    assert distinctive_words([["b", "a"], []], 1) == [[("a", 1)], []]

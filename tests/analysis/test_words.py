"""Words of a text: their effect, keywords and topics, and parts of vectors."""

import numpy as np
import pytest

from keras_lstm_dssm import TextEncoder, TwoTower
from keras_lstm_dssm.analysis import (
    ActiveCell,
    Keyword,
    active_cells,
    attenuation,
    frame,
    growth,
    keywords,
    topics,
    vector_parts,
)
from keras_lstm_dssm.analysis.words import (
    WHOLE_VECTOR,
    assigned,
    cell_note,
    common_parts,
    distinctive_words,
    each_change,
)
from keras_lstm_dssm.encoders.activations import (
    Activations,
    activations,
    each_activations,
)
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


def test_counting_of_directions():
    # Of the active cells 0, 1 and 2, which end at 0.8, 0.5 and 0.3, "in"
    # moves the last two (by 0.4 and 0.1), "shanghai" the first (by 0.7; the
    # 0.1 of the second is too little); 1.2 cells are needed for a keyword.
    assert keywords(by_hand(FORWARD), cells=3, change=0.25) == [
        Keyword("hotels", (None,), False),
        Keyword("in", (2,), True),
        Keyword("shanghai", (1,), False),
    ]
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


TEXT, TITLE = "hotels in shanghai", "Shanghai hotels, discount"
KINDS = ["lstm_None_keep", "bilstm", "rnn", "dssm", "clsm_3", "combined"]


@pytest.fixture(scope="module", params=KINDS)
def encoder(request) -> TextEncoder:
    return small_encoder(request.param)


def test_attenuation_leaves_out_each_word(encoder):
    other = encoder.encode(["cheap hotels"])[0]
    whole, *rest = encoder.encode(
        [TEXT, "in shanghai", "hotels shanghai", "hotels in"]
    )
    effects = attenuation(encoder, TEXT, other)
    assert [one.word for one in effects] == ["hotels", "in", "shanghai"]
    changes = [one.change for one in effects]
    expected = [1 - whole @ vector for vector in rest]
    np.testing.assert_allclose(changes, expected, atol=1e-6)
    expected = [(whole - vector) @ other for vector in rest]
    cosines = [one.cosine for one in effects]
    np.testing.assert_allclose(cosines, expected, atol=1e-6)
    assert attenuation(encoder, TEXT)[0].cosine is None
    first, second = each_change(encoder, [("hotels",), tuple(TEXT.split())])
    assert first.shape == (1,)
    np.testing.assert_allclose(second, changes, atol=1e-6)


def test_growth_ends_at_the_cosine_and_parts_add_up_to_it(encoder):
    growing = growth(TwoTower(encoder, encoder), TEXT, TITLE)
    assert growing.query_words == ("hotels", "in", "shanghai")
    comma = "," * (encoder.trigrams.split == "space")
    assert growing.document_words == ("shanghai", f"hotels{comma}", "discount")
    first, query, title = encoder.encode(["hotels", TEXT, TITLE])
    assert growing.query_cosines[0] == pytest.approx(first @ title, abs=1e-5)
    assert growing.query_cosines[-1] == pytest.approx(query @ title, abs=1e-5)
    assert growing.document_cosines[-1] == growing.query_cosines[-1]
    for parts, cosines in (
        (growing.query_parts, growing.query_cosines),
        (growing.document_parts, growing.document_cosines),
    ):
        assert parts.shape == (3, len(growing.parts))
        np.testing.assert_allclose(parts.sum(axis=1), cosines, atol=1e-6)


def test_other_encoders_have_one_part():
    combined, lstm = small_encoder("combined"), small_encoder("rnn")
    ((name, start, stop),) = vector_parts(lstm)
    assert (name, start, stop) == (WHOLE_VECTOR, 0, 4)
    assert cell_note(lstm) == ""
    assert "right to left" in cell_note(small_encoder("bilstm"))
    model = TwoTower(combined, combined)
    assert common_parts(model) == vector_parts(combined)
    model.document_encoder = small_encoder("dssm")
    assert len(common_parts(model)) == 1


def test_activations_by_direction_word_and_cell():
    pytest.importorskip("pandas")
    found = activations(small_encoder("bilstm"), TEXT)
    rows = frame(found)
    assert list(rows) == ["reverse", "position", "word", "cell", *"icoy"]
    assert len(rows) == 2 * 3 * 2
    assert rows[rows.position == 2].word.unique().tolist() == ["shanghai"]
    for one in found.directions:
        own = rows[rows.reverse == one.reverse]
        table = own.pivot(index="position", columns="cell", values="c")
        np.testing.assert_array_equal(table, one.c)
    assert list(frame(activations(small_encoder("rnn"), TEXT)))[4:] == ["y"]


def test_frames_of_records_topics_and_growth():
    pytest.importorskip("pandas")
    encoder = small_encoder("rnn")
    found = activations(encoder, TEXT)
    for records in (
        keywords(found), active_cells(found), attenuation(encoder, TEXT)
    ):  # fmt: skip
        rows = frame(records)
        assert tuple(rows) == records[0]._fields
        assert [tuple(row) for row in rows.itertuples(index=False)] == records
    taken = topics(encoder, [TEXT, "fried chicken"], cells=2, change=0.1)
    rows = frame(taken)
    assert list(rows) == ["cell", "word", "query"]
    for cell, own in rows.groupby("cell"):
        pairs = own[["word", "query"]].itertuples(index=False)
        assert [tuple(pair) for pair in pairs] == taken[cell]
    assert list(frame({})) == ["cell", "word", "query"]
    growing = growth(TwoTower(encoder, encoder), TEXT, "shanghai hotels")
    rows = frame(growing)
    assert rows.side.tolist() == ["query"] * 3 + ["document"] * 2
    words = growing.query_words + growing.document_words
    assert tuple(rows.word) == words
    cosines = [*growing.query_cosines, *growing.document_cosines]
    np.testing.assert_array_equal(rows.cosine, cosines)

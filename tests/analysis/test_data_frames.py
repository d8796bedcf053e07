import sys

import numpy as np
import pytest

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.analysis import (
    active_cells,
    attenuation,
    frame,
    growth,
    keywords,
    topics,
)
from keras_lstm_dssm.encoders.activations import activations
from keras_lstm_dssm.errors import InputError
from tests.encoders.small import small_encoder

TEXT = "hotels in shanghai"


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


def test_records_have_their_fields_as_columns():
    pytest.importorskip("pandas")
    encoder = small_encoder("lstm_None_keep")
    found = activations(encoder, TEXT)
    for records in (
        keywords(found), active_cells(found), attenuation(encoder, TEXT)
    ):  # fmt: skip
        rows = frame(records)
        assert tuple(rows) == records[0]._fields
        assert [tuple(row) for row in rows.itertuples(index=False)] == records


def test_topics_and_growth():
    pytest.importorskip("pandas")
    encoder = small_encoder("rnn")
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
    assert rows.word.tolist() == [
        *growing.query_words, *growing.document_words,
    ]  # fmt: skip
    np.testing.assert_array_equal(
        rows.cosine,
        np.hstack([growing.query_cosines, growing.document_cosines]),
    )


def test_without_pandas_there_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed: pip"):
        frame([])

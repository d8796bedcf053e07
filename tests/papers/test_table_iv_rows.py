import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers.rows import choose_rows
from keras_lstm_dssm.papers.table_iv import TABLE_IV_ROWS


def test_the_papers_rows_are_all_there() -> None:
    figures = [row.paper for row in TABLE_IV_ROWS.values() if row.paper]
    assert len(figures) == 17
    assert (
        max(figures) == TABLE_IV_ROWS["bilstm_96"].paper == (33.2, 36.6, 43.6)
    )
    for name in ("dssm", "clsm_win3", "lstm_96", "bilstm_96", "best"):
        assert TABLE_IV_ROWS[name].recipe is PRESETS[name]
    names = [f"lstm_96{suffix}" for suffix in ("_n2", "", "_n6", "_n8")]
    assert [TABLE_IV_ROWS[name].recipe.n for name in names] == [2, 4, 6, 8]


def test_kinds() -> None:
    kinds = {name: row.kind for name, row in TABLE_IV_ROWS.items()}
    assert kinds["skip_thought"] == "baseline"
    assert kinds["clsm_win5"] == "feed-forward"
    assert kinds["rnn_288"] == kinds["bilstm_96"] == "recurrent"


def test_choice_of_rows() -> None:
    assert choose_rows(TABLE_IV_ROWS, ["all"]) == TABLE_IV_ROWS
    some = choose_rows(TABLE_IV_ROWS, ["lstm_96", "random"])
    assert list(some) == ["random", "lstm_96"]
    with pytest.raises(InputError, match="found 'lstm', expected all, or some"):
        choose_rows(TABLE_IV_ROWS, ["bm25", "lstm"])

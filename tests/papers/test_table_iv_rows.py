from typing import Any

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers.run_systems import choose_rows
from keras_lstm_dssm.papers.table_iv import PUBLISHED, TABLE_IV_ROWS


def test_the_papers_rows_are_all_there():
    assert set(PUBLISHED) < set(TABLE_IV_ROWS)
    assert len(PUBLISHED) == 17
    assert (
        max(PUBLISHED.values()) == PUBLISHED["bilstm_96"] == (33.2, 36.6, 43.6)
    )
    recipes: dict[str, Any] = {
        name: getattr(row.system, "recipe", None)
        for name, row in TABLE_IV_ROWS.items()
    }
    for name in ("dssm", "clsm_win3", "lstm_96", "bilstm_96", "best"):
        assert recipes[name] is PRESETS[name]
    names = [f"lstm_96{suffix}" for suffix in ("_n2", "", "_n6", "_n8")]
    assert [recipes[name].n for name in names] == [2, 4, 6, 8]


def test_kinds():
    kinds = {name: row.system.group for name, row in TABLE_IV_ROWS.items()}
    assert kinds["skip_thought"] == "baseline"
    assert kinds["clsm_win5"] == "feed-forward"
    assert kinds["rnn_288"] == kinds["bilstm_96"] == "recurrent"


def test_choice_of_rows():
    assert choose_rows(TABLE_IV_ROWS, ["all"]) == TABLE_IV_ROWS
    some = choose_rows(TABLE_IV_ROWS, ["lstm_96", "random"])
    assert list(some) == ["random", "lstm_96"]
    with pytest.raises(InputError, match="found 'lstm', expected all, or some"):
        choose_rows(TABLE_IV_ROWS, ["bm25", "lstm"])

from typing import Any

import pytest

from keras_lstm_dssm.models import SCORER_PRESETS
from keras_lstm_dssm.papers.mv_lstm import (
    MV_LSTM_ROWS,
    POOLING_ROWS,
    PUBLISHED,
    TABLE_2_ROWS,
    published,
)


def test_every_preset_is_a_row():
    recipes: dict[str, Any] = {
        name: getattr(row.system, "recipe", None)
        for name, row in MV_LSTM_ROWS.items()
    }
    for name, preset in SCORER_PRESETS.items():
        if name == "mv_lstm_cosine":
            preset = preset.with_matcher(k=5)
        assert recipes.pop(name) == preset
    for name in (
        "random", "document_order", "bm25", "skip_gram", "skip_gram_idf",
    ):  # fmt: skip
        assert recipes.pop(name) is None
    assert [(n, r.matcher_config) for n, r in recipes.items()] == [
        (f"mv_lstm_cosine_k{k}", {"interaction": "cosine", "k": k})
        for k in (1, 3, 10)
    ]
    for name in ("mv_lstm_bilinear", "mv_lstm_tensor"):
        matcher = SCORER_PRESETS[name].build(0, ["a"]).matcher
        assert (matcher.k, matcher.rank, matcher.unit_length) == (5, None, True)


def test_published_figures_agree_with_the_papers_text():
    """The paper prints ratios of MV-LSTM tensor to others, in percent."""
    best = PUBLISHED["mv_lstm_tensor"].precision
    for name, percent in (("lstm_rnn_50", 11.1), ("multi_gran_cnn", 5.6)):
        ratio = 100 * (best / PUBLISHED[name].precision - 1)
        assert ratio == pytest.approx(percent, abs=0.15)
    below = {
        name for name, figures in PUBLISHED.items()
        if figures.precision < PUBLISHED["bm25"].precision
    }  # fmt: skip
    assert below == {"random", "rae", "deep_match"}
    confirmed = {n for n, figures in PUBLISHED.items() if figures.confirmed}
    assert confirmed == {
        "random", "bm25", "arc_i", "arc_ii", "cntn", "lstm_rnn_50"
    }  # fmt: skip
    assert published("arc_ii_wan") is PUBLISHED["arc_ii"]
    assert published("document_order") is None


def test_table_2():
    assert set(POOLING_ROWS) < set(TABLE_2_ROWS) < set(MV_LSTM_ROWS)
    precisions = [PUBLISHED[name].precision for name in TABLE_2_ROWS]
    assert precisions == sorted(precisions)  # more k, more P@1


def test_kinds():
    kinds = {name: row.system.group for name, row in MV_LSTM_ROWS.items()}
    assert kinds["document_order"] == "baseline"
    assert kinds["mv_lstm_tensor"] == kinds["lstm_rnn_50"] == "recurrent"
    assert kinds["arc_ii_wan"] == kinds["rae"] == "feed-forward"

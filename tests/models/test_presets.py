"""Parameter counts of the paper's systems, spec 1 (50 k x 288 = 14.4 M)."""

import keras
import numpy as np
import pytest

from keras_lstm_dssm import PRESETS, InputError, TwoTower
from keras_lstm_dssm.models import preset_encoder

TRIGRAMS = 50_653
LSTM_96 = 96 * 288 + 288

COUNTS = {  # rows of the tables, their columns, all other parameters
    "lstm_32": (32 * 3, 32 * 96 + 96),  # 4.8 M
    "lstm_64": (64 * 3, 64 * 192 + 192),  # 9.6 M
    "lstm_96": (96 * 3, LSTM_96),  # 14.4 M
    "lstm_96_full": (96 * 4, 96 * 384 + 384 + 3 * 96 * 96),
    "bilstm_96": (2 * 96 * 3, 2 * LSTM_96),
    "rnn_288": (288, 288 * 288 + 288),  # 14.4 M
    "dssm": (288, 288 * 96 + 96),  # 14.4 M
    "clsm_win1": (288, 288 + 288 * 96 + 96),  # 14.4 M
    "clsm_win3": (3 * 288, 288 + 288 * 96 + 96),  # 43.2 M
    "clsm_win5": (5 * 288, 288 + 288 * 96 + 96),  # 72 M
    "best": (96 * 3 + 96, LSTM_96),
}
PAPER = {
    "lstm_32": 4.8, "lstm_64": 9.6, "lstm_96": 14.4, "rnn_288": 14.4,
    "dssm": 14.4, "clsm_win1": 14.4, "clsm_win3": 43.2, "clsm_win5": 72.0,
}  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_parameter_counts(preset: str) -> None:
    columns, others = COUNTS[preset]
    weights = preset_encoder(preset).trainable_variables
    tables = [w.shape[1] for w in weights if w.shape[0] == TRIGRAMS]
    assert sum(tables) == columns
    total = sum(weight.shape.num_elements() for weight in weights)
    assert total == TRIGRAMS * columns + others


def test_tables_are_the_papers_up_to_its_rounding_of_50_653() -> None:
    assert TRIGRAMS * COUNTS["lstm_96"][0] == 14_588_064
    for preset, millions in PAPER.items():
        assert 50_000 * COUNTS[preset][0] == round(millions * 1e6)


def test_towers_of_a_preset_share_nothing_and_take_arguments() -> None:
    model = TwoTower.from_preset(
        "lstm_32", "in_batch", n=2, seed=3, cells=2, oov_buckets=7
    )
    query, document = model.query_encoder, model.document_encoder
    assert (model.negatives, model.n, model.seed) == ("in_batch", 2, 3)
    assert query.embedding.table.shape == (TRIGRAMS + 7, 6)
    assert (query.name, document.name) == ("query_encoder", "document_encoder")
    own = {id(v) for v in query.variables}
    assert own.isdisjoint(id(v) for v in document.variables)


def test_unknown_preset() -> None:
    with pytest.raises(InputError, match="unknown preset 'gru'; there are l"):
        TwoTower.from_preset("gru")


def test_towers_that_start_equal_find_shared_trigrams_untrained() -> None:
    keras.utils.set_random_seed(1)
    model = TwoTower.from_preset("dssm", equal_start=True)
    query, document = model.query_encoder, model.document_encoder
    for ours, theirs in zip(query.weights, document.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours is not theirs  # each tower learns on its own
    queries = ["hotels in shanghai"] * 2
    near, far = model((queries, ["shanghai hotel", "rubber hose"]))
    assert near > 0.5 > far + 0.2

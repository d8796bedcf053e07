"""Scores of pairs of texts, in batches of similar length."""

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text.strings import score_in_batches


@pytest.mark.parametrize("batch_size", [1, 2, 9])
def test_scores_are_in_the_order_of_the_rows(batch_size):
    batches: list[list[int]] = []
    lengths = [3, 1, 2, 1, 5]

    def score(rows: np.ndarray) -> np.ndarray:
        batches.append(rows.tolist())
        return np.float32(rows) / 2

    scores = score_in_batches(score, lengths, batch_size)
    assert scores.dtype == np.float32
    assert scores.tolist() == [0, 0.5, 1, 1.5, 2]
    # Two threads may take the batches in another order.
    assert sorted(batches, key=lambda rows: (-lengths[rows[0]], rows)) == [
        [4, 0, 2, 1, 3][start : start + batch_size]
        for start in range(0, 5, batch_size)
    ]


def test_no_rows_and_no_batch_size():
    scores = score_in_batches(lambda rows: rows, [], 4)
    assert (scores.dtype, scores.shape) == (np.float32, (0,))
    with pytest.raises(InputError, match="batch_size must be 1 or more, not 0"):
        score_in_batches(lambda rows: rows, [1], 0)

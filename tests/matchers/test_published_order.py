"""The order of Table 2 of Wan et al. 2016, on real questions and answers."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.evaluation import PairSystem, Task

SEEDS = 3
EPOCHS = 1


@pytest.mark.slow
def test_positions_of_both_texts_beat_one_vector_for_each(shared_data):
    """MV-LSTM, k = 5, has a higher P@1 than LSTM-RNN with every seed."""
    folder = shared_data / "squad"
    task = Task.from_collection(open_collection(str(folder)), "test", "lists")

    def precision(preset: str, seed: int) -> float:
        recipe = dssm.SCORER_PRESETS[preset].replace(epochs=EPOCHS)
        model = dssm.train(str(folder), recipe, seed=seed, verbose=0)
        _, by_query = task.measure(PairSystem(model.score_pairs))
        return float(np.mean([row["p@1"] for row in by_query.values()]))

    mv_lstm, lstm_rnn = (
        np.array([precision(preset, seed) for seed in range(SEEDS)])
        for preset in ("mv_lstm_cosine", "lstm_rnn_50")
    )
    random = 0.2
    assert np.all(mv_lstm > lstm_rnn + 0.1)
    assert np.all(lstm_rnn > random)

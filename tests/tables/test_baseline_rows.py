from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.baselines.skip_thought import SkipThoughtSystem
from keras_lstm_dssm.tables.baseline_rows import baseline_grid, skip_thought
from tests.baselines.eager_skip_thought import train_eagerly

PARAGRAPHS = [["The cat sat down", "It slept all day"]] * 3


def test_grids() -> None:
    assert len(baseline_grid("bm25")) == 3 * 5 * 5
    assert len(baseline_grid("plsa")) == 2 * 2
    assert baseline_grid("random") == [{}]


def test_skip_thought_is_trained_once_for_each_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(tmp_path))
    train_eagerly(monkeypatch)
    options = {"units": 4, "embedding": 3, "epochs": 1}

    def train(mode: str, seed: int = 0) -> tuple[SkipThoughtSystem, float]:
        return skip_thought(PARAGRAPHS, {**options, "mode": mode}, seed)

    uni, uni_seconds = train("uni")
    (folder,) = tmp_path.iterdir()
    bi, bi_seconds = train("bi")
    monkeypatch.setattr(SkipThoughtSystem, "fit", None)  # not called again
    loaded, seconds = train("uni")
    assert seconds == uni_seconds
    texts = ["the cat"]
    np.testing.assert_array_equal(loaded.encode(texts), uni.encode(texts))
    # The combined one is made of the other two.
    combined, seconds = train("combined")
    assert seconds == uni_seconds + bi_seconds
    np.testing.assert_array_equal(
        combined.encode(texts),
        np.concatenate([uni.encode(texts), bi.encode(texts)], axis=1),
    )
    with pytest.raises(TypeError):  # another seed is another training
        train("uni", seed=1)
    (folder / "seconds.json").unlink()  # as if it had been interrupted
    with pytest.raises(TypeError):
        train("uni")

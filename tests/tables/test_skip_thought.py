from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.baselines.skip_thought import SkipThoughtSystem
from keras_lstm_dssm.tables.baseline_rows import skip_thought

PARAGRAPHS = [["The cat sat down", "It slept all day"]] * 3


def test_is_trained_once_for_each_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(tmp_path))
    options = {"mode": "uni", "units": 4, "embedding": 3, "epochs": 1}
    system, seconds = skip_thought(PARAGRAPHS, options, 0)
    (kept,) = tmp_path.iterdir()
    with monkeypatch.context() as context:
        context.setattr(SkipThoughtSystem, "fit", None)  # not called again
        again, before = skip_thought(PARAGRAPHS, options, 0)
        assert before == seconds
        np.testing.assert_array_equal(
            system.encode(["the cat"]), again.encode(["the cat"])
        )
        with pytest.raises(TypeError):  # another seed is another training
            skip_thought(PARAGRAPHS, options, 1)
        (kept / "seconds.json").unlink()  # as if it had been interrupted
        with pytest.raises(TypeError):
            skip_thought(PARAGRAPHS, options, 0)


def test_combined_is_made_of_the_other_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(tmp_path))
    options = {"mode": "combined", "units": 4, "embedding": 3, "epochs": 1}
    found = {
        mode: skip_thought(PARAGRAPHS, {**options, "mode": mode}, 0)
        for mode in ("uni", "bi", "combined")
    }
    assert len(list(tmp_path.iterdir())) == 2
    assert found["combined"][1] == found["uni"][1] + found["bi"][1]
    combined = found["combined"][0]
    whole = SkipThoughtSystem(**options).fit(PARAGRAPHS)
    np.testing.assert_array_equal(
        combined.encode(["the cat"]), whole.encode(["the cat"])
    )
    assert combined.history == whole.history
    assert combined.parameters == whole.parameters
    combined.save(tmp_path / "saved")
    loaded = SkipThoughtSystem.load(tmp_path / "saved")
    assert (loaded.mode, loaded.units) == ("combined", 4)
    np.testing.assert_array_equal(
        loaded.encode(["the cat"]), combined.encode(["the cat"])
    )

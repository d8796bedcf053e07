from pathlib import Path

import pytest

from keras_lstm_dssm.benchmarks import profile_suite
from keras_lstm_dssm.data import open_log


def test_parts_of_a_step_and_its_growth(
    collection_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_suite, "CELLS", (4,))
    monkeypatch.setattr(profile_suite, "WORDS", (2,))
    monkeypatch.setattr(profile_suite, "BATCHES", (1,))
    log = open_log(str(collection_folder))
    found = profile_suite.measure_profile(log, 8, 1, 1)
    for axis, value in (("cells", "4"), ("words", "2"), ("batch_size", "8")):
        assert found[axis].keys() == {value}
        assert found[axis][value] > 0
    parts = found["parts"]
    assert parts["matrix products"] > 0 < parts["words to trigrams"]
    assert parts["rows of tables and words"] > 0 < parts["loss and accuracy"]

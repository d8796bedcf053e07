from pathlib import Path

import pytest

from keras_lstm_dssm.benchmarks import profile_suite
from keras_lstm_dssm.data import open_log


@pytest.mark.usefixtures("small_towers")
def test_parts_of_a_step_and_its_growth(
    collection_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_suite, "CELL_COUNTS", (4,))
    monkeypatch.setattr(profile_suite, "TITLE_WORDS", (2,))
    monkeypatch.setattr(profile_suite, "BATCH_FACTORS", ())
    log = open_log(str(collection_folder))
    figures = profile_suite.measure_profile(log, 8, 1, 1)
    for axis, value in (("cells", "4"), ("words", "2")):
        assert figures[axis].keys() == {value}
        assert figures[axis][value] > 0
    assert figures["batch_size"] == {}
    parts = figures["parts"]
    assert parts["matrix products"] > 0 < parts["words to trigrams"]
    assert parts["rows of tables and words"] > 0 < parts["loss and accuracy"]

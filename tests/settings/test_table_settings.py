import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.papers import TableSettings


def test_other_settings_are_not_mixed(tmp_path):
    folder = tmp_path / "out"
    settings = TableSettings("api", gammas=(5.0, 10.0))
    settings.record(folder, {"clicks": 7})
    settings.record(folder, {"clicks": 7})
    with pytest.raises(InputError, match="found epochs 30, expected 5, as"):
        TableSettings("api", epochs=5, gammas=(5.0, 10.0)).record(
            folder, {"clicks": 7}
        )
    with pytest.raises(InputError, match="found clicks 7, expected 8, as"):
        settings.record(folder, {"clicks": 8})

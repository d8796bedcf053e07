from pathlib import Path

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tables import Settings


def test_other_settings_are_not_mixed(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    settings = Settings("api", gammas=(5.0, 10.0))
    settings.record(folder, {"clicks": 7})
    settings.record(folder, {"clicks": 7})
    with pytest.raises(InputError, match="begun with epochs 30, now it is 5"):
        Settings("api", epochs=5, gammas=(5.0, 10.0)).record(
            folder, {"clicks": 7}
        )
    with pytest.raises(InputError, match="begun with clicks 7, now it is 8"):
        settings.record(folder, {"clicks": 8})

"""Small models, of which the suites report the same figures."""

import pytest

from keras_lstm_dssm.benchmarks import keras_towers, machine

CELLS = 16


@pytest.fixture
def small_towers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All towers have 16 cells, not 96."""
    monkeypatch.setattr(machine, "_SIDE", 256)
    monkeypatch.setattr(machine, "_COPIED", 1 << 20)
    monkeypatch.setattr(keras_towers, "CELLS", CELLS)
    monkeypatch.setattr(keras_towers, "WIDTH", 3 * CELLS)

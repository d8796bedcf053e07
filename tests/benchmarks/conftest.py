"""Small models and single measurements, with all figures of the suites."""

from collections.abc import Callable, Mapping

import pytest

from keras_lstm_dssm.benchmarks import (
    keras_towers,
    machine,
    profile_suite,
    request_suites,
    speed_suites,
)

CELLS = 16


@pytest.fixture
def small_towers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives all towers 16 cells, not 96, and measures everything once."""
    monkeypatch.setattr(machine, "_SIDE", 256)
    monkeypatch.setattr(machine, "_COPIED", 1 << 20)
    monkeypatch.setattr(keras_towers, "CELLS", CELLS)
    monkeypatch.setattr(keras_towers, "WIDTH", 3 * CELLS)
    for suite in (profile_suite, request_suites, speed_suites):
        monkeypatch.setattr(suite, "interleaved_medians", measure_once)


def measure_once(
    measurements: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, float]:
    assert rounds == 1
    return {name: measure() for name, measure in measurements.items()}

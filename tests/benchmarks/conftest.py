"""Small models and single measurements, with all figures of the suites."""

from collections.abc import Callable, Mapping

import pytest

from benchmarks import machine, measure, serving, towers

CELLS = 16


@pytest.fixture
def small_towers(monkeypatch) -> None:
    """Gives all towers 16 cells, not 96, and measures everything once.

    Processes are tried with one number of threads and one allocator.
    """
    monkeypatch.setattr(machine, "_SIDE", 256)
    monkeypatch.setattr(machine, "_COPIED", 1 << 20)
    monkeypatch.setattr(towers, "CELLS", CELLS)
    monkeypatch.setattr(measure, "best_environment", first_environment)
    for suite in (measure, serving, towers):
        monkeypatch.setattr(suite, "interleaved_medians", measure_once)


def compare_here(
    contenders: Mapping[str, measure.Contender], work: str, rounds: int
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Does the work of our contenders once, in this process."""
    taken = {}
    for name, contender in contenders.items():
        works = measure.read_works(contender.command[-1])
        taken[name] = list(works[work]())
    return taken, dict.fromkeys(contenders, "here")


def first_environment(contender: measure.Contender, work: str) -> str:
    return next(iter(measure.environments(contender)))


def measure_once(
    measurements: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, float]:
    assert rounds == 1
    return {name: measure() for name, measure in measurements.items()}

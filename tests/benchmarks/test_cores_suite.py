"""The suite `cores`: what is measured, and what Amdahl's law predicts."""

import os
from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.benchmarks import cores_suite
from keras_lstm_dssm.benchmarks.click_data import write_log
from keras_lstm_dssm.benchmarks.cores_suite import measure_cores, predict
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError


def test_amdahls_law_is_fitted() -> None:
    times = {n: 20 + 80 / n for n in (1, 2, 4)}
    assert predict(times) == pytest.approx(
        {
            "serial_share": 0.2,
            "speedup_8": round(100 / 30, 2),
            "speedup_16": 4.0,
        }
    )
    # Two cores that are more than twice as fast leave no serial part.
    assert predict({1: 100, 2: 49}) == {
        "serial_share": 0,
        "speedup_8": 8,
        "speedup_16": 16,
    }
    assert predict({1: 100, 2: 101})["speedup_16"] == 1
    assert predict({1: 100}) == {}


def test_each_number_of_cores_is_a_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_log(tmp_path / "a.tsv", 64)
    log = ClickLog(str(tmp_path / "a.tsv"))
    calls: list[tuple[str, ...]] = []

    def results(module: str, *arguments: str) -> dict[str, float]:
        calls.append(arguments)
        cores = int(arguments[-1])
        return {"train": 10 + 90 / cores, "encode": 60 / cores}

    monkeypatch.setattr(cores_suite, "results_of_process", results)
    usable = set(range(6))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable, False)
    monkeypatch.setattr(os, "sched_setaffinity", None, False)
    found: Any = measure_cores(log, 32, 4, rounds=1)
    # The first round is a warm-up.
    assert (
        calls
        == [(log.paths[0], "32", "4", cores) for cores in ("1", "2", "4", "6")]
        * 2
    )
    assert found["cores"]["4"] == {"train": 32.5, "encode": 15}
    assert found["train"]["serial_share"] == pytest.approx(0.1)
    assert found["encode"]["speedup_8"] == 8
    monkeypatch.delattr(os, "sched_setaffinity")
    with pytest.raises(InputError, match="use Linux for --suite=cores"):
        measure_cores(log, 32, 4, rounds=1)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="Linux limits processes"
)
def test_a_process_with_one_core(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    write_log(path, 64)
    found = cores_suite.results_of_process(
        cores_suite.__name__, str(path), "16", "1", "1"
    )
    assert list(found) == ["train", "encode"] and min(found.values()) > 0

"""One process and two workers take turns, and their seconds are compared.

The processes are replaced here: those of the program train for minutes.
"""

import io
import itertools
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import worker_speed


def clock(*seconds: float) -> Any:
    """Stands for the module `time`; each pair of calls takes so long."""
    times = itertools.accumulate(
        part for duration in seconds for part in (1, duration)
    )
    return SimpleNamespace(monotonic=lambda: next(times))


def test_a_turn_starts_with_a_line_and_is_timed(monkeypatch, capsys):
    """Prints seconds and bytes for each training step; a turn has two steps."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("go\n"))
    monkeypatch.setattr(worker_speed, "time", clock(6))
    collectives: Any = SimpleNamespace(sent=100)
    turns = worker_speed.TimedTurns(2, collectives)
    turns.on_train_batch_begin(0)
    assert capsys.readouterr().out == "waiting\n"
    turns.on_train_batch_end(0)
    turns.on_train_batch_begin(1)
    collectives.sent = 120
    turns.on_train_batch_end(1)
    assert json.loads(capsys.readouterr().out) == [3, 10]
    with pytest.raises(KeyboardInterrupt):  # the other process has ended
        turns.on_train_batch_begin(2)
    assert worker_speed.TimedTurns(2, None)._bytes() == 0


def test_latency_and_bandwidth(monkeypatch):
    """Both are medians of the times of sums that two workers exchange.

    Small sums give the latency, sums of 16 MB the bandwidth; the first two of
    each are left out.
    """
    small = [9, 9] + [0.4] * 5 + [0.6] * 5
    large = [9, 9] + [1] * 5 + [3] * 5
    monkeypatch.setattr(worker_speed, "time", clock(*small, *large))
    collectives: Any = SimpleNamespace(sum=lambda values: values + 1)
    found = worker_speed.connection(collectives)
    assert list(found) == [
        "seconds of a small sum",
        "megabytes per second and direction",
    ]
    assert list(found.values()) == [0.5, round(16 * 1.048576 / 1.5)]


class Child:
    """Stands for a process of the benchmark, and prints given seconds."""

    seconds = {"alone": [9, 2, 4, 6], "0": [9, 1, 4, 2], "1": [9, 0.5, 3, 3]}
    ended: list[str] = []

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        config = json.loads(environment.get("TF_CONFIG", "null"))
        self.name = "alone" if config is None else f"{config['task']['index']}"
        self.lines = iter(
            line
            for seconds in self.seconds[self.name]
            for line in ("waiting\n", json.dumps([seconds, 5e5]))
        )

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.append(self.name)

    def start_turn(self, work: str) -> None:
        pass

    def line(self) -> str:
        return next(self.lines)


def test_the_slower_worker_counts_and_the_first_turn_does_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(worker_speed, "Worker", Child)
    output = tmp_path / "out.json"
    code = worker_speed.run(["worker_speed", "--rounds=3", f"--json={output}"])
    assert code == 0
    results = json.loads(output.read_text())
    # 2 / 1, 4 / 4 and 6 / 3 seconds.
    assert results["ratios"] == [2, 1, 2]
    assert results["median ratio"] == 2
    assert results["seconds of a step, one process"] == 4
    assert results["seconds of a step, two workers"] == 3
    assert results["megabytes sent in a step"] == 0.5
    assert sorted(Child.ended) == ["0", "1", "alone"]

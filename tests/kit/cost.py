"""The processor time of tests, which is printed at the end of a run.

Seconds of the clock depend on what else a machine does; those of its
processors, `user` and `sys`, of all processes of the run, depend less on it.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

SHOWN = 10
"""Number of tests that are named."""


def processor_seconds() -> float:
    """Returns what this process and those it has waited for have used."""
    return sum(os.times()[:4])


class Costs:
    """A plugin: measures each test, and prints the slowest and the whole.

    What a test sets up for others, such as a fixture of its module, counts
    as its own time; what ends with the last test, such as the server of
    fresh processes, only in the whole. A test that was run in a process of
    xdist is measured there; its report brings the number along.
    """

    def __init__(self) -> None:
        self._seen = processor_seconds()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        """Begins to measure."""
        self._seen = processor_seconds()
        self._is_last = nextitem is None
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Writes into a report what its phase has used."""
        report: Any = yield
        now = processor_seconds()
        if not (self._is_last and call.when == "teardown"):
            report.processor_seconds = now - self._seen
        self._seen = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds up the phases of a test."""
        # Neither the last teardown nor a test whose process has died has one.
        used = getattr(report, "processor_seconds", 0.0)
        self._seconds[report.nodeid] += used

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints the slowest tests, and the processor time of the run.

        All processes of xdist have ended, and were waited for.
        """
        write = terminalreporter.write_line
        used = sorted(self._seconds.items(), key=lambda pair: -pair[1])
        terminalreporter.section("processor time")
        for test, seconds in used[:SHOWN]:
            write(f"{seconds:8.1f} s  {test}")
        write(f"{processor_seconds():8,.1f} s  all of {len(used)} tests")

"""The processor time that is printed is that of all processes of a run."""

import re

from tests.fresh_process import ROOT

BURN = "import time; s = time.process_time()\nwhile time.process_time() < s + {}: pass"  # noqa: E501
TESTS = f"""
import subprocess, sys, time
import pytest

@pytest.fixture(scope="module")
def slow():
    exec({BURN.format(0.4)!r})
    yield
    exec({BURN.format(1)!r})

def test_set_up(slow): pass
def test_child():
    subprocess.run([sys.executable, "-c", {BURN.format(0.6)!r}])
def test_waits(): time.sleep(0.5)
def test_fails():
    exec({BURN.format(0.2)!r})
    assert 0
"""
PYTEST = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
import pytest
from tests.kit.cost import Costs
sys.exit(pytest.main(sys.argv[1:], [Costs()]))
"""


def test_what_is_measured(fresh_process, tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    lines = fresh_process(
        PYTEST, "-q", "-p", "no:cacheprovider", folder=tmp_path, exit_code=1
    )
    found = re.findall(r" *([\d.]+) s  (?:\S+::)?(\S+)", "\n".join(lines))
    seconds = {name: float(value) for value, name in found}
    of_tests = [seconds[name] for name in seconds if name != "all"]
    assert len(of_tests) == 4 and of_tests == sorted(of_tests, reverse=True)
    assert 0.2 <= seconds["test_fails"] < 1  # without what ends with it
    assert 0.6 <= seconds["test_child"] and 0.4 <= seconds["test_set_up"]
    assert seconds["test_waits"] < 0.3
    assert seconds["all"] >= sum(of_tests) + 1
    assert "all of 4 tests" in "\n".join(lines)

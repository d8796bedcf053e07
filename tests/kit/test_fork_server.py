"""Forked processes: new, alone, and their failures are seen."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.fresh_process import ROOT


def test_a_process_has_no_state_of_a_test(fresh_process):
    """Nor of an earlier process; it can import what is here."""
    code = (
        "import os, sys\n"
        "print([n for n in sys.modules if n.startswith('keras_lstm_dssm')])\n"
        "print(len(os.listdir('/proc/self/task')), os.getcwd(), sys.argv[1:])\n"
        "import keras, tensorflow as tf, keras_lstm_dssm as dssm\n"
        "print(keras.config.floatx(), dssm.__file__)\n"
        "keras.config.set_floatx('float64')\n"
        "print(float(tf.reduce_sum(tf.ones([3]))), os.environ.get('HERE'))"
    )
    for _ in range(2):
        assert fresh_process(code, "a b", 3) == [
            "[]",
            f"1 {ROOT} ['a b', '3']",
            f"float32 {ROOT}/keras_lstm_dssm/__init__.py",
            "3.0 None",
        ]
    with fresh_process.start(code, environment={"HERE": "x"}) as process:
        assert process.communicate()[0].endswith("3.0 x\n")


def test_a_failure_is_seen(fresh_process, tmp_path):
    with pytest.raises(AssertionError, match="ValueError: broken"):
        fresh_process("raise ValueError('broken')")
    with pytest.raises(AssertionError, match="SyntaxError"):
        fresh_process("no code")
    with pytest.raises(AssertionError):
        fresh_process("print(1)", exit_code=1)
    assert fresh_process("print(1)", folder=tmp_path) == ["1"]
    for end, exit_code in (
        ("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('no')", 1),
        ("os._exit(9)", 9), ("os.abort()", -6),
    ):  # fmt: skip
        fresh_process(f"import os, sys; {end}", exit_code=exit_code)


def test_it_can_be_watched_and_killed(fresh_process):
    code = "import time; print('begun', flush=True); time.sleep(60)"
    start = time.monotonic()
    with fresh_process.start(code) as process:
        assert process.stdout.readline() == "begun\n"
        assert process.poll() is process.returncode is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert Path(f"/proc/{process.pid}").exists()
        # Others are served meanwhile.
        assert fresh_process("print(2)") == ["2"]
        process.kill()
        assert process.communicate() == ("", "")
    assert process.returncode == -9
    assert time.monotonic() - start < 50
    with pytest.raises(ZeroDivisionError):
        with fresh_process.start(code) as process:
            1 / 0  # noqa: B018  (a test that fails leaves no process)
    assert process.returncode == -9


def test_large_outputs_do_not_wait_for_one_another(fresh_process):
    code = "import sys; [print('x' * 999, file=f) for f in (sys.stderr, sys.stdout) for _ in range(999)]"  # noqa: E501
    with fresh_process.start(code) as process:
        printed, errors = process.communicate()
    assert printed == errors == f"{'x' * 999}\n" * 999


def test_a_program(fresh_process):
    """As from a shell: its exit code, its line, nothing else."""
    with fresh_process.program("train", "--epochs=x") as process:
        printed, errors = process.communicate()
    assert process.returncode == 1
    assert "--epochs" in errors and errors.count("\n") == 1, errors
    assert printed == ""


def test_descriptors_do_not_pile_up(fresh_process):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        fresh_process("")
    assert len(os.listdir("/proc/self/fd")) == before

"""The programs start without TensorFlow's notes, and hide nothing else."""

import os
import re
import subprocess
import sys

import pytest

import lstm_dssm_programs

TENSORFLOW = """
import os
os.write(2, b"I0000 00:00:1 port.cc:153] oneDNN custom operations are on.\\n")
os.write(2, b"F0000 00:00:1 cpu.cc:1] AVX is not supported\\n")
{end}
"""


def inherited() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name != "TF_CPP_MIN_LOG_LEVEL"
    }


def start(
    *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lstm_dssm_programs", *arguments],
        env={**inherited(), **environment},
        capture_output=True,
        text=True,
    )


def test_one_line_and_no_notes():
    done = start("train", "--data=api")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --output is missing: Folder of the run.\n"


PARSE = """
import sys, lstm_dssm_programs

def imported(name, flag):
    sys.argv = [f"lstm-dssm-{name}", flag]
    code = lstm_dssm_programs.start(name)
    large = {"tensorflow", "keras", "numpy", "google"} & set(sys.modules)
    return code, large

for name in sys.argv[1:]:
    assert imported(name, "--help") == (0, set()), name
    assert imported(name, "--steel") == (1, set()), name
"""


def test_flags_are_parsed_without_tensorflow():
    names = lstm_dssm_programs.program_names()
    assert {"train", "query", "table_iv", "demo"} < set(names)
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *names], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for name in names:  # the help has an example
        assert re.search(
            rf"^ .*(lstm-dssm-|programs ){name} ", done.stdout, re.M
        )
    unknown = "error: Unknown command line flag 'steel'"
    errors = done.stderr.splitlines()
    assert len(errors) == len(names)
    assert all(line.startswith(unknown) for line in errors)


WORK = """
import sys, lstm_dssm_programs
assert lstm_dssm_programs.start("split") == 0
import keras
assert keras.saving.get_registered_object("keras_lstm_dssm>TwoTower")
import gc
assert gc.isenabled() and gc.get_freeze_count() > 100_000
print({"jax", "matplotlib", "pandas", "sklearn"} & set(sys.modules))
import pandas
"""


def test_the_work_has_all_of_the_package_and_no_more(tmp_path):
    clicks = tmp_path / "clicks.tsv"
    lines = [f"bolt {number}\thex bolt {number}\n" for number in range(60)]
    clicks.write_text("".join(lines))
    flags = [f"--data={clicks}", f"--output={tmp_path / 'split'}"]
    done = subprocess.run(
        [sys.executable, "-c", WORK, *flags],
        env=inherited(),
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("set()\n"), done.stderr
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("end", "code"), [("os.abort()", -6), ("raise ImportError('no')", 1)]
)
def test_a_fatal_start_of_tensorflow_is_shown(end, code, tmp_path):
    """Shows TensorFlow's last message even if it ends the process."""
    (tmp_path / "tensorflow.py").write_text(TENSORFLOW.format(end=end))
    done = start("train", "--output=run", PYTHONPATH=str(tmp_path))
    assert done.returncode == code
    lines = done.stderr.splitlines()
    assert lines[0] == "F0000 00:00:1 cpu.cc:1] AVX is not supported"
    assert lines[1:] == (["error: no"] if code == 1 else [])
    environment = {"PYTHONPATH": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "0"}
    shown = start("train", "--output=run", **environment)
    assert shown.stderr.startswith("I0000")


def test_a_received_function_is_imported_without_notes(tmp_path):
    """Hides the notes of the function's import, and none of its own."""
    shout = "def shout(end): os.write(2, b'I0000 x')"
    (tmp_path / "noisy.py").write_text(TENSORFLOW.format(end=shout))
    (tmp_path / "parent.py").write_text(
        "import lstm_dssm_programs, multiprocessing\n"
        "class Function:\n"
        "    def __reduce__(self):\n"
        "        return __import__, ('noisy',)\n"
        "here, there = multiprocessing.Pipe()\n"
        "here.send(Function())\n"
        "try:\n"
        "    lstm_dssm_programs.call_received(there)\n"
        "except TypeError:\n"  # a module is no function
        "    import noisy\n"
        "    noisy.shout(there)\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "parent.py")],
        env={**inherited(), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    lines = done.stderr.splitlines()
    assert lines == ["F0000 00:00:1 cpu.cc:1] AVX is not supported", "I0000 x"]


def test_another_backend_is_one_line():
    done = start("train", "--output=run", KERAS_BACKEND="jax")
    assert done.returncode == 1
    assert done.stderr.startswith("error: keras_lstm_dssm needs Keras on Tens")
    assert done.stderr.count("\n") == 1


def test_an_unknown_program(capsys):
    assert lstm_dssm_programs.start("dance") == 1
    error = capsys.readouterr().err
    assert error.startswith("error: found no program 'dance', expected one of ")
    assert error.endswith(", teach, train\n") and error.count("\n") == 1
    with pytest.raises(AttributeError):
        lstm_dssm_programs.__getattr__("__path__")

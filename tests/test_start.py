"""Programs and `import keras_lstm_dssm`: what they start with, and change."""

import importlib.util
import multiprocessing
import os
import platform
import re
import resource
import subprocess
import sys
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import lstm_dssm_programs
import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_retriever
from keras_lstm_dssm.tensorflow_start import (
    usable_cores,
    use_one_intra_op_thread,
)

ROOT = Path(__file__).parents[1]

NOT_INHERITED = {
    "TF_CPP_MIN_LOG_LEVEL", "KERAS_BACKEND", "TF_ENABLE_ONEDNN_OPTS"
}  # fmt: skip


def python(
    *words: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
    return subprocess.run(
        [sys.executable, *map(str, words)], env={**kept, **environment},
        capture_output=True, text=True,
    )  # fmt: skip


def start(
    name: str, *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return python(ROOT / "tools" / f"{name}.py", *words, **environment)


def test_one_line_and_no_notes():
    done = start("train", "--data=api")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --output is missing: Folder of the run.\n"


PARSE = """
import sys, lstm_dssm_programs

def imported(name, flag):
    sys.argv = [f"lstm-dssm-{name}", flag]
    try:
        getattr(lstm_dssm_programs, name)()
    except SystemExit as end:
        large = {"tensorflow", "keras", "numpy", "google"} & set(sys.modules)
        return end.code, large

for name in lstm_dssm_programs.PROGRAMS:
    assert imported(name, "--help") == (0, set()), name
    assert imported(name, "--steel") == (1, set()), name
"""


def test_flags_are_parsed_without_tensorflow():
    names = [*lstm_dssm_programs.PROGRAMS]
    assert {"train", "search", "table", "demo"} < set(names)
    done = python("-c", PARSE)
    assert done.returncode == 0, done.stderr
    for name in names:  # the help has an example
        example = rf"^ .*(lstm-dssm-{name}|tools/{name}.py) "
        assert re.search(example, done.stdout, re.M)
    unknown = "error: --steel is no flag"
    errors = done.stderr.splitlines()
    assert len(errors) == len(names)
    assert all(line.startswith(unknown) for line in errors)


def test_each_module_with_a_main_is_a_program_that_is_installed():
    files = {
        f"keras_lstm_dssm.tools.{path.stem}"
        for path in (ROOT / "tools").glob("*.py")
        if "app.run(main" in path.read_text()
    }
    assert files == {*lstm_dssm_programs.PROGRAMS.values()}
    text = (ROOT / "pyproject.toml").read_text()
    lines = re.findall(r'^(lstm-dssm-\w+) = "(.*)"$', text, re.M)
    assert dict(lines) == {
        f"lstm-dssm-{name}": f"lstm_dssm_programs:{name}"
        for name in lstm_dssm_programs.PROGRAMS
        if name != "demo"  # `make demo`, in a clone
    }


@pytest.mark.parametrize("words", [["tools/train.py"], ["-m", "benchmarks"]])
def test_help_is_answered_at_once(words):
    """Without TensorFlow, whose import takes three seconds of a processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words, "--help"], cwd=ROOT, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, b"")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used < 1, used  # 0.1 s where no coverage is measured


WORK = """
import sys, lstm_dssm_programs
try:
    lstm_dssm_programs.prepare()
except SystemExit as end:
    assert end.code == 0
import keras
assert keras.saving.get_registered_object("keras_lstm_dssm>TwoTower")
import gc
assert gc.isenabled() and gc.get_freeze_count() > 100_000
print({"gensim", "torch"} & set(sys.modules))
"""


def test_the_work_has_all_of_the_package_and_no_more(tmp_path):
    clicks = tmp_path / "clicks.tsv"
    lines = [f"bolt {number}\thex bolt {number}\n" for number in range(60)]
    clicks.write_text("".join(lines))
    done = python(
        "-c",
        WORK,
        f"--clicks={clicks}",
        "--dev_percent=20",
        f"--output={tmp_path / 'SHOP'}",
    )
    assert done.stdout.endswith("set()\n"), done.stderr
    assert (done.returncode, done.stderr) == (0, "")


LAZY = """
import sys, lstm_dssm_programs
import keras_lstm_dssm as dssm
from keras_lstm_dssm import settings
from keras_lstm_dssm.settings.recipes import Recipe
assert not hasattr(dssm, "_name") and dssm.__version__
assert "tensorflow" not in sys.modules
assert dssm.Recipe is Recipe and "TwoTower" in dir(dssm)
assert {*dssm.__all__} <= {*vars(dssm)}
import keras
assert keras.saving.get_registered_object("keras_lstm_dssm>TwoTower")
print(hasattr(dssm, "Nothing"))
"""


def test_a_program_by_its_name():
    done = python("-m", "lstm_dssm_programs", "search", "--version")
    assert done.stdout.split()[-1] == dssm.__version__, done.stderr
    done = python("-m", "lstm_dssm_programs", "find")
    assert done.stderr.startswith("error: expected the name of a program: ['an")


def test_a_program_has_the_public_names_when_it_reads_one():
    done = python("-c", LAZY)
    assert done.stdout == "False\n", done.stderr


# The package sets the variable on these processors only.
IS_X86 = platform.machine() in ("x86_64", "AMD64")
KERNELS = """
from tensorflow.python.util import _pywrap_util_port
print(os.environ["TF_ENABLE_ONEDNN_OPTS"], _pywrap_util_port.IsMklEnabled())
"""

LOAD = """
import os, sys
import keras_lstm_dssm as dssm
import keras, tensorflow as tf
print(type(keras.saving.load_model(sys.argv[1])).__name__)
print(*tf.saved_model.load(sys.argv[2]).signatures)
"""


def test_an_import_alone_loads_saved_models(tmp_path):
    """Keras's classes are registered, and the operations of TF.Text.

    TensorFlow uses oneDNN, unless TF_ENABLE_ONEDNN_OPTS is set to 0.
    """
    model = dssm.build_model("dssm")
    model.save(tmp_path / "model.keras")
    folder = export_retriever(
        *model.towers, ["a"], ["hex bolt"], tmp_path / "retriever"
    )
    code = LOAD + KERNELS * IS_X86
    done = python("-c", code, tmp_path / "model.keras", folder)
    expected = ["TwoTower", "serving_default", *["1 True"] * IS_X86]
    assert done.stdout.splitlines() == expected, done.stderr


TENSORFLOW = """
import os
os.write(2, b"I0000 00:00:1 port.cc:153] oneDNN custom operations are on.\\n")
os.write(2, b"F0000 00:00:1 cpu.cc:1] AVX is not supported\\n")
{end}
"""


@pytest.mark.parametrize(
    ("end", "code"), [("os.abort()", -6), ("raise ImportError('no')", 1)]
)
def test_a_fatal_start_of_tensorflow_is_shown(end, code, tmp_path):
    """A stop of the process, too, is told where it happened, and then why."""
    (tmp_path / "tensorflow.py").write_text(TENSORFLOW.format(end=end))
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = start("train", "--output=run", **path)
    assert done.returncode == code
    if code == 1:
        shown = "F0000 00:00:1 cpu.cc:1] AVX is not supported\nerror: no\n"
        assert done.stderr == shown
    else:
        assert done.stderr.startswith("Fatal Python error: Aborted\n")
        assert f'File "{tmp_path}/tensorflow.py", line 5' in done.stderr
    shown = start("train", "--output=run", **path, TF_CPP_MIN_LOG_LEVEL="0")
    assert shown.stderr.startswith("I0000")
    assert "\nF0000 00:00:1 cpu.cc:1] AVX" in shown.stderr


def test_a_function_is_called_in_a_process_without_notes():
    """The function is a method, whose object is sent, too."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(
        target=lstm_dssm_programs.call_received, args=(there,)
    )
    process.start()
    here.send(partial(Connection.send, obj="called"))
    assert here.recv() == "called"
    process.join()
    assert process.exitcode == 0


def test_another_backend_is_one_line(tmp_path):
    """In the environment of a program, and in Keras's file."""
    message = (
        "keras_lstm_dssm needs Keras on TensorFlow, found the backend jax: "
        "set KERAS_BACKEND=tensorflow before Keras is imported\n"
    )
    done = start("train", "--output=run", KERAS_BACKEND="jax")
    assert (done.returncode, done.stderr) == (1, f"error: {message}")
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    code = "try:\n import keras_lstm_dssm\nexcept ImportError as e:\n print(e)"
    done = python("-c", code, KERAS_HOME=str(tmp_path))
    assert done.stdout == message, done.stderr


def test_the_variable_that_asks_for_a_missing_tf_keras_is_named():
    assert importlib.util.find_spec("tf_keras") is None
    done = start("train", "--output=run", TF_USE_LEGACY_KERAS="1")
    assert (done.returncode, done.stderr) == (
        1,
        "error: TF_USE_LEGACY_KERAS is set, so TensorFlow imports tf-keras,"
        " which is not installed: unset the variable\n",
    )


RAY = """
import os, sys, types
sys.modules["ray.train"] = types.ModuleType("ray.train")
import keras_lstm_dssm
print("TF_USE_LEGACY_KERAS" in os.environ)
"""


def test_ray_asks_its_workers_for_tf_keras_in_vain():
    """`ray.train` alone does not: a driver has no TF_CONFIG.

    In this process oneDNN is off, too.
    """
    driver = {"TF_USE_LEGACY_KERAS": "1"}
    worker = {**driver, "TF_CONFIG": "{}", "TF_ENABLE_ONEDNN_OPTS": "0"}
    assert python("-c", RAY + KERNELS, **worker).stdout == "False\n0 False\n"
    assert "unset the variable" in python("-c", RAY, **driver).stderr


STATE = """
import os, signal, sys, warnings
import tensorflow, tensorflow_text, keras
import numpy as np, logging

def state():
    random = np.random.get_state()[1]
    return {
        "environment": dict(os.environ),
        "descriptors": {
            number: os.readlink(f"/proc/self/fd/{number}")
            for number in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{number}")
        },
        "signals": [signal.getsignal(n) for n in signal.valid_signals()],
        "warnings": list(warnings.filters),
        "random": random.tolist(),
        "streams": (sys.stdout, sys.stderr, sys.stdin, sys.excepthook),
        "levels": (logging.root.level, logging.getLogger("absl").level),
        "handlers": list(logging.root.handlers),
        "float": keras.config.floatx(),
        "folder": os.getcwd(),
    }

before = state()
import keras_lstm_dssm
after = state()
for name in before:
    assert before[name] == after[name], (name, before[name], after[name])
print("same")
"""


def test_an_import_leaves_the_process_as_it_is():
    done = python("-c", STATE)
    assert done.stdout == "same\n", done.stderr


@pytest.mark.parametrize(
    ("cores", "before", "after"), [(2, "", "1"), (2, "2", "2"), (3, "", None)]
)
def test_threads_of_an_operation(monkeypatch, cores, before, after):
    name = "TF_NUM_INTRAOP_THREADS"
    monkeypatch.setattr(os, "environ", {name: before} if before else {})
    usable = set(range(cores))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable, False)
    use_one_intra_op_thread()
    assert os.environ.get(name) == after


def test_cores_of_the_process_or_else_of_the_machine(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 6}, False)
    assert usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1

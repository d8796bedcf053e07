"""RunFolder: the files of a run, and models that others may have sent."""

import json
import os
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import plain_files, run_folder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.run_folder import RunFolder, check_resumable


def test_a_folder_without_what_is_asked_for(tmp_path):
    run = RunFolder(tmp_path)
    for load, message in (
        (run.load_model, "no model here"),
        (run.load_checkpoint, "nothing to resume"),
        (run.read_config, "no run here"),
    ):
        with pytest.raises(InputError, match=message):
            load()
    run.config.write_text("{}")  # of a run that was killed
    with pytest.raises(InputError, match=f"--output={tmp_path} --resume"):
        run.load_model()
    run.model.write_text("not a model")
    with pytest.raises(InputError, match=r"model\.keras: not a model"):
        run.load_model()


@pytest.mark.parametrize(("version", "oldest"), [
    ("0.1.0", plain_files.OLDEST), ("0.2.0", plain_files.OLDEST),
    ("0.3.0.dev0", "0.3.0.dev1"),
])  # fmt: skip
def test_a_run_of_an_earlier_version_is_refused(
    tmp_path, version, oldest, monkeypatch
):
    """Before its model is read, of which an argument may have a new default."""
    monkeypatch.setattr(plain_files, "OLDEST", oldest)
    run = RunFolder(tmp_path)
    run.checkpoint.parent.mkdir()
    for path in (run.model, run.checkpoint):
        path.write_text("not a model")
    write_json(run.config, {"version": version, "recipe": {}})
    for read in (
        run.read_config, run.load_model, run.load_checkpoint,
        lambda: dssm.resume(tmp_path), lambda: check_resumable(tmp_path),
    ):  # fmt: skip
        with pytest.raises(InputError) as error:
            read()
        assert str(error.value) == (
            f"{run.config}: written by an earlier development version; train"
            " again"
        )


@pytest.mark.parametrize("config", [
    {}, {"version": dssm.__version__}, {"version": "0.3.0"},
    {"version": "0.10.0"}, {"version": "main"}, {"version": 0.1},
    {"version": None},
], ids=str)  # fmt: skip
def test_other_versions_are_read(tmp_path, config):
    run = RunFolder(tmp_path)
    write_json(run.config, config)
    assert run.read_config() == config


@pytest.mark.parametrize("content", [
    "loss\n0.5\n",
    "epoch,updates,loss\none,2,0.5\n",
    "epoch,updates,loss\n1,2\n",
    "epoch,updates,loss\n1,2,0.5,0.6\n",
    "\udcff",
])  # fmt: skip
def test_a_damaged_history_is_named(tmp_path, content):
    run = RunFolder(tmp_path)
    assert run.read_history() == []
    text = "epoch,updates,loss\n1,2,0.5\n"
    run.history.write_text(text)
    assert run.read_history() == [{"epoch": 1, "updates": 2, "loss": 0.5}]
    run.history.write_text(content, errors="surrogateescape")
    with pytest.raises(InputError, match=r"history.csv: cannot .*: restore"):
        run.read_history()


def test_metrics_keep_what_other_programs_wrote(tmp_path):
    run = RunFolder(tmp_path)
    run.add_metrics("dev", {"mrr@10": 0.5})
    run.add_metrics("test", {"mrr@10": 0.4})
    run.add_metrics("dev", {"mrr@10": 0.6})
    assert run.metrics.read_text().split() == (
        '{ "dev": { "mrr@10": 0.6 }, "test": { "mrr@10": 0.4 } }'.split()
    )


# JAX warns of it, where it is installed for the benchmarks.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_several_processes_add_metrics_at_once(tmp_path):
    run = RunFolder(tmp_path)
    children = []
    for child in range(4):
        pid = os.fork()
        if not pid:  # the child writes files, and runs nothing else
            code = 1
            try:
                for number in range(10):
                    run.add_metrics(f"{child}/{number}", {"p@1": number / 10})
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    assert json.loads(run.metrics.read_text()) == {
        f"{child}/{number}": {"p@1": number / 10}
        for child in range(4)
        for number in range(10)
    }


def test_files_that_other_programs_are_writing_stay(tmp_path):
    run = RunFolder(tmp_path)
    run.checkpoint.parent.mkdir()
    ours = [
        ".partial-7-model.keras", ".partial-7-config.json",
        ".partial-7-title_pairs.tsv", "checkpoints/.partial-7-last.keras",
        ".partial-7-history.csv",
    ]  # fmt: skip
    theirs = [
        ".partial-8-metrics.json", ".partial-8-run.trec", ".partial-8-vectors",
        ".partial-8-report.html",
    ]  # fmt: skip
    for name in ours + theirs:
        (tmp_path / name).touch()
    with run.locked():
        pass
    assert not any((tmp_path / name).exists() for name in ours)
    assert all((tmp_path / name).exists() for name in theirs)


def test_files_that_unpack_to_too_much(tmp_path, monkeypatch):
    """A file is refused before it fills the memory."""
    monkeypatch.setattr("keras_lstm_dssm.plain_files._UNPACKED_BYTES", 1 << 16)
    run = RunFolder(tmp_path)
    with zipfile.ZipFile(run.model, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * (1 << 22))
    with pytest.raises(InputError, match=r"keras: .* that unpacks to 4,096 KB"):
        run.load_model()


ADD_WEIGHT = keras.layers.Layer.add_weight
LARGE = (1, 1 << 21)  # of more numbers than the smallest that are compared


def build_large() -> tuple[int, ...]:
    layer = keras.layers.Dense(LARGE[1], use_bias=False)
    layer.build((None, LARGE[0]))
    return tuple(layer.kernel.shape)


@pytest.fixture
def path(tmp_path) -> Path:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.save(tmp_path / "small.keras")
    return tmp_path / "small.keras"


def test_another_thread_builds_what_it_likes(path):
    checks = run_folder._memory_checked(path)
    with ThreadPoolExecutor(1) as other, checks:
        assert other.submit(build_large).result() == LARGE
        with pytest.raises(InputError, match="weight of shape .1, 2097152"):
            build_large()
    assert keras.layers.Layer.add_weight is ADD_WEIGHT


def test_threads_load_one_after_the_other(path):
    """The second one's check would end with the first one, and then stay."""
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with run_folder._memory_checked(path):
            inside.set()
            assert leave.wait(30)

    with ThreadPoolExecutor(2) as others:
        waiting = [others.submit(first)]
        assert inside.wait(30)
        waiting.append(others.submit(run_folder.load_safely, path))
        assert not waiting[1].done()
        leave.set()
        model = [each.result(30) for each in waiting][1]
    assert np.shape(model.layers[0].kernel) == (3, 2)
    assert keras.layers.Layer.add_weight is ADD_WEIGHT

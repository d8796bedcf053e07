"""lstm-dssm-train as a user runs it.

What it refuses is in `test_refusals.py` and `training/test_wrong_input.py`.
"""

import json
import shutil
from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import train
from tests.kit.equal import check_equal
from tests.training.small_trainings import QUICK

STOPPED_AT = 18
WAITING = f"""
import time
import keras_lstm_dssm as dssm
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.optimizers.nesterov_momentum import (NesterovSchedule)

dssm.PRESETS["dssm"] = dssm.Recipe("DSSMEncoder", {QUICK.encoder_config})

def wait(callback, batch, logs=None):
    if callback.model.optimizer.iterations == {STOPPED_AT}:
        print("waiting", flush=True)
        time.sleep(600)

NesterovSchedule.on_train_batch_end = wait
import sys
raise SystemExit(train.program.run(sys.argv))
"""


def run(*arguments: str) -> int:
    return train.program.run(["lstm-dssm-train", *arguments])


@pytest.fixture(autouse=True)
def quick_preset(monkeypatch) -> None:
    """Makes the preset `dssm` quick to train."""
    monkeypatch.setitem(dssm.PRESETS, "dssm", QUICK)


def test_run_folder_has_all_that_is_promised(trained_run):
    config = json.loads((trained_run / "config.json").read_text())
    recipe = dssm.Recipe.from_dict(config["recipe"])
    assert recipe == dssm.PRESETS["lstm_32"].replace(epochs=3, batch_size=16)
    assert config["version"] == dssm.__version__
    rows = RunFolder(trained_run).read_history()
    # 120 clicks in batches of 16 are 8 updates an epoch.
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert [row["updates"] for row in rows] == [8, 16, 24]
    assert rows[-1]["loss"] < rows[0]["loss"]
    metrics = json.loads((trained_run / "metrics.json").read_text())["train"]
    assert metrics == rows[-1]
    assert (config["pairs"], config["bad_lines"]) == (120, 0)
    assert list((trained_run / "logs").rglob("events.out.tfevents.*"))
    assert (trained_run / "checkpoints" / "last.keras").exists()
    names = {path.name for path in trained_run.rglob("*")}
    assert not [name for name in names if "partial" in name]


def test_the_next_command_evaluates_where_there_is_a_test_split(
    trained_run, collection_folder
):
    assert train.next_command(RunFolder(trained_run)) == (
        f"lstm-dssm-evaluate --run={trained_run} --data={collection_folder}"
    )


def test_bad_lines_are_skipped_and_reported(tmp_path, capsys, eager):
    lines = [f"query {i}\ttitle {i % 5}".encode() for i in range(40)]
    lines[7:7] = [b"no tab", b"a\tb\tc"]
    lines[30:30] = [b"no tab either", b"caf\xe9\tLatin-1"]
    log, folder = tmp_path / "clicks.tsv", tmp_path / "run"
    log.write_bytes(b"\n".join(lines))
    code = run(
        f"--data={log}", f"--validation={log}", "--preset=dssm", "--epochs=1",
        "--max_bad_lines=4", f"--output={folder}",
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert "kept the last epoch, 1: no dev to choose an epoch by" in out
    assert out.endswith(
        f"next: lstm-dssm-export --run={folder} --output=MODELS\n"
    )
    metrics = json.loads((folder / "metrics.json").read_text())
    for name in ("data", "validation"):
        line = "skipped bad lines: no tab: 2, 2 tabs: 1, invalid UTF-8: 1\n"
        assert out.count(f"--{name}: {line}") == 1
        assert metrics[f"bad_lines/{name}"] == {
            "no tab": 2, "2 tabs": 1, "invalid UTF-8": 1
        }  # fmt: skip
    config = json.loads((folder / "config.json").read_text())
    assert (config["pairs"], config["bad_lines"]) == (40, 4)
    lines.remove(b"no tab")
    log.write_bytes(b"\n".join(lines))
    assert run("--resume", f"--output={folder}") == 1
    assert "found 40 pairs and 3 bad lines, expected the 40 and 4 that" in (
        capsys.readouterr().err
    )


def test_sigterm_in_an_epoch_leaves_a_run_that_goes_on(
    kinds_data, fresh_process
):
    flags = ["--data=clicks.tsv", "--preset=dssm", "--batch_size=2",
             "--epochs=3", "--output=run"]  # fmt: skip
    with fresh_process.start(WAITING, *flags, folder=kinds_data) as process:
        waiting = any(line == "waiting\n" for line in process.stdout)
        process.terminate()  # taken as ctrl-c
        _, errors = process.communicate(timeout=60)
    assert waiting, errors
    assert process.returncode == 130, errors
    assert errors.endswith(
        "run/model.keras is the model so far; to go on: lstm-dssm-train"
        " --output=run --resume\ninterrupted\n"
    )
    stopped = RunFolder("run").load_checkpoint()
    assert 12 < stopped.optimizer.iterations == STOPPED_AT < 24
    usable = dssm.load_run("run").query_encoder.encode(["usable"])
    assert usable.shape == (1, 3)
    assert run("--resume", "--output=run") == 0
    rows = RunFolder("run").read_history()
    assert [row["updates"] for row in rows] == [12, 24, 36]


# --- runs that `--resume` continues or refuses


@pytest.fixture
def copy(trained_run, tmp_path) -> Path:
    """Copies the trained run, so that a test may change it."""
    return shutil.copytree(trained_run, tmp_path / "run")


def resume(folder: Path, *flags: str) -> int:
    return run("--resume", f"--output={folder}", *flags)


def test_a_finished_run(copy, trained_run, tmp_path, capsys):
    out = tmp_path / "out.json"
    # Given again, the settings are those of the run; the model was lost.
    (copy / "model.keras").unlink()
    assert resume(copy, "--epochs=3", "--batch_size=16", f"--json={out}") == 0
    assert "already finished; to train longer, start anew in another" in (
        capsys.readouterr().out
    )
    metrics = RunFolder(trained_run).read_metrics()["train"]
    assert json.loads(out.read_text()) == metrics
    for name in ("history.csv", "config.json"):
        assert (copy / name).read_text() == (trained_run / name).read_text()
    before, after = dssm.load_run(trained_run), dssm.load_run(copy)
    check_equal(before, after)


@pytest.mark.parametrize(("preset", "found"), [
    ("lstm_64", "encoder_config={'cells': 32, 'oov_buckets': 0}, expected "
     "{'cells': 64, 'oov_buckets': 0}"),
    ("rnn_288", "encoder=LSTMEncoder, expected RNNEncoder"),
    ("mv_lstm_cosine", "matcher=None, expected MVLSTM"),
])  # fmt: skip
def test_another_network(trained_run, tmp_path, preset, found, refused):
    shutil.copy(trained_run / "config.json", tmp_path)
    message = f"--preset={preset}: the run in {tmp_path} was started with "
    code = resume(tmp_path, f"--preset={preset}")
    refused(code, f"{message}{found}; leave the flag out")


def test_a_start_that_failed_can_be_repeated(kinds_data, monkeypatch, eager):
    """A run that could not be saved does not block a new one."""
    flags = ["--data=clicks.tsv", "--preset=dssm", "--epochs=1", "--output=run"]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save", full)
        assert run(*flags) == 1
    assert run(*flags) == 0
    assert Path("run/model.keras").exists()


def test_a_run_is_left_alone_by_a_new_one(kinds_data, refused):
    """A new training writes nothing at all into the folder of a run."""
    Path("run").mkdir()
    Path("run/config.json").write_text("{}")
    refused(run("--data=judged", "--output=run"), "--resume")
    assert [path.name for path in Path("run").iterdir()] == ["config.json"]

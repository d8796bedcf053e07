"""lstm-dssm-train with several workers: what each of them is to do.

The trainings themselves are replaced here by functions that write a run's
figures; `tests/reliability/test_worker_faults.py` has real ones.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distributed import on_ray, worker
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import train


def run(output: Path, *flags: str) -> int:
    return train.run(["train", f"--output={output}", *flags])


def join(monkeypatch: pytest.MonkeyPatch, rank: int) -> None:
    """Makes this process one of two workers, as a launcher would."""
    config = {
        "cluster": {"worker": ["host0:1", "host1:1"]},
        "task": {"type": "worker", "index": rank},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


@pytest.mark.parametrize(("flag", "message"), [
    ("--preset=arc_i", "several workers train two towers only: leave the"),
    ("--workers=3", "--workers=3: found 2 workers in TF_CONFIG: leave the"),
    ("--ray_address=auto", "--ray_address and TF_CONFIG are both set"),
])  # fmt: skip
def test_what_a_worker_of_a_launcher_refuses(
    flag, message, tmp_path, refused, monkeypatch
):
    join(monkeypatch, 0)
    refused(run(tmp_path / "run", "--data=api", flag), message)


def test_ray_starts_the_workers(tmp_path, monkeypatch, capsys):
    given: dict[str, Any] = {}

    def train_on_ray(output: Path, config: Any, **options: Any) -> None:
        given.update(output=output, config=config, **options)
        RunFolder(output).add_metrics("train", {"loss": 0.5})

    monkeypatch.setattr(on_ray, "train_on_ray", train_on_ray)
    output, figures = tmp_path / "run", tmp_path / "figures.json"
    output.mkdir()
    code = run(
        output, "--workers=2", "--data=api", "--preset=dssm", "--epochs=4",
        "--worker_cpus=3", "--ray_address=auto", "--save_minutes=7",
        "--start_minutes=9", "--seed=5", f"--json={figures}",
    )  # fmt: skip
    assert code == 0
    config = given.pop("config")
    assert given == {
        "output": output, "workers": 2, "address": "auto", "cpus": 3,
        "save_minutes": 7, "start_minutes": 9,
    }  # fmt: skip
    assert config.recipe == dssm.PRESETS["dssm"].replace(epochs=4)
    assert (config.data, config.seed) == ("api", 5)
    printed = capsys.readouterr().out
    assert printed == f"wrote {RunFolder(output).model}\n"
    assert json.loads(figures.read_text()) == {"loss": 0.5}


@pytest.mark.parametrize(("rank", "epochs"), [(0, 0), (0, 1), (1, 1)])
def test_a_worker_goes_on_and_the_first_one_reports(
    rank, epochs, trained_run, tmp_path, monkeypatch, capsys, refused
):
    """Resumes a run that has ended, and one that lacks an epoch.

    The training is replaced by a function that writes the epochs' lines.
    """
    given: dict[str, Any] = {}

    def train_worker(output: Path, config: Any, **options: Any) -> None:
        given.update(config=config, **options)
        with RunFolder(output).history.open("a") as file:
            file.writelines(last_line for _ in range(epochs))

    monkeypatch.setattr(worker, "train_worker", train_worker)
    join(monkeypatch, rank)
    output = shutil.copytree(trained_run, tmp_path / "run")
    last_line = RunFolder(output).history.read_text().splitlines(True)[-1]
    code = run(output, "--resume", "--batch_size=17")
    refused(code, "--batch_size=17: the run in")
    assert run(output, "--resume", "--worker_cpus=3") == 0
    assert (given["config"], given["threads"]) == (None, 3)
    printed = capsys.readouterr().out
    if rank:
        assert printed == ""
    elif epochs:
        assert printed == f"wrote {RunFolder(output).model}\n"
    else:
        assert printed.startswith(f"{output}: already finished; to train lon")

"""lstm-dssm-train with several workers: what Ray is to start.

The trainings themselves are replaced here by functions that write a run's
figures; `tests/reliability/test_worker_faults.py` has real ones.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distributed import on_ray
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import train


def run(output: Path, *flags: str) -> int:
    return train.program.run(["train", f"--output={output}", *flags])


def test_ray_starts_the_workers(tmp_path, monkeypatch, capsys):
    given: dict[str, Any] = {}

    def train_on_ray(output: Path, config: Any, **options: Any) -> None:
        given.update(output=output, config=config, **options)
        RunFolder(output).add_metrics("train", {"loss": 0.5})

    monkeypatch.setattr(on_ray, "train_on_ray", train_on_ray)
    monkeypatch.setattr(train, "next_command", lambda run: "evaluate")
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
    assert printed == f"wrote {RunFolder(output).model}\nnext: evaluate\n"
    assert json.loads(figures.read_text()) == {"loss": 0.5}


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_run_goes_on(
    epochs, trained_run, tmp_path, monkeypatch, capsys, refused
):
    """Resumes a run that has ended, and one that lacks an epoch.

    The training is replaced by a function that writes the epochs' lines.
    """
    given: dict[str, Any] = {}

    def train_on_ray(output: Path, config: Any, **options: Any) -> None:
        given.update(config=config, **options)
        with RunFolder(output).history.open("a") as file:
            file.writelines(last_line for _ in range(epochs))

    monkeypatch.setattr(on_ray, "train_on_ray", train_on_ray)
    output = shutil.copytree(trained_run, tmp_path / "run")
    last_line = RunFolder(output).history.read_text().splitlines(True)[-1]
    flags = ("--workers=2", "--resume")
    code = run(output, *flags, "--batch_size=17")
    refused(code, "--batch_size=17: the run in")
    assert run(output, *flags, "--worker_cpus=3") == 0
    assert (given["config"], given["cpus"]) == (None, 3)
    printed = capsys.readouterr().out
    if epochs:
        wrote, following = printed.splitlines()
        assert wrote == f"wrote {RunFolder(output).model}"
        assert following.startswith(f"next: lstm-dssm-evaluate --run={output}")
    else:
        assert printed.startswith(f"{output}: already finished; to train lon")


@pytest.mark.parametrize(("changes", "lost", "message"), [
    ({"workers": 3}, "", "found a run of 3 workers, not 2: give --workers=3"),
    ({"workers": 2}, "seed", "(no 'seed'); expected the settings of a run"),
])  # fmt: skip
def test_a_run_that_cannot_go_on(
    changes, lost, message, trained_run, tmp_path, refused, monkeypatch
):
    """Ray is not started."""
    monkeypatch.setattr(on_ray, "import_optional", lambda *_: None)
    output = shutil.copytree(trained_run, tmp_path / "run")
    stored = {**RunFolder(output).read_config(), **changes}
    stored.pop(lost, None)
    write_json(RunFolder(output).config, stored)
    refused(run(output, "--workers=2", "--resume"), message)

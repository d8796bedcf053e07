"""The training step under `tf.distribute`: two replicas on two CPUs."""

import json
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("two_replicas.py")


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, float]]:
    finished = subprocess.run(
        [sys.executable, PROGRAM], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.mark.parametrize("run", ["plain", "renormalised"])
def test_two_replicas_take_the_steps_of_one(
    results: dict[str, dict[str, float]], run: str
) -> None:
    """Gradients are summed over the replicas before they are renormalised."""
    found = results[run]
    assert found["change"] > 0.01
    assert found["difference"] < 1e-5 * max(found["change"], 1)
    assert found["disagreement"] == 0
    assert found["loss"] == pytest.approx(found["alone_loss"], rel=1e-5)


def test_steps_run_without_fit(results: dict[str, dict[str, float]]) -> None:
    found = results["by_hand"]
    assert found["steps"] == 18
    assert found["disagreement"] == 0
    assert found["last"] < found["first"]
    assert 0 < found["evaluated"] < found["first"]

"""The training steps of two real processes are those of one."""

import pathlib

import numpy as np
import pytest

from tests.distributed import joint_training
from tests.distributed.processes import cluster_environment, free_addresses
from tests.fresh_process import FreshProcesses

PROGRAM = (
    "import sys; from tests.distributed.joint_training import main;"
    " main(*sys.argv[1:])"
)

Results = list[dict[str, np.ndarray]]
"""Those of worker 0, of worker 1, and of one process alone."""


def train(
    fresh_process: FreshProcesses, folder: pathlib.Path, *names: str
) -> Results:
    """Trains recipes of `joint_training` in all three ways."""
    paths = [folder / f"{name}.npz" for name in ("first", "second", "alone")]
    addresses = free_addresses(2)
    processes = [
        fresh_process.start(
            PROGRAM, path, *names,
            environment=cluster_environment(addresses, rank),
        )
        for rank, path in enumerate(paths[:2])
    ]  # fmt: skip
    joint_training.main(str(paths[2]), *names)
    for process in processes:
        with process:
            errors = process.communicate()[1]
        assert process.returncode == 0, errors
    return [dict(np.load(path)) for path in paths]


@pytest.fixture(scope="module")
def results(fresh_process, tmp_path_factory) -> Results:
    folder = tmp_path_factory.mktemp("joint")
    return train(fresh_process, folder, "lstm", "best", "weighted", "corpus")


def check_equal(
    results: Results, name: str, sums: tuple[int, int] = (12, 9)
) -> None:
    first, second, alone = (
        {
            key.removeprefix(f"{name}/"): value
            for key, value in each.items()
            if key.startswith(f"{name}/")
        }
        for each in results
    )
    weights = [key for key in alone if key.startswith("weight")]
    assert len(weights) > 1 and alone["change"] > 0.01
    for key in weights:
        np.testing.assert_array_equal(first[key], second[key])
        np.testing.assert_allclose(first[key], alone[key], atol=1e-5, rtol=0)
    # Each worker's figures are those of its own 12 and 9 rows.
    for figure in ("loss", "accuracy"):
        mean = np.average([first[figure], second[figure]], weights=sums)
        assert mean == pytest.approx(alone[figure], rel=1e-4)


@pytest.mark.parametrize("name", ["lstm", "best", "corpus"])
def test_two_workers_train_as_one_process(name, results):
    """12 steps with changing momentum, unequal shares and common titles."""
    check_equal(results, name)


def test_weights_of_two_workers_are_clicks_repeated_in_one_process(results):
    """They have 78 and 153 of the weights, and 12 and 9 of the rows."""
    check_equal(results, "weighted", (78, 153))


@pytest.mark.parametrize("name", ["lstm", "best"])
def test_few_bytes_in_few_collectives(name, results):
    first, _, alone = results
    assert first[f"{name}/collectives"] == 4
    assert 0 < first[f"{name}/sent"] < alone[f"{name}/dense"] / 10


@pytest.mark.slow
def test_presets_and_tied_towers(fresh_process, tmp_path):
    names = ("tied", "lstm_96", "whole_best")
    results = train(fresh_process, tmp_path, *names)
    for name in names:
        check_equal(results, name)

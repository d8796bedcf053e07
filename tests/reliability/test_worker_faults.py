"""Several workers, of which some are killed, frozen, late or unlike.

Each worker is a process of its own, started by Ray, or with TF_CONFIG by the
test (`tests/distributed/worker_program.py`), which then starts lost ones again.
"""

import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

import keras_lstm_dssm
from keras_lstm_dssm.distributed.worker import STOP_FILE
from keras_lstm_dssm.run_folder import RunFolder
from tests.distributed.processes import (
    free_addresses,
    ray_processes,
    start_worker,
)
from tests.kit.flags import last_of_each
from tests.reliability.program import SETTINGS, TRAIN, write_log
from tests.reliability.test_kill import check_equal

pytestmark = pytest.mark.slow

OFTEN = "--save_minutes=0.02"
PROGRAM = (str(TRAIN),)
Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> pathlib.Path:
    return write_log(tmp_path_factory.mktemp("workers") / "clicks.tsv")


@pytest.fixture(scope="module")
def undisturbed(log) -> RunFolder:
    output = log.with_name("undisturbed")
    ends = [finish(each) for each in start(log, output, "--save_minutes=9")]
    assert [code for code, _ in ends] == [0, 0], ends
    return RunFolder(output)


def flags(log: pathlib.Path, output: pathlib.Path, *more: str) -> list[str]:
    """Returns flags of a training; `more` replace those of the same name."""
    return last_of_each(
        f"--data={log}", *SETTINGS, "--epochs=4", OFTEN, f"--output={output}",
        *more,
    )  # fmt: skip


def start(log: pathlib.Path, output: pathlib.Path, *more: str) -> list[Process]:
    addresses = free_addresses(2)
    command = flags(log, output, *more)
    return [start_worker(addresses, rank, *command) for rank in (0, 1)]


def finish(process: Process, seconds: float = 900) -> tuple[int, str]:
    """The exit code, and the lines of errors."""
    errors = process.communicate(timeout=seconds)[1]
    lines = [
        line
        for line in errors.splitlines()
        if line.startswith(("error:", "interrupted", "Traceback"))
    ]
    return process.returncode, "\n".join(lines)


def wait_for_training(run: RunFolder, process: Process) -> None:
    """Waits until a checkpoint of this start has been saved."""
    before = time.time()
    while not (
        run.checkpoint.exists() and run.checkpoint.stat().st_mtime > before
    ):
        assert process.poll() is None, finish(process)
        time.sleep(0.1)


def check_lost(end: tuple[int, str]) -> None:
    code, errors = end
    assert code == 1
    assert re.fullmatch("error: worker . .* does not answer .*", errors), errors


@pytest.mark.parametrize("killed", [0, 1])
def test_killed_twice(killed, log, undisturbed, tmp_path):
    """The same command goes on, to the same weights, bit for bit."""
    moments = random.Random(killed)
    run = RunFolder(tmp_path / "run")
    for _ in range(2):
        workers = start(log, run.path)
        wait_for_training(run, workers[0])
        time.sleep(moments.uniform(0, 2))
        workers[killed].kill()
        check_lost(finish(workers[1 - killed], 120))
        assert finish(workers[killed])[0] == -signal.SIGKILL
    assert [finish(each)[0] for each in start(log, run.path)] == [0, 0]
    check_equal(run, undisturbed)


def test_frozen(log, tmp_path):
    run = RunFolder(tmp_path / "run")
    workers = start(log, run.path, "--epochs=40")
    wait_for_training(run, workers[0])
    workers[1].send_signal(signal.SIGSTOP)
    try:
        check_lost(finish(workers[0], 120))
    finally:
        workers[1].kill()
        workers[1].communicate()


def test_a_stop_file(log, undisturbed, tmp_path):
    """All stop after the same step."""
    run = RunFolder(tmp_path / "run")
    workers = start(log, run.path)
    wait_for_training(run, workers[0])
    stop_file = run.path / STOP_FILE
    stop_file.touch()
    assert [finish(each) for each in workers] == [(130, "interrupted")] * 2
    assert run.model.exists()
    assert len(run.read_history()) < 4
    stop_file.unlink()
    assert [finish(each)[0] for each in start(log, run.path)] == [0, 0]
    check_equal(run, undisturbed)


def test_no_room_for_worker_0(log, tmp_path):
    run = RunFolder(tmp_path / "run")
    workers = start(log, run.path, "--epochs=40")
    wait_for_training(run, workers[0])
    limits = (1 << 16, resource.RLIM_INFINITY)
    resource.prlimit(workers[0].pid, resource.RLIMIT_FSIZE, limits)
    code, errors = finish(workers[0])
    assert code == 1 and errors.count("\n") == 0
    assert str(run.checkpoint) in errors
    check_lost(finish(workers[1], 120))
    assert run.load_checkpoint() is not None
    assert not list(run.path.rglob(".partial-*"))


def test_another_version(log, tmp_path):
    package = pathlib.Path(keras_lstm_dssm.__file__).parent
    copy = tmp_path / "other" / package.name
    shutil.copytree(package, copy)
    version = copy / "version.py"
    version.write_text(version.read_text().replace('"0.', '"99.'))
    addresses = free_addresses(2)
    command = flags(log, tmp_path / "run")
    workers = [
        start_worker(addresses, 0, *command),
        start_worker(addresses, 1, *command, folder=copy.parent),
    ]
    for code, errors in map(finish, workers):
        assert code == 1
        assert re.fullmatch(
            r"error: worker 1 .* has keras_lstm_dssm 99.*, worker 0 .* has "
            ".*: install the same packages on all workers",
            errors,
        ), errors


def start_on_ray(
    log: pathlib.Path, output: pathlib.Path, *more: str
) -> Process:
    return subprocess.Popen(
        [
            sys.executable,
            *PROGRAM,
            *flags(log, output, "--workers=2", "--worker_cpus=1", *more),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_cluster_without_room(log, tmp_path):
    room = ("--worker_cpus=999", "--start_minutes=1")
    code, errors = finish(start_on_ray(log, tmp_path / "run", *room))
    assert code == 1
    assert re.fullmatch(
        "error: found no room for 2 workers of 999 cores in the Ray cluster "
        "within 1 minutes .* cores are free.: give fewer --workers .*",
        errors,
    ), errors
    assert not RunFolder(tmp_path / "run").checkpoint.exists()


ONE_NEVER_CONNECTS = """
import sys, time
from keras_lstm_dssm.distributed import on_ray
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.training import TrainingConfig

work = on_ray._train_loop


def loop(arguments):
    import ray.train

    if ray.train.get_context().get_world_rank() == 1:
        time.sleep(9999)
    return work(arguments)


on_ray._train_loop = loop
try:
    on_ray.train_on_ray(
        sys.argv[2], TrainingConfig(sys.argv[1], "lstm_32"), workers=2, cpus=1,
        start_minutes=0.3, max_failures=1,
    )
except InputError as error:
    print(error)
"""


def test_one_never_connects(log, tmp_path):
    """TensorFlow would wait for it without end."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_NEVER_CONNECTS, log, tmp_path / "run"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.stdout == (
        "the workers failed too often: a worker did not answer for "
        "--start_minutes, or waited as long for another worker; remove the "
        "cause, and go on with --resume\n"
    ), done.stderr
    assert not RunFolder(tmp_path / "run").config.exists()


@pytest.mark.parametrize(("rank", "fault"), [
    (0, signal.SIGKILL), (1, signal.SIGKILL), (1, signal.SIGSTOP),
    (1, signal.SIGTERM),
])  # fmt: skip
def test_ray_starts_lost_workers_again(rank, fault, log, undisturbed, tmp_path):
    run = RunFolder(tmp_path / "run")
    driver = start_on_ray(log, run.path)
    wait_for_training(run, driver)
    workers = ray_processes(driver.pid, "RayTrainWorker")
    assert len(workers) == 2
    os.kill(workers[rank], fault)
    code, errors = finish(driver)
    assert code == 0, errors
    check_equal(run, undisturbed)


def test_the_driver_is_stopped_and_killed(log, undisturbed, tmp_path):
    run = RunFolder(tmp_path / "run")
    driver = start_on_ray(log, run.path)
    wait_for_training(run, driver)
    driver.send_signal(signal.SIGTERM)
    assert finish(driver) == (130, "interrupted")
    driver = start_on_ray(log, run.path, "--resume")
    wait_for_training(run, driver)
    driver.kill()
    driver.communicate()
    time.sleep(10)  # until Ray has noticed
    assert finish(start_on_ray(log, run.path, "--resume"))[0] == 0
    check_equal(run, undisturbed)

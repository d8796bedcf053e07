"""`ray_cluster` starts Ray, again if that fails, or raises one line."""

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from keras_lstm_dssm.distributed.on_ray import last_line, ray_cluster
from keras_lstm_dssm.errors import InputError


class FakeRay:
    """Stands for the module `ray`, whose `init` fails some times at first."""

    def __init__(
        self, failures: int, error: type[BaseException] = Exception
    ) -> None:
        self.failures = failures
        self.error = error("The node timed out\nduring startup")
        self.calls: list[dict[str, Any]] = []
        self.running = False

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: Any) -> None:
        self.calls.append(options)
        self.running = True
        if len(self.calls) <= self.failures:
            raise self.error

    def shutdown(self) -> None:
        self.running = False


@pytest.fixture(autouse=True)
def environment(monkeypatch) -> None:
    """Gives each test its own environment variables, and lets it not wait."""
    monkeypatch.setattr(os, "environ", {"RAY_worker_niceness": "3"})
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def test_a_slow_start_is_tried_again():
    ray: Any = FakeRay(failures=2)
    with ray_cluster(ray, None, num_cpus=3):
        assert ray.running
        with ray_cluster(ray, None):  # it runs already, and is left running
            pass
        assert ray.running
    assert not ray.running
    assert len(ray.calls) == 3
    assert ray.calls[0]["num_cpus"] == 3
    # Ray takes None for RAY_ADDRESS, or for a cluster of this machine.
    assert ray.calls[0]["address"] == "local"
    assert ray.calls[0]["include_dashboard"] is False
    assert os.environ["RAY_worker_niceness"] == "3"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.parametrize(("address", "message"), [
    (None, "Ray cannot be started here .The node timed out.: try again"),
    ("auto", "--ray_address=auto: found no Ray cluster .The node timed"),
    ("127.0.0.1:1", "--ray_address=127.0.0.1:1: nothing answers there"),
])  # fmt: skip
def test_one_line_without_ray(address, message):
    ray: Any = FakeRay(failures=99)
    with pytest.raises(InputError, match=message) as error:
        with ray_cluster(ray, address, minutes=0, num_cpus=3):
            pass
    assert "\n" not in str(error.value)
    assert all("num_cpus" not in call for call in ray.calls if address)


def test_ctrl_c_while_ray_starts_ends_it():
    ray: Any = FakeRay(failures=1, error=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        with ray_cluster(ray, None):
            pass
    assert len(ray.calls) == 1
    assert not ray.running


def test_causes_that_ray_names():
    errors = pytest.importorskip("ray.train.v2._internal.exceptions")
    no_room = errors.WorkerGroupStartupTimeoutError(num_workers=2)
    no_answer = errors.WorkerHealthCheckTimeoutError(
        "A worker health check has been hanging for 9.00 seconds. Marking the "
        "worker as dead.\nWorker info: Worker(...)"
    )
    traceback = "Traceback:\n  ...\nkeras_lstm_dssm.errors.InputError: no tab"
    assert [
        last_line(error)
        for error in (no_room, no_answer, Exception(traceback), ValueError())
    ] == [
        "found no room for all workers within --start_minutes",
        "a worker did not answer for --start_minutes, or waited as long for "
        "another worker",
        "no tab",
        "ValueError",
    ]


LISTENING = """
import json, os, pathlib
import ray
from keras_lstm_dssm.distributed.on_ray import ray_cluster


def sockets(pid):
    try:
        files = pathlib.Path(f"/proc/{pid}/fd").iterdir()
        links = [os.readlink(file) for file in files]
    except OSError:  # it has ended
        return set()
    return {l[8:-1] for l in links if l.startswith("socket:[")}


def parent(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def is_ours(pid):
    while pid > 1 and pid != os.getpid():
        pid = parent(pid)
    return pid == os.getpid()


with ray_cluster(ray, None, num_cpus=1):
    ray.get(ray.remote(lambda: 0).remote())
    pids = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*")]
    ours = set().union(*(sockets(pid) for pid in pids if is_ours(pid)))
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in open(f"/proc/net/{table}")
    ]
    rows = [row for row in rows if row[3] == "0A" and row[9] in ours]
    print(json.dumps([row[1].split(":")[0] for row in rows]))
"""


@pytest.mark.slow
def test_a_ray_that_is_started_here_listens_to_this_machine_only():
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, "-c", LISTENING], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    addresses = json.loads(done.stdout.splitlines()[-1])
    assert len(addresses) > 4
    assert {*addresses} <= {
        "0100007F",
        "0000000000000000FFFF00000100007F",
        "00000000000000000000000001000000",
    }

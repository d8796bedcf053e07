"""`ray_cluster`: Ray is started again if it fails, then ends in one line."""

import os
from typing import Any

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.workers.ray_cluster import ray_cluster


class FakeRay:
    """Stands for the module `ray`, whose `init` fails some times at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls: list[dict[str, Any]] = []
        self.running = False

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: Any) -> None:
        self.calls.append(options)
        if len(self.calls) <= self.failures:
            raise Exception("The node timed out\nduring startup")
        self.running = True

    def shutdown(self) -> None:
        self.running = False


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each test an environment of its own, which it may change."""
    monkeypatch.setattr(os, "environ", {"RAY_worker_niceness": "3"})


def test_a_slow_start_is_tried_again() -> None:
    ray: Any = FakeRay(failures=2)
    with ray_cluster(ray, None, num_cpus=3):
        assert ray.running
        with ray_cluster(ray, None):  # it runs already, and is left running
            pass
        assert ray.running
    assert not ray.running
    assert len(ray.calls) == 3
    assert ray.calls[0]["num_cpus"] == 3
    assert ray.calls[0]["include_dashboard"] is False
    assert os.environ["RAY_worker_niceness"] == "3"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (None, "Ray cannot be started here .The node timed out.: try again"),
        ("auto", "--ray_address=auto: found no Ray cluster .The node timed"),
        ("127.0.0.1:1", "--ray_address=127.0.0.1:1: nothing answers there"),
    ],
)
def test_one_line_without_ray(address: str | None, message: str) -> None:
    ray: Any = FakeRay(failures=99)
    with pytest.raises(InputError, match=message) as error:
        with ray_cluster(ray, address, minutes=0, num_cpus=3):
            pass
    assert "\n" not in str(error.value)
    assert all("num_cpus" not in call for call in ray.calls if address)

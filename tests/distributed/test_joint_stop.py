"""How several workers stop together: a signal, or a file in the run folder."""

import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from keras_lstm_dssm.distributed import worker
from keras_lstm_dssm.distributed.collectives import Cluster
from keras_lstm_dssm.distributed.joint_step import JointStep
from keras_lstm_dssm.distributed.on_ray import stop_by_signal
from keras_lstm_dssm.distributed.worker import (
    Stopped,
    StopTogether,
)


@pytest.fixture
def joint_step() -> JointStep:
    workers: Any = SimpleNamespace(cluster=Cluster(("a:1", "b:1"), 1))
    return JointStep(workers, 4)


def test_all_are_stopped_once_all_have_been_told(joint_step, tmp_path):
    (tmp_path / ".stop").touch()
    callback = StopTogether(joint_step, tmp_path / ".stop")
    callback.on_train_batch_begin(0)
    assert int(joint_step.stop_wanted) == 1
    callback.on_train_batch_end(0)  # the others have not been told yet
    joint_step.stops.assign(1)
    with pytest.raises(Stopped):
        callback.on_train_batch_end(1)
    assert issubclass(Stopped, KeyboardInterrupt)


def test_the_file_is_looked_for_once_a_second(
    joint_step, tmp_path, monkeypatch
):
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(worker, "time", clock)
    stop_file = tmp_path / worker.STOP_FILE
    callback = StopTogether(joint_step, stop_file)
    asked = []
    for seconds, exists in (
        (100.0, False),
        (100.9, True),
        (101.1, True),
        (103.0, False),  # a wish is not withdrawn
    ):
        now[0] = seconds
        stop_file.unlink(missing_ok=True)
        if exists:
            stop_file.touch()
        callback.on_train_batch_begin(0)
        asked.append(int(joint_step.stop_wanted))
    assert asked == [0, 0, 1, 1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_interrupts(number, tmp_path, capsys):
    before = signal.getsignal(number)
    with stop_by_signal(tmp_path / ".stop"):
        signal.raise_signal(number)
        assert (tmp_path / ".stop").exists()
        assert capsys.readouterr().err.startswith("stopping after this train")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_no_handler_is_set_outside_of_the_main_thread(tmp_path):
    """Python allows handlers of signals in the main thread only."""
    before = signal.getsignal(signal.SIGTERM)
    inside = []

    def work() -> None:
        with stop_by_signal(tmp_path / ".stop"):
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == [before]

"""Workers that wait for one another before TensorFlow does."""

import re
import socket
import threading
import time

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.workers import Cluster
from keras_lstm_dssm.workers.meeting import meet
from tests.workers.processes import free_addresses


def test_all_wait_for_the_last() -> None:
    addresses = tuple(free_addresses(3))
    ends: dict[int, float] = {}

    def worker(rank: int, delay: float) -> None:
        time.sleep(delay)
        meet(Cluster(addresses, rank), 20)
        ends[rank] = time.monotonic()

    start = time.monotonic()
    threads = [
        threading.Thread(target=worker, args=[rank, 0.4 * (rank == 1)])
        for rank in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends.keys() == {0, 1, 2}
    assert min(ends.values()) > start + 0.4
    for address in addresses:  # the ports are free for TensorFlow
        socket.create_server(("", int(address.split(":")[1]))).close()


def test_a_missing_worker_is_named() -> None:
    addresses = tuple(free_addresses(2))
    with pytest.raises(InputError) as error:
        meet(Cluster(addresses, 1), 0.3)
    assert re.fullmatch(
        rf"worker 1 \({addresses[1]}\) waited 0.005 minutes for worker 0 "
        rf"\({addresses[0]}\): start all .*",
        str(error.value),
    )


def test_another_program_at_the_port_is_no_worker() -> None:
    addresses = tuple(free_addresses(2))
    with socket.create_server(("", int(addresses[0].split(":")[1]))):
        with pytest.raises(InputError, match="port .* expected a free port"):
            meet(Cluster(addresses, 0), 0.3)

"""Which processes train together, as TF_CONFIG says, and how they meet."""

import json
import pathlib
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_lstm_dssm.distributed.cluster import Cluster, _listener, meet
from keras_lstm_dssm.errors import InputError
from tests.distributed.processes import free_addresses


def config(**changes: object) -> str:
    content = {
        "cluster": {"worker": ["a:1", "b:1", "c:1"]},
        "task": {"type": "worker", "index": 1},
        **changes,
    }
    return json.dumps(content)


def test_workers_and_rank_are_read(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config())
    cluster = Cluster.from_environment()
    assert cluster == Cluster(("a:1", "b:1", "c:1"), 1)
    assert (cluster.size, cluster.first) == (3, False)
    assert cluster.describe(2) == "worker 2 (c:1)"


def test_shares_add_up():
    cluster = Cluster(("a:1", "b:1", "c:1"), 0)
    assert [cluster.share(8, rank) for rank in range(3)] == [3, 3, 2]


@pytest.mark.parametrize("text", [
    "",
    "{",
    "[]",
    config(task={"type": "worker", "index": 3}),
    config(task={"type": "ps", "index": 0}),
    config(cluster={"worker": ["a"]}),
    config(cluster={"worker": ["a:1", "b:1"], "ps": ["c:1"]}),
])  # fmt: skip
def test_wrong_ones_give_one_line(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError, match="expected the addresses") as error:
        Cluster.from_environment()
    assert "\n" not in str(error.value)


def test_all_wait_for_the_last():
    addresses = tuple(free_addresses(3))

    def worker(rank: int) -> float:
        time.sleep(0.4 * (rank == 1))
        meet(Cluster(addresses, rank), 20)
        return time.monotonic()

    start = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        assert min(pool.map(worker, range(3))) > start + 0.4
    for address in addresses:  # the ports are free for TensorFlow
        socket.create_server(("", int(address.split(":")[1]))).close()


def test_a_missing_worker_is_named():
    addresses = tuple(free_addresses(2))
    with pytest.raises(InputError) as error:
        meet(Cluster(addresses, 1), 0.3)
    assert re.fullmatch(
        rf"worker 1 \({addresses[1]}\) waited 0.005 minutes for worker 0 "
        rf"\({addresses[0]}\): start all .*",
        str(error.value),
    )


def listening(port: int) -> list[str]:
    """Returns the local addresses, as in /proc/net/tcp, that listen."""
    table = pathlib.Path("/proc/net/tcp").read_text()
    rows = [line.split() for line in table.splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == "0A"]
    return [place[0] for place in places if int(place[1], 16) == port]


def test_it_listens_at_the_named_host():
    addresses = tuple(free_addresses(2))  # at 127.0.0.1
    port = int(addresses[0].split(":")[1])
    seen: list[list[str]] = []
    look = threading.Timer(0.1, lambda: seen.append(listening(port)))
    look.start()
    with pytest.raises(InputError, match="waited"):
        meet(Cluster(addresses, 0), 0.3)
    look.join()
    assert seen == [["0100007F"]]


def test_a_name_that_others_know_by_another_address(monkeypatch):
    """Debian gives a machine's own name 127.0.1.1, a proxy another's."""
    (address,) = free_addresses(1)
    port = int(address.split(":")[1])
    for ip in ("127.0.1.1", "192.0.2.1"):
        found = [(socket.AF_INET, 1, 6, "", (ip, port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)  # noqa: B023
        with _listener(Cluster((f"host0:{port}", "host1:1"), 0)) as listener:
            assert listener.getsockname()[0] == "0.0.0.0"


def test_another_program_at_the_port_is_no_worker():
    addresses = tuple(free_addresses(2))
    with socket.create_server(("", int(addresses[0].split(":")[1]))):
        with pytest.raises(InputError, match="port .* expected a free port"):
            meet(Cluster(addresses, 0), 0.3)

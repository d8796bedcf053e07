"""Folders, ports and limits of the server."""

import re
import socket

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import Client, PredictionServer


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("poll_seconds", float("nan"), "0 to 86,400"),
        ("poll_seconds", float("inf"), "0 to 86,400"),
        ("poll_seconds", -1, "0 to 86,400"),
        ("grace_seconds", 1e30, "0 to 86,400"),
    ],
)
def test_numbers_out_of_range(tiny_models, option, value, expected):
    message = f"{option} is {value}; expected {expected}"
    with pytest.raises(InputError, match=re.escape(message)):
        PredictionServer(tiny_models, port=0, **{option: value})


def test_an_address_of_ipv6(numbers):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    for host in ("::1", "[::1]"):
        with PredictionServer(numbers, port=0, host=host) as server:
            assert server.address == f"[::1]:{server.port}"
            with Client(server.address, timeout=20) as client:
                assert list(client.status("numbers")) == [1]


@pytest.mark.parametrize("content", [None, b"", b"\xff\xff no protocol buffer"])
def test_a_folder_that_is_no_model(tmp_path, content):
    version = tmp_path / "encoder" / "1"
    version.mkdir(parents=True)
    if content is not None:
        (version / "saved_model.pb").write_bytes(content)
    with pytest.raises(InputError, match="1/saved_model.pb: not a SavedModel"):
        PredictionServer(tmp_path, port=0)

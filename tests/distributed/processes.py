"""Starts a program as several workers on this machine."""

import json
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from tests.fresh_process import ROOT


def free_addresses(count: int) -> list[str]:
    """Addresses of ports that nothing listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


def cluster_environment(addresses: Sequence[str], rank: int) -> dict[str, str]:
    """Returns the TF_CONFIG of one worker."""
    config = {
        "cluster": {"worker": list(addresses)},
        "task": {"type": "worker", "index": rank},
    }
    return {"TF_CONFIG": json.dumps(config)}


def start_worker(
    addresses: Sequence[str], rank: int, *flags: str,
    folder: pathlib.Path = ROOT,
) -> subprocess.Popen[str]:  # fmt: skip
    """Starts `worker_program` with flags, as one worker, in a folder.

    Python looks for the package in the folder first."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.distributed.worker_program", *flags],
        env={
            **os.environ,
            **cluster_environment(addresses, rank),
            "PYTHONPATH": str(ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ray_processes(parent: int, name: str) -> list[int]:
    """Process ids of Ray's workers of a kind that descend from a process."""
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    parents = {int(pid): int(of) for pid, of, _ in rows}

    def descends(pid: int) -> bool:
        while pid > 1 and pid != parent:
            pid = parents.get(pid, 0)
        return pid == parent

    return [
        int(pid)
        for pid, _, command in rows
        if command.startswith(f"ray::{name}") and descends(int(pid))
    ]

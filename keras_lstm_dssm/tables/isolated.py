"""Each system in a process of its own."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tables.baseline_rows import Options
from keras_lstm_dssm.tables.job import run_job, seed_folders
from keras_lstm_dssm.tables.table_settings import Settings


def run_isolated(
    output: Path,
    names: Iterable[str],
    settings: Settings,
    seeds: int,
    options: Mapping[str, Options] | None = None,
) -> dict[str, str]:
    """Runs the jobs that are not finished, one after the other.

    A process for each system: its memory is free afterwards, and one that
    crashes or is killed leaves the others running. One for each *seed* would
    be no safer and start TensorFlow, 6 seconds, for each of them.

    Args:
        output: See `run_job`.
        names: The systems.
        settings: See `run_job`.
        seeds: See `run_job`.
        options: System -> what was chosen elsewhere.

    Returns:
        System -> reason, for those that failed.
    """
    failed = {}
    for name in names:
        if all(f.exists() for f in seed_folders(output, name, seeds)):
            print(f"{name}: finished before", flush=True)
            continue
        print(f"{name} ...", flush=True)
        given = (options or {}).get(name)
        reason = _run(output, name, settings, seeds, given)
        if reason:
            print(f"{name}: failed: {reason}", flush=True)
            failed[name] = reason
    return failed


def _run(*job: Any) -> str | None:
    """Runs `run_job`; returns why it failed, or None."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, *job))
    process.start()
    sender.close()  # so that the child's end is the only one
    try:
        reason = receiver.recv()
        process.join()
        return reason
    except EOFError:
        process.join()
        return f"its process ended with code {process.exitcode}"
    finally:  # after Ctrl-C too: what it had finished is there
        process.terminate()
        process.join()


def _work(sender: Connection, *job: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        run_job(*job)
        sender.send(None)
    except (InputError, OSError) as error:
        sender.send(str(error))
    except Exception as error:
        traceback.print_exc()
        sender.send(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """Two runs must not write to one folder, the one with an orphan."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

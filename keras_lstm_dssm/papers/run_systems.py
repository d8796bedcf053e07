"""Trains and measures each row of a table in a separate process."""

import dataclasses
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from lstm_dssm_programs import call_received
from keras_lstm_dssm.data.augmentation import misspell
from keras_lstm_dssm.errors import FailedTraining, InputError
from keras_lstm_dssm.evaluation.clustering import ClusterTask
from keras_lstm_dssm.evaluation.measures import QueryMeasures, mean
from keras_lstm_dssm.evaluation.runs import Run, System, write_run
from keras_lstm_dssm.evaluation.task import CLUSTER, Task
from keras_lstm_dssm.files import new_folder, write_csv, write_json
from keras_lstm_dssm.papers.table_data import (
    TableData,
    change_queries,
    open_data,
)
from keras_lstm_dssm.plain_files import read_json
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.training.skip_gram import skip_gram_cache

Hyperparameters = dict[str, Any]
"""Values by name, such as `{"k1": 0.9, "b": 0.5, "tokenizer": "space"}`."""

MODEL_FILE = "model.keras"  # file of two towers in the folder of a seed


class TrainedSystem(NamedTuple):
    """A system that is ready to be measured on test."""

    system: System | None  # `None` for a random order
    parameters: int  # number in a document encoder, matcher or whole system
    dev: float  # the dev measure, from 0 to 1
    train_seconds: float = 0.0  # without the evaluations on dev
    titles_per_second: float | None = None  # speed of a document encoder
    best_epoch: int | None = None  # best on dev; `None` for baselines
    history: tuple[dict[str, Any], ...] = ()  # loss and dev measure by epoch
    pairs_per_second: float | None = None  # speed of a pair scorer
    further: Mapping[str, float] = {}  # further entries of `result.json`
    model: Any = None  # two towers, if other rows need them


class RowSystem(Protocol):
    """Protocol of `Baseline`, `Mixed`, `Hybrid` and `Neural`: trains a row."""

    @property
    def group(self) -> str:
        """Group in charts: `"baseline"`, `"feed-forward"` or `"recurrent"`."""

    @property
    def seeded(self) -> bool:
        """Whether another seed gives another result."""

    def next_trial(
        self, name: str, settings: TableSettings, tried: list[dict[str, Any]]
    ) -> Hyperparameters | None:
        """Returns the next trial's hyperparameters; `None` ends the search.

        `tried` has the earlier trials, each with its dev measure as `dev`.
        """

    def train(
        self, name: str, options: Hyperparameters, seed: int, data: TableData
    ) -> TrainedSystem:
        """Trains the system of the row `name`, and measures it on dev."""


class Row(NamedTuple):
    """One system of a table.

    Attributes:
        label: The name of the system in the table.
        system: How the system is trained, such as a `Baseline` or a `Neural`.
        vectors: Whether the system has vectors that can be clustered.

    Example:
    >>> from keras_lstm_dssm.papers.baseline_rows import Baseline
    >>> Row("BM25", Baseline()).system.group
    'baseline'
    """

    label: str
    system: RowSystem
    vectors: bool = True

    def tests(self, data: TableData) -> dict[str, Any]:
        """Returns mode -> test task; a clustering task only with `vectors`."""
        return {
            mode: task
            for mode, task in data.tests.items()
            if self.vectors or mode != CLUSTER
        }


def choose_rows(
    rows: Mapping[str, Row], names: Sequence[str]
) -> dict[str, Row]:
    """Returns the named rows, or all rows, in the table's order.

    Args:
        rows: Name -> row, the whole table.
        names: Names of rows; `["all"]` for the whole table.

    Raises:
        InputError: A name is not in the table, or `names` is empty.

    Example:
    >>> from keras_lstm_dssm.papers import PAPERS
    >>> list(choose_rows(PAPERS["table_iv"].rows, ["dssm", "bm25"]))
    ['bm25', 'dssm']
    """
    if list(names) == ["all"]:
        return dict(rows)
    unknown = [name for name in names if name not in rows]
    if unknown or not names:
        raise InputError(
            f"--systems={','.join(names)}: found"
            f" {unknown[0] if unknown else 'no name'!r}, expected all, or some"
            f" of {', '.join(rows)}"
        )
    return {name: row for name, row in rows.items() if name in names}


def choose_on_dev(
    name: str, row: Row, data: TableData, path: Path
) -> Hyperparameters:
    """Returns the best hyperparameters on dev; ties go to the first trial."""
    settings, system = data.settings, row.system
    # An interrupted search continues from the file.
    trials = read_json(path)["tried"] if path.exists() else []
    options = system.next_trial(name, settings, trials)
    if options is not None and not trials:
        # If there is only one choice, no trial is needed.
        after_one = [{**options, "dev": 0.0}]
        if system.next_trial(name, settings, after_one) is None:
            return options
    epochs = max(1, round(settings.search * settings.epochs))
    while options is not None:
        short_data = dataclasses.replace(
            data, settings=dataclasses.replace(settings, epochs=epochs)
        )
        start = time.perf_counter()
        try:
            dev = system.train(name, options, 0, short_data).dev
        except FailedTraining:  # perhaps the learning rate is too large
            dev = 0.0
        seconds = time.perf_counter() - start
        trials.append({**options, "dev": dev, "seconds": seconds})
        best = max(trials, key=lambda trial: trial["dev"])
        search = {
            "options": {key: best[key] for key in options},
            "measure": f"dev {data.dev_measure}",
            "tried": trials,
        }
        write_json(path, search)
        options = system.next_trial(name, settings, trials)
    return read_json(path)["options"]


def run_systems(
    output: Path,
    rows: Mapping[str, Row],
    settings: TableSettings,
    seeds: int,
    options: Mapping[str, Hyperparameters] | None = None,
) -> dict[str, str]:
    """Runs the unfinished systems; returns reasons of failures by system."""
    failed = {}
    for name, row in rows.items():
        if all(f.exists() for f in seed_folders(output, name, row, seeds)):
            print(f"{name}: finished before", flush=True)
            continue
        print(f"{name} ...", flush=True)
        chosen = (options or {}).get(name)
        # Each system has its own process, so that a crash ends no other system.
        reason = _run_in_process(output, name, row, settings, seeds, chosen)
        if reason:
            print(f"{name}: failed: {reason}", flush=True)
            failed[name] = reason
    return failed


def seed_folders(output: Path, name: str, row: Row, seeds: int) -> list[Path]:
    """Returns the folders of a system's results, one for each seed."""
    count = seeds if row.system.seeded else 1
    return [output / "systems" / name / f"seed_{s}" for s in range(count)]


def run_system(
    output: Path,
    name: str,
    row: Row,
    settings: TableSettings,
    seeds: int,
    options: Hyperparameters | None = None,
) -> None:
    """Chooses hyperparameters on dev, trains and measures one system."""
    folders = seed_folders(output, name, row, seeds)
    # The folder of a seed exists only when the seed is finished.
    missing = [s for s, folder in enumerate(folders) if not folder.exists()]
    if not missing:
        return
    folders[0].parent.mkdir(parents=True, exist_ok=True)
    data = open_data(settings, output)
    if options is None:
        path = folders[0].parent / "choice.json"
        options = choose_on_dev(name, row, data, path)
    for seed in missing:
        trained = row.system.train(name, options, seed, data)
        with new_folder(folders[seed]) as folder:
            _write_seed(folder, name, row, seed, options, trained, data)
        print(
            f"{name}, seed {seed}: {trained.train_seconds:.0f} s, dev"
            f" {data.dev_measure} {100 * trained.dev:.2f}",
            flush=True,
        )


def measure_system(
    task: Task | ClusterTask, trained: TrainedSystem
) -> tuple[Run | None, QueryMeasures]:
    """Returns the run of a system, and the system's measures by query.

    The run is `None` for a random order, and for a `ClusterTask`. For a
    `ClusterTask`, the measures are by seed of the clustering, not by query.
    """
    if trained.system is None:
        return None, task.random_queries()
    return task.measure(trained.system)


def _write_seed(
    folder: Path,
    name: str,
    row: Row,
    seed: int,
    options: Hyperparameters,
    trained: TrainedSystem,
    data: TableData,
) -> None:
    tasks, test = row.tests(data), {}
    for mode, task in tasks.items():
        run, values = measure_system(task, trained)
        test[mode] = mean(values, task.measures)
        if run is not None:
            write_run(folder / f"test.{mode}.trec.gz", run, name)
        rows = [{"query": key, **values[key]} for key in values]
        write_csv(folder / f"test.{mode}.queries.csv", rows)
    misspelled: dict[str, dict[str, Any]] = {}
    for rate in data.settings.misspelled:
        at_rate = misspelled[str(rate)] = {}
        for mode, task in tasks.items():
            changed = change_queries(task, partial(misspell, rate=rate))
            _, values = measure_system(changed, trained)
            at_rate[mode] = mean(values, task.measures)
    if trained.model is not None:
        trained.model.save(folder / MODEL_FILE)
    if trained.history:
        write_csv(folder / "history.csv", trained.history)
    write_json(
        folder / "result.json",
        {
            "system": name,
            "seed": seed,
            "options": options,
            "parameters": trained.parameters,
            "epoch": trained.best_epoch,
            "dev": {data.dev_measure: trained.dev},
            "train_seconds": trained.train_seconds,
            "titles_per_second": trained.titles_per_second,
            "pairs_per_second": trained.pairs_per_second,
            "test": test,
            "misspelled": misspelled,
            **trained.further,
        },
    )


def _run_in_process(*arguments: Any) -> str | None:
    """Calls `run_system` in a new process; returns why it failed, or None."""
    context = multiprocessing.get_context("spawn")
    connection, child_connection = context.Pipe()
    process = context.Process(target=call_received, args=(child_connection,))
    process.start()
    child_connection.close()  # so `recv` raises `EOFError` if the child ends
    try:
        connection.send(partial(_run_in_child, arguments))
        reason = connection.recv()
        process.join()
        return reason
    except (EOFError, BrokenPipeError, ConnectionResetError):
        process.join()
        return f"its process ended with code {process.exitcode}"
    finally:  # ends the child after Ctrl-C, which the child ignores
        process.terminate()
        process.join()


def _run_in_child(arguments: tuple[Any, ...], sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with skip_gram_cache(arguments[0] / "skip_gram"):
            run_system(*arguments)
        sender.send(None)
    except (InputError, OSError) as error:
        sender.send(str(error))
    except Exception as error:
        traceback.print_exc()
        sender.send(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """Ends this process when its parent ends, so that no file stays locked."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

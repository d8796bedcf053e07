"""Training and measuring of a table's systems, each in its own process.

The hyperparameters of a system are chosen on dev first. A run that was
stopped is continued.
"""

import multiprocessing
import os
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.augmentation import misspell
from keras_lstm_dssm.errors import FailedTraining, InputError
from keras_lstm_dssm.evaluation.clustering import ClusterTask
from keras_lstm_dssm.evaluation.measures import QueryMeasures, mean
from keras_lstm_dssm.evaluation.runs import Run, write_run
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.files import read_json, write_csv, write_json
from keras_lstm_dssm.models import KeyVecRecipe, Recipe, ScorerRecipe
from keras_lstm_dssm.papers.baseline_rows import (
    MODEL_FILE,
    Hyperparameters,
    TrainedSystem,
    baseline_grid,
    train_baseline,
    train_mixture,
)
from keras_lstm_dssm.papers.neural_rows import (
    next_learning_rate,
    next_tower_options,
    train_keyvec,
    train_scorer,
    train_towers,
)
from keras_lstm_dssm.papers.rows import Row
from keras_lstm_dssm.papers.table_data import (
    BaseTableData,
    DocumentTableData,
    TableData,
    change_queries,
    open_data,
)
from keras_lstm_dssm.settings.papers import TableSettings
from keras_lstm_dssm.training.skip_gram import skip_gram_cache
from lstm_dssm_programs import call_received


def choose_on_dev(
    name: str,
    row: Row,
    data: BaseTableData,
    settings: TableSettings,
    path: Path,
) -> Hyperparameters:
    """Returns the best hyperparameters on dev; of equals, the first.

    Neural systems are trained with seed 0 and for a share of the epochs
    (`settings.search`). A trial whose training fails, see `FailedTraining`,
    has a measure of 0. A search that was interrupted continues with the next
    trial.

    The JSON file `path` holds the search: `options`, the best
    hyperparameters; `measure`; and `tried`, all trials, each with its `dev`
    measure. It is not written if there is only one choice. For the other
    arguments see `run_systems.run_system`.
    """
    epochs = max(1, round(settings.search * settings.epochs))
    trials = read_json(path)["tried"] if path.exists() else []
    options = _next_trial(name, row, settings, trials)
    if options is not None and not trials:
        after_one = [{**options, "dev": 0.0}]
        if _next_trial(name, row, settings, after_one) is None:
            return options
    while options is not None:
        start = time.perf_counter()
        try:
            trained = train_system(
                name, row, options, 0, data, settings, epochs
            )
            dev = trained.dev
        except FailedTraining:  # as with a learning rate that is too large
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
        options = _next_trial(name, row, settings, trials)
    return read_json(path)["options"]


def _next_trial(
    name: str, row: Row, settings: TableSettings, trials: list[dict[str, Any]]
) -> Hyperparameters | None:
    if row.recipe is None:
        grid = baseline_grid(name)
        return grid[len(trials)] if len(trials) < len(grid) else None
    if isinstance(row.recipe, ScorerRecipe | KeyVecRecipe):
        return next_learning_rate(row, settings, trials)
    if row.tuned:
        return next_tower_options(settings, trials)
    if trials:
        return None
    recipe = row.recipe
    assert isinstance(recipe, Recipe)
    return {"learning_rate": recipe.learning_rate, "gamma": recipe.gamma}


def train_system(
    name: str,
    row: Row,
    options: Hyperparameters,
    seed: int,
    data: BaseTableData,
    settings: TableSettings,
    epochs: int,
    output: Path | None = None,
) -> TrainedSystem:
    """Trains a system.

    See `train_baseline`, `train_towers`, `train_scorer`, `train_keyvec`,
    `train_mixture`; `output` is the folder of the table, for the last.
    """
    if row.parts:
        assert isinstance(data, TableData) and output is not None
        return train_mixture(row, seed, data, settings, output)
    if row.recipe is None:
        return train_baseline(name, options, seed, data, settings)
    if isinstance(row.recipe, KeyVecRecipe):
        assert isinstance(data, DocumentTableData)
        return train_keyvec(row, options, seed, data, settings, epochs)
    assert isinstance(data, TableData)
    if isinstance(row.recipe, ScorerRecipe):
        return train_scorer(row, options, seed, data, settings, epochs)
    return train_towers(row, options, seed, data, settings, epochs)


def run_systems(
    output: Path,
    rows: Mapping[str, Row],
    settings: TableSettings,
    seeds: int,
    options: Mapping[str, Hyperparameters] | None = None,
) -> dict[str, str]:
    """Trains and measures the unfinished systems, one after the other.

    Each system has its own process, so that its memory is free afterwards,
    and one that crashes or is killed leaves the others running. A process for
    each seed would need 6 seconds more per seed to start TensorFlow.

    `rows` and `options` map the systems' names to the arguments `row` and
    `options` of `run_system`; the other arguments are the same.

    Returns:
        System -> reason, for those that failed.

    Example:
    >>> settings = TableSettings("parts")
    >>> rows = {"bm25": Row("BM25", seeded=False)}
    >>> run_system(Path("systems"), "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> run_systems(Path("systems"), rows, settings, seeds=1)
    bm25: finished before
    {}
    """
    failed = {}
    for name, row in rows.items():
        if all(f.exists() for f in seed_folders(output, name, row, seeds)):
            print(f"{name}: finished before", flush=True)
            continue
        print(f"{name} ...", flush=True)
        chosen = (options or {}).get(name)
        reason = _run_in_process(output, name, row, settings, seeds, chosen)
        if reason:
            print(f"{name}: failed: {reason}", flush=True)
            failed[name] = reason
    return failed


def seed_folders(output: Path, name: str, row: Row, seeds: int) -> list[Path]:
    """Returns the folders of a system's results, one for each seed."""
    count = seeds if row.seeded else 1
    return [output / "systems" / name / f"seed_{s}" for s in range(count)]


def run_system(
    output: Path,
    name: str,
    row: Row,
    settings: TableSettings,
    seeds: int,
    options: Hyperparameters | None = None,
) -> None:
    """Chooses on dev, trains and measures one system.

    Finished trials and seeds are skipped. A folder `systems/NAME/seed_S` is
    made when it is complete, with `result.json`, `history.csv` (neural
    systems), and for each mode `test.MODE.trec.gz` and
    `test.MODE.queries.csv`; and `model.keras`, if the row says so.
    `systems/NAME/choice.json` holds the search.

    Args:
        output: Folder of the table.
        name: The system's name.
        row: The row of the system.
        settings: The table's settings, as recorded in `output`.
        seeds: Number of trainings, with seeds 0 to seeds - 1; a row that is
            not `seeded` is trained once.
        options: Hyperparameters chosen elsewhere; `None` searches on dev.

    Example:
    >>> settings = TableSettings("parts")
    >>> rows = {"bm25": Row("BM25", seeded=False)}
    >>> run_system(Path("one_system"), "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> Path("one_system/systems/bm25/seed_0/result.json").exists()
    True
    """
    folders = seed_folders(output, name, row, seeds)
    missing = [s for s, folder in enumerate(folders) if not folder.exists()]
    if not missing:
        return
    folders[0].parent.mkdir(parents=True, exist_ok=True)
    data = open_data(settings, output)
    if options is None:
        path = folders[0].parent / "choice.json"
        options = choose_on_dev(name, row, data, settings, path)
    for seed in missing:
        trained = train_system(
            name, row, options, seed, data, settings, settings.epochs, output
        )
        tasks = data.tests_of(row)
        _write_seed(
            folders[seed], name, seed, options, trained, tasks, data, settings
        )
        print(
            f"{name}, seed {seed}: {trained.train_seconds:.0f} s, dev"
            f" {data.dev_measure} {100 * trained.dev:.2f}",
            flush=True,
        )


def measure_system(
    task: Task | ClusterTask, trained: TrainedSystem
) -> tuple[Run | None, QueryMeasures]:
    """Returns a system's run and the measures of each query.

    Random order has no run, as its measures are exact expectations, and
    clusters have none.
    """
    if trained.system is None:
        return None, task.random_queries()
    return task.measure(trained.system)


def _write_seed(
    folder: Path,
    name: str,
    seed: int,
    options: Hyperparameters,
    trained: TrainedSystem,
    tasks: Mapping[str, Any],
    data: BaseTableData,
    settings: TableSettings,
) -> None:
    partial_folder = folder.with_name(f".partial-{folder.name}")
    shutil.rmtree(partial_folder, ignore_errors=True)
    partial_folder.mkdir()
    test = {}
    for mode, task in tasks.items():
        run, values = measure_system(task, trained)
        test[mode] = mean(values, task.measures)
        if run is not None:
            write_run(partial_folder / f"test.{mode}.trec.gz", run, name)
        rows = [{"query": key, **values[key]} for key in values]
        write_csv(partial_folder / f"test.{mode}.queries.csv", rows)
    misspelled: dict[str, dict[str, Any]] = {}
    for rate in settings.misspelled:
        of_rate = misspelled[str(rate)] = {}
        for mode, task in tasks.items():
            changed = change_queries(task, partial(misspell, rate=rate))
            _, values = measure_system(changed, trained)
            of_rate[mode] = mean(values, task.measures)
    if trained.model is not None:
        trained.model.save(partial_folder / MODEL_FILE)
    if trained.history:
        write_csv(partial_folder / "history.csv", trained.history)
    write_json(
        partial_folder / "result.json",
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
    partial_folder.rename(folder)


def _run_in_process(*arguments: Any) -> str | None:
    """Calls `run_system` in a new process; returns why it failed, or None."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=call_received, args=(there,))
    process.start()
    there.close()  # so that reading ends when the child does
    try:
        here.send(partial(_child, arguments))
        reason = here.recv()
        process.join()
        return reason
    except (EOFError, BrokenPipeError, ConnectionResetError):
        process.join()
        return f"its process ended with code {process.exitcode}"
    finally:  # after Ctrl-C, too
        process.terminate()
        process.join()


def _child(arguments: tuple[Any, ...], sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent terminates it
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
    """Ends this process with its parent, which holds the folder's lock."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

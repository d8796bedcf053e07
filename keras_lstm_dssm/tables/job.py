"""A job: one system chosen on dev, trained with all its seeds and measured."""

import gzip
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.augmentation import misspell
from keras_lstm_dssm.evaluation import (
    Run,
    Task,
    evaluate_queries,
    mean,
    write_run,
)
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.files import read_json, write_csv, write_json
from keras_lstm_dssm.tables.baseline_rows import (
    Options,
    Trained,
    baseline_options,
    train_baseline,
)
from keras_lstm_dssm.tables.dataset import (
    DataSet,
    open_dataset,
    with_queries,
)
from keras_lstm_dssm.tables.rows import ROWS
from keras_lstm_dssm.tables.table_settings import Settings
from keras_lstm_dssm.tables.tower_rows import next_tower_options, train_towers


def choose(name: str, data: DataSet, settings: Settings, path: Path) -> Options:
    """Returns the options with the best figure on dev; the first of equals.

    Towers are trained for a share of the epochs (`settings.search`), with
    seed 0. A search that was interrupted goes on with the next trial.

    Args:
        name: The system.
        data: What to train on, and dev.
        settings: What is tried.
        path: JSON: `options`, `measure`, and `tried`, each with its `dev`.
    """
    epochs = max(1, round(settings.search * settings.epochs))
    found = read_json(path)["tried"] if path.exists() else []
    options = _next_options(name, settings, found)
    if options is not None and not found:
        after = [{**options, "dev": 0.0}]
        if _next_options(name, settings, after) is None:
            return options  # there is nothing to choose from
    while options is not None:
        start = time.perf_counter()
        trained = train(name, options, 0, data, settings, epochs)
        seconds = time.perf_counter() - start
        found.append({**options, "dev": trained.dev, "seconds": seconds})
        _write(path, found, list(options), data.dev_measure)
        options = _next_options(name, settings, found)
    return read_json(path)["options"]


def _next_options(
    name: str, settings: Settings, tried: list[dict[str, Any]]
) -> Options | None:
    row = ROWS[name]
    if row.recipe is not None and not row.tuned:
        names = "learning_rate", "gamma"
        return (
            None
            if tried
            else {name: getattr(row.recipe, name) for name in names}
        )
    if row.recipe is not None:
        return next_tower_options(settings, tried)
    grid = baseline_options(name)
    return grid[len(tried)] if len(tried) < len(grid) else None


def train(
    name: str,
    options: Options,
    seed: int,
    data: DataSet,
    settings: Settings,
    epochs: int,
) -> Trained:
    """Trains a system of either kind; `epochs` are for towers."""
    row = ROWS[name]
    if row.recipe is None:
        return train_baseline(name, options, seed, data, settings)
    return train_towers(row, options, seed, data, settings, epochs)


def _write(
    path: Path, tried: list[dict[str, Any]], names: list[str], measure: str
) -> None:
    best = max(tried, key=lambda trial: trial["dev"])
    options = {name: best[name] for name in names}
    write_json(
        path,
        {"options": options, "measure": f"dev {measure}", "tried": tried},
    )


def seed_folders(output: Path, name: str, seeds: int) -> list[Path]:
    """Returns where a system's results are, one folder for each seed."""
    count = seeds if ROWS[name].seeded else 1
    return [output / "systems" / name / f"seed_{s}" for s in range(count)]


def run_job(
    output: Path,
    name: str,
    settings: Settings,
    seeds: int,
    options: Options | None = None,
) -> None:
    """Chooses, trains and measures one system; leaves out what is there.

    A folder `systems/NAME/seed_S` appears when it is complete: `result.json`,
    `history.csv` (towers), and for each mode `test.MODE.trec.gz` and
    `test.MODE.queries.csv`; `systems/NAME/choice.json` tells the search.

    Args:
        output: Folder of the table.
        name: The system.
        settings: Those recorded in `output`.
        seeds: Seeds 0 to seeds - 1, of systems that have one.
        options: What was chosen elsewhere; None searches on dev.
    """
    wanted = seed_folders(output, name, seeds)
    missing = [s for s, folder in enumerate(wanted) if not folder.exists()]
    if not missing:
        return
    wanted[0].parent.mkdir(parents=True, exist_ok=True)
    data = open_dataset(settings, output)
    if options is None:
        path = wanted[0].parent / "choice.json"
        options = choose(name, data, settings, path)
    for seed in missing:
        trained = train(name, options, seed, data, settings, settings.epochs)
        _write_seed(wanted[seed], name, seed, options, trained, data, settings)
        print(
            f"{name}, seed {seed}: {trained.train_seconds:.0f} s, dev"
            f" {data.dev_measure} {100 * trained.dev:.2f}",
            flush=True,
        )


def _write_seed(
    folder: Path,
    name: str,
    seed: int,
    options: Options,
    trained: Trained,
    data: DataSet,
    settings: Settings,
) -> None:
    partial_folder = folder.with_name(f".partial-{folder.name}")
    shutil.rmtree(partial_folder, ignore_errors=True)
    partial_folder.mkdir()
    test = {}
    for mode, task in data.tests.items():
        run, values = measure(task, trained)
        test[mode] = mean(values)
        if run is not None:
            path = partial_folder / f"test.{mode}.trec"
            write_run(path, run, name)
            _compress(path)
        rows = [{"query": key, **values[key]} for key in values]
        write_csv(partial_folder / f"test.{mode}.queries.csv", rows)
    misspelled: dict[str, dict[str, Any]] = {}
    for rate in settings.misspelled:
        misspelled[str(rate)] = {
            mode: mean(
                measure(
                    with_queries(task, partial(misspell, rate=rate)), trained
                )[1]
            )
            for mode, task in data.tests.items()
        }
    if trained.history:
        write_csv(partial_folder / "history.csv", trained.history)
    write_json(
        partial_folder / "result.json",
        {
            "system": name,
            "seed": seed,
            "options": options,
            "parameters": trained.parameters,
            "epoch": trained.epoch,
            "dev": {data.dev_measure: trained.dev},
            "train_seconds": trained.train_seconds,
            "titles_per_second": trained.titles_per_second,
            "test": test,
            "misspelled": misspelled,
        },
    )
    partial_folder.rename(folder)


def measure(task: Task, trained: Trained) -> tuple[Run | None, QueryMeasures]:
    """Returns a system's run and each query's figures; random has no run."""
    if trained.system is None:
        return None, task.random_queries()
    run = task.run(trained.system)
    return run, evaluate_queries(run, task.qrels, task.min_relevant)


def _compress(path: Path) -> None:
    """Replaces a file by its `.gz`, the same bytes for the same content."""
    with (
        path.open("rb") as source,
        gzip.GzipFile(f"{path}.gz", "wb", 6, mtime=0) as target,
    ):
        shutil.copyfileobj(source, target)
    path.unlink()

"""A job: one system with all its seeds, each result written when it is done."""

import gzip
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.misspelling import misspell
from keras_lstm_dssm.evaluation import (
    Run,
    Task,
    evaluate_queries,
    mean,
    write_run,
)
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.table_iv.choice import choose, train
from keras_lstm_dssm.table_iv.csv_files import write_csv
from keras_lstm_dssm.table_iv.dataset import (
    DataSet,
    open_dataset,
    with_queries,
)
from keras_lstm_dssm.table_iv.rows import ROWS
from keras_lstm_dssm.table_iv.settings import Settings
from keras_lstm_dssm.table_iv.trained import Options, Trained


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

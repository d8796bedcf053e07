"""Train a model: two encoders (on clicks), a pair scorer, or a KeyVec.

Example:
  lstm-dssm-train --data=clicks.tsv.gz --preset=best --output=build/run
  lstm-dssm-train --data=api_documents --preset=keyvec --output=build/keyvec

`--data` is `api` (docstrings of installed packages), a BEIR folder, or click
files, also .gz or globs. Each line of a click file is a click: query TAB
clicked title. For `keyvec`, `--data` is `api_documents` or a folder with
documents.jsonl. The run folder has config.json, checkpoints/, model.keras,
history.csv, metrics.json and logs/ for TensorBoard.

`lstm-dssm-train --output=RUN --resume` continues a run that was stopped or
killed at any moment; the weights at the end are the same as without a stop.

`--dev=JUDGED --select=mrr@10 --patience=3` measures rankings after each epoch,
keeps the best epoch and stops after 3 evaluations without a better value.

`--preset=best_words` adds word vectors to the encoders of `best`. The word
vectors are fitted to vectors of `lstm-dssm-teach` (`--teacher=TEACH`).

`--init=RUN --data=new.tsv --replay=old.tsv:0.2` starts a new run from the
weights of another run, on new clicks and a share of old clicks.

`--workers=2` trains with two processes, on one machine or on a Ray cluster.
`--set` sets further values of a recipe: `--set momentum_middle=0.97`.
"""

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.settings.kinds import (
    KINDS,
    all_presets,
    named_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.settings.recipes import ModelRecipe
from keras_lstm_dssm.settings.training import BUILT_IN, TrainingConfig
from keras_lstm_dssm.tools.settings_flags import (
    check_finite,
    define_settings,
    flag_names,
)

if TYPE_CHECKING:
    from keras_lstm_dssm.run_folder import RunFolder

program = Program(__doc__, required=["output"])
FLAGS = program.flags
program.string("output", None, "Folder of the run.")
program.bool("resume", False, "Continue the run in --output as configured.")
define_settings(program, {"": TrainingConfig}, defaults=True)
program.enum(
    "preset", "lstm_96",
    [*all_presets()],
    "Name of a recipe. Two towers: `best`, or a system of the paper; with "
    "--teacher: `best_words` or `word_sum`. Pair scorers: `mv_lstm_tensor` and "
    "others. Documents: `keyvec`. Flags such as --epochs, and --set, change "
    "single values; their defaults are the values of the recipe.",
)  # fmt: skip
program.define_set("Another value of the recipe")
define_settings(
    program,
    {kind.plural: kind.recipe for kind in KINDS.values()},
    named=(
        "batch_size", "epochs", "gamma", "hard_negatives", "judged_negatives",
        "learning_rate", "negatives", "title_pairs", "towers", "words",
    ),
)  # fmt: skip
program.integer(
    "oov_buckets", None,
    "Two towers: number of embedding rows for letters beyond a-z and 0-9, such "
    "as 8192 for other scripts; with 0, as in the paper, such letters are read "
    "as #.",
    0,
)  # fmt: skip
program.integer(
    "workers", None,
    "Two towers: train with this many processes, which Ray Train starts and "
    "restarts (docs/scaling.md).", 1,
)  # fmt: skip
program.string(
    "ray_address", None,
    "With --workers: address of the Ray cluster, or `auto` for the cluster of "
    "this machine. By default Ray is started here, and ends with the training.",
)  # fmt: skip
program.integer(
    "worker_cpus", None,
    "With --workers: cores and threads of each worker; by default the "
    "cluster's cores divided by --workers.", 1,
)  # fmt: skip
program.float(
    "start_minutes", 5.0,
    "With --workers: minutes to wait for all workers to start, and for an "
    "answer of each worker.", 0.0,
)  # fmt: skip
check_finite(program, "start_minutes")

OPTION_FLAGS = flag_names([TrainingConfig])

RECIPE_NAMES = [
    *flag_names(kind.recipe for kind in KINDS.values()),
    "oov_buckets",
]
"""Flags and names of `--set` that change the preset's recipe."""

_WORKER_FLAGS = ("ray_address", "worker_cpus", "start_minutes")


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Trains, or resumes; returns the last epoch's metrics."""
    load_package()
    import keras_lstm_dssm as dssm
    from keras_lstm_dssm.data.click_log import describe_bad
    from keras_lstm_dssm.run_folder import RunFolder, check_resumable
    from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread

    run = RunFolder(FLAGS.output)
    options = {name: FLAGS[name].value for name in OPTION_FLAGS}
    if _trains_by_workers():
        if FLAGS.resume:
            check_unchanged(run.read_config())
        else:
            check_folder(run.path)
        epochs = run.read_history()
        _train_by_workers(run, options)
        finished = bool(epochs) and run.read_history() == epochs
    elif FLAGS.resume:
        check_resumable(run.path)
        check_unchanged(run.read_config())
        epochs = run.read_history()
        use_one_intra_op_thread()
        with _stop_on_sigterm(run):
            dssm.resume(run.path, save_minutes=FLAGS.save_minutes)
        finished = run.read_history() == epochs
    else:
        run.check_new()
        run.read_metrics()  # reports a damaged file before the training
        run.read_history()
        check_folder(run.path)
        use_one_intra_op_thread()
        with _stop_on_sigterm(run):
            dssm.train(recipe=flagged_recipe(), output=run.path, **options)
        finished = False
    metrics = run.read_metrics()
    for name in ("data", "validation"):
        if bad := metrics.get(f"bad_lines/{name}"):
            print(f"--{name}: skipped bad lines: {describe_bad(bad)}")
    if finished:
        print(
            f"{run.path}: already finished; to train longer, start anew in "
            "another --output: the length of the schedule is fixed"
        )
    else:
        print(f"wrote {run.model}")
        print(f"next: {next_command(run)}")
    return metrics["train"]


def next_command(run: "RunFolder") -> str:
    """Returns a command that evaluates the run on its data, or exports it."""
    config = run.read_config()
    run_flag = f"--run={shlex.quote(str(run.path))}"
    for data in (config.get("data"), config.get("dev")):
        if data in BUILT_IN or (data and Path(data, "qrels/test.tsv").exists()):
            return f"lstm-dssm-evaluate {run_flag} --data={shlex.quote(data)}"
    return f"lstm-dssm-export {run_flag} --output=MODELS"


def flagged_recipe() -> ModelRecipe:
    """Returns the recipe of --preset or --init, changed by the other flags."""
    from keras_lstm_dssm.models import find_recipe
    from keras_lstm_dssm.training.initial_model import InitialModel

    recipe: Any
    if FLAGS.init and not FLAGS["preset"].present:
        recipe = InitialModel.recipe_of(FLAGS.init)
        source = f"the run --init={FLAGS.init}"
    else:
        recipe = named_recipe(FLAGS.preset)
        source = f"--preset={FLAGS.preset}"
    changes = {
        name: program.flag(name).value
        for name in RECIPE_NAMES
        if program.flag(name).value is not None
    }
    for name in changes:
        if not hasattr(recipe, name):
            raise InputError(
                f"{program.shown(name)} is not for {source}: leave it out"
            )
    recipe = recipe.replace(**changes)
    recipe.check_used(changes)
    return find_recipe(recipe)


def check_unchanged(config: dict[str, Any]) -> None:
    """Raises `InputError` if a flag differs from the settings of the run."""
    recipe = recipe_from_dict(config.get("recipe", {}))
    if FLAGS["preset"].present:
        started = _preset_values(recipe)
        expected = _preset_values(named_recipe(FLAGS.preset))
        for name in {**expected, **started}:
            if started.get(name) != expected.get(name):
                raise InputError(
                    f"--preset={FLAGS.preset}: the run in {FLAGS.output} was "
                    f"started with {name}={started.get(name)}, expected "
                    f"{expected.get(name)}; leave the flag out, or train anew "
                    "in another --output"
                )
    stored = {**recipe.to_dict(), **config}
    stored["init"] = (config.get("init") or {}).get("path")
    if hasattr(recipe, "oov_buckets"):
        stored["oov_buckets"] = recipe.oov_buckets
    for name in (*OPTION_FLAGS, *RECIPE_NAMES):
        flag = program.flag(name)
        if not flag.present or name not in stored:
            continue
        value = flag.value
        if name in OPTION_FLAGS:
            value = TrainingConfig.stored_value(name, value)
        if value != stored[name]:
            raise InputError(
                f"{program.shown(name)}={flag.value}: the run in "
                f"{FLAGS.output} was started with {stored[name]}; leave the "
                "flag out, or train anew in another --output"
            )


def _preset_values(recipe: Any) -> dict[str, Any]:
    """Returns the values of a recipe that only a preset can set."""
    if hasattr(recipe, "oov_buckets"):
        recipe = recipe.replace(oov_buckets=0)
    flags = (*RECIPE_NAMES, *OPTION_FLAGS)
    values = recipe.to_dict().items()
    return {name: value for name, value in values if name not in flags}


@contextmanager
def _stop_on_sigterm(run: "RunFolder") -> Iterator[None]:
    """Treats SIGTERM like ctrl-c; prints how to resume a stopped run."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if run.model.exists():
            print(
                f"{run.model} is the model so far; to go on: lstm-dssm-train"
                f" --output={shlex.quote(str(run.path))} --resume",
                file=sys.stderr,
            )
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _trains_by_workers() -> bool:
    if (FLAGS.workers or 1) > 1:
        return True
    for name in _WORKER_FLAGS:
        if FLAGS[name].present:
            raise InputError(
                f"--{name} is set, but one process trains: leave it out, or "
                "set --workers"
            )
    return False


def _train_by_workers(run: "RunFolder", options: dict[str, Any]) -> None:
    from keras_lstm_dssm.distributed.on_ray import train_on_ray

    config = None
    if not FLAGS.resume:
        config = TrainingConfig(recipe=flagged_recipe(), **options)
        config.check_options(options)
    train_on_ray(
        run.path,
        config,
        workers=FLAGS.workers,
        address=FLAGS.ray_address,
        cpus=FLAGS.worker_cpus,
        save_minutes=FLAGS.save_minutes,
        start_minutes=FLAGS.start_minutes,
    )


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)

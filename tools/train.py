r"""Train two encoders on clicks.

Example:
  lstm-dssm-train --data=clicks.tsv.gz --preset=lstm_96 --epochs=5 \
      --output=build/run

`--data` is `api` (the corpus found on this machine), a BEIR folder, or click
files: one click a line, query TAB clicked title, gzip or not, globs allowed.
The run folder gets config.json, checkpoints/, model.keras, history.csv,
metrics.json and logs/ for TensorBoard. An interrupted run goes on with
`lstm-dssm-train --output=RUN --resume`.
"""

import sys
from typing import Any

import keras
from absl import flags

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog, open_log
from keras_lstm_dssm.data.batches import evaluation_batches
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.two_tower import NEGATIVES
from keras_lstm_dssm.tools.program import new_flags, program
from keras_lstm_dssm.training import RunFolder, train_run

_LEAST = 1e-9  # absl's bounds are inclusive, and 0 trains nothing

FLAGS = new_flags()
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder of the run.", flag_values=FLAGS
)
_RESUME = flags.DEFINE_bool(
    "resume", False,
    "Go on with the run in --output, with the settings it was started with.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_string(
    "data", None,
    "`api`, a BEIR folder, or click files (.tsv, .tsv.gz, globs).",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_string(
    "validation", None, "Click files for the loss after each epoch.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_enum(
    "preset", "lstm_96", list(dssm.PRESETS),
    "Encoder: one of the paper's systems.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "epochs", 5, "Passes over the clicks.", 1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "batch_size", 256, "Clicks in an update.", 1, flag_values=FLAGS
)
flags.DEFINE_float(
    "learning_rate", 0.1, "The fixed step, epsilon.", _LEAST, flag_values=FLAGS
)
flags.DEFINE_float(
    "threshold", 1.0,
    "Norm to which each tower's gradient is renormalised, th_G.", _LEAST,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_float(
    "gamma", 10.0, "Scale of the cosines.", _LEAST, flag_values=FLAGS
)
flags.DEFINE_enum(
    "negatives", "in_batch", NEGATIVES,
    "`in_batch` trains better; `random` draws --n of them, as in the paper.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "n", 4, "Negatives a query, for --negatives=random.", 1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "oov_buckets", 0,
    "Rows for trigrams with letters beyond a-z and 0-9; 8192 for texts in "
    "other scripts, 0 as in the paper.", 0,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "min_relevant", 1,
    "For a BEIR folder without clicks: grade from which a judged title of "
    "the training split counts as clicked.", 1,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(  # NumPy's bounds
    "seed", 0, "Of the weights and of the order.", 0, 2**32 - 1,
    flag_values=FLAGS,
)  # fmt: skip
SETTINGS = (
    "data", "validation", "preset", "epochs", "batch_size", "learning_rate",
    "threshold", "gamma", "negatives", "n", "oov_buckets", "min_relevant",
    "seed",
)  # fmt: skip


def main(_: list[str]) -> dict[str, Any]:
    """Trains, or resumes; returns the last epoch's figures."""
    run = RunFolder(_OUTPUT.value)
    run.read_metrics()  # a damaged file shows before the work
    run.read_history()
    settings = _settings(run)
    validation, batch_size = settings["validation"], settings["batch_size"]
    measured = (
        evaluation_batches(ClickLog(validation), batch_size)
        if validation
        else None
    )
    keras.utils.set_random_seed(settings["seed"])
    model = run.load_checkpoint() if _RESUME.value else _new_model(settings)
    log = open_log(
        settings["data"],
        settings["min_relevant"],
        write_to=run.path / "clicks.train.tsv",
    )
    clicks = log.count()
    if not _RESUME.value:
        config = {"version": dssm.__version__, **settings, "clicks": clicks}
        run.create(config, model)
    elif clicks != settings["clicks"]:
        raise InputError(
            f"{settings['data']}: found {clicks} clicks, expected the "
            f"{settings['clicks']} that the run was started with; restore "
            "them, or train anew in another --output"
        )
    print(f"{clicks:,} clicks; {model.count_params():,} parameters")
    updates = train_run(
        run,
        model,
        log,
        settings["epochs"],
        batch_size,
        settings["seed"],
        measured,
        verbose=1 if sys.stdout.isatty() else 2,
    )
    if updates:
        print(f"wrote {run.model}")
    else:
        print(
            f"{run.path}: already finished; to train longer, start anew in "
            "another --output: the schedule's length is fixed"
        )
    history = run.read_history()
    # Empty: stopped after the only epoch's updates, before its figures.
    figures: dict[str, Any] = history[-1] if history else {}
    run.add_metrics("train", figures)
    return figures


def _settings(run: RunFolder) -> dict[str, Any]:
    """The flags of a new run, or those that a run was started with."""
    if not _RESUME.value:
        run.check_new()
        if not FLAGS.data:
            raise InputError(
                "--data is missing: `api`, a BEIR folder or click files"
            )
        return {name: FLAGS[name].value for name in SETTINGS}
    settings = run.read_config()
    for name in (*SETTINGS, "clicks"):
        if name not in settings:
            raise InputError(
                f"{run.config}: {name!r} is missing, expected the settings of "
                "a run; restore the file, or train anew in another --output"
            )
    for name in SETTINGS:
        if FLAGS[name].present and FLAGS[name].value != settings[name]:
            raise InputError(
                f"--{name}={FLAGS[name].value}: the run in {run.path} was "
                f"started with {settings[name]}; leave the flag out, or train "
                "anew in another --output"
            )
    return settings


def _new_model(settings: dict[str, Any]) -> dssm.TwoTower:
    model = dssm.TwoTower.from_preset(
        settings["preset"],
        negatives=settings["negatives"],
        n=settings["n"],
        seed=settings["seed"],
        oov_buckets=settings["oov_buckets"],
    )
    model.compile(
        dssm.NesterovMomentum(
            settings["learning_rate"], threshold=settings["threshold"]
        ),
        dssm.CosineSoftmax(settings["gamma"]),
    )
    return model


run = program(main, FLAGS, __doc__, required=["output"])

if __name__ == "__main__":
    sys.exit(run())

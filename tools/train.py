"""Train two encoders on clicks.

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

FLAGS = new_flags()
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder of the run.", required=True, flag_values=FLAGS
)
_RESUME = flags.DEFINE_bool(
    "resume",
    False,
    "Go on with the run in --output, with the settings it was started with.",
    flag_values=FLAGS,
)
_DATA = flags.DEFINE_string(
    "data",
    None,
    "`api`, a BEIR folder, or click files (.tsv, .tsv.gz, globs).",
    flag_values=FLAGS,
)
_VALIDATION = flags.DEFINE_string(
    "validation",
    None,
    "Click files for the loss after each epoch.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "preset",
    "lstm_96",
    list(dssm.PRESETS),
    "Encoder: one of the paper's systems.",
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "epochs", 5, "Passes over the clicks.", 1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "batch_size", 256, "Clicks in an update.", 1, flag_values=FLAGS
)
flags.DEFINE_float(
    "learning_rate", 0.1, "The fixed step, epsilon.", 0.0, flag_values=FLAGS
)
flags.DEFINE_float(
    "threshold",
    1.0,
    "Norm to which each tower's gradient is renormalised, th_G.",
    0.0,
    flag_values=FLAGS,
)
flags.DEFINE_float(
    "gamma", 10.0, "Scale of the cosines.", 0.0, flag_values=FLAGS
)
flags.DEFINE_enum(
    "negatives",
    "in_batch",
    NEGATIVES,
    "`in_batch` trains better; `random` draws --n of them, as in the paper.",
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "n", 4, "Negatives a query, for --negatives=random.", 1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "oov_buckets",
    0,
    "Rows for trigrams with letters beyond a-z and 0-9; 8192 for texts in "
    "other scripts, 0 as in the paper.",
    0,
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "min_relevant",
    1,
    "For a BEIR folder without clicks: grade from which a judged title of "
    "the training split counts as clicked.",
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "seed", 0, "Of the weights and of the order.", flag_values=FLAGS
)
SETTINGS = (
    "data", "validation", "preset", "epochs", "batch_size", "learning_rate",
    "threshold", "gamma", "negatives", "n", "oov_buckets", "min_relevant",
    "seed",
)  # fmt: skip


def main(_: list[str]) -> dict[str, Any]:
    """Trains, or resumes; returns the last epoch's figures."""
    run = RunFolder(_OUTPUT.value)
    if _RESUME.value:
        settings = run.read_config()
        log = _clicks(settings, run)
        keras.utils.set_random_seed(settings["seed"])
        model = run.load_checkpoint()
    else:
        settings = {name: FLAGS[name].value for name in SETTINGS}
        if _DATA.value is None:
            raise InputError(
                "--data is missing: `api`, a BEIR folder or click files"
            )
        log = _clicks(settings, run)
        log.count()  # a faulty line shows before anything is written
        run.create({"version": dssm.__version__, **settings})
        keras.utils.set_random_seed(settings["seed"])
        model = _new_model(settings)
        run.save(model, run.checkpoint)
    print(f"{log.count():,} clicks; {model.count_params():,} parameters")
    validation = settings["validation"]
    train_run(
        run,
        model,
        log,
        settings["epochs"],
        settings["batch_size"],
        settings["seed"],
        evaluation_batches(ClickLog(validation), settings["batch_size"])
        if validation
        else None,
        verbose=1 if sys.stdout.isatty() else 2,
    )
    figures = {
        name: metric for name, metric in model.get_metrics_result().items()
    }
    print(f"wrote {run.model}")
    return figures


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


def _clicks(settings: dict[str, Any], run: RunFolder) -> ClickLog:
    return open_log(
        settings["data"],
        settings["min_relevant"],
        write_to=run.path / "clicks.train.tsv",
    )


run = program(main, FLAGS, __doc__)

if __name__ == "__main__":
    sys.exit(run())

r"""Train two encoders on clicks.

Example:
  lstm-dssm-train --data=clicks.tsv.gz --preset=lstm_96 --epochs=5 \
      --output=build/run

`--data` is `api` (the corpus found on this machine), a BEIR folder, or click
files: one click a line, query TAB clicked title, gzip or not, globs allowed.
The run folder gets config.json, checkpoints/, model.keras, history.csv,
metrics.json and logs/ for TensorBoard. A run that was stopped or killed, at
any moment, goes on with `lstm-dssm-train --output=RUN --resume` and ends with
the weights of an unbroken one.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
from absl import flags

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import (
    ClickLog,
    describe_bad,
    judged_negatives,
    open_files,
    open_log,
    titles_of,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.tools.program import new_flags, program
from keras_lstm_dssm.tools.train_flags import (
    NOT_FINITE,
    SETTINGS,
    allowed_bad_lines,
    define_bad_line_flags,
    define_train_flags,
    given_settings,
    is_finite,
)
from keras_lstm_dssm.training import (
    RunFolder,
    TrainingPlan,
    make_plan,
    train_run,
)
from keras_lstm_dssm.training.gate_histograms import GateHistograms
from keras_lstm_dssm.training.run_folder import locked

FLAGS = new_flags()
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder of the run.", flag_values=FLAGS
)
_RESUME = flags.DEFINE_bool(
    "resume", False,
    "Go on with the run in --output, with the settings it was started with.",
    flag_values=FLAGS,
)  # fmt: skip
define_train_flags(FLAGS)
define_bad_line_flags(FLAGS)
_SAVE_MINUTES = flags.DEFINE_float(
    "save_minutes", 10.0,
    "Also save a checkpoint within an epoch when the last is older.", 0.0,
    flag_values=FLAGS,
)  # fmt: skip
_HISTOGRAMS = flags.DEFINE_bool(
    "histograms", False,
    "Also write histograms of the gates for TensorBoard, in logs/gates.",
    flag_values=FLAGS,
)  # fmt: skip
flags.register_validator(
    "save_minutes", is_finite, NOT_FINITE, flag_values=FLAGS
)


def main(_: list[str]) -> dict[str, Any]:
    """Trains, or resumes; returns the last epoch's figures."""
    run = RunFolder(_OUTPUT.value)
    run.read_metrics()  # a damaged file shows before the work
    run.read_history()
    settings = _settings(run)
    check_folder(run.path)
    allowed = allowed_bad_lines(settings)
    measured = None
    if settings["validation"]:
        measured = open_files(settings["validation"], allowed)
        measured.files()  # what is wrong with it shows before the work
    keras.utils.set_random_seed(settings["seed"])
    clicks = open_log(
        settings["data"],
        settings["min_relevant"],
        run.path / "clicks.train.tsv",
        allowed,
    )
    clicks.files()
    plan = _plan(run, settings, clicks)
    log = plan.log
    model = (
        run.load_checkpoint() if _RESUME.value else _new_model(settings, log)
    )
    extra = (
        [GateHistograms.of(run.logs / "gates", model, log)]
        if _HISTOGRAMS.value
        else []
    )
    with locked(run.path), _sigterm_as_ctrl_c():
        _start(run, settings, model, log)
        updates = train_run(
            run,
            model,
            plan,
            measured,
            1 if sys.stdout.isatty() else 2,
            _SAVE_MINUTES.value,
            extra,
        )
        if updates:
            print(f"wrote {run.model}")
        else:
            print(
                f"{run.path}: already finished; to train longer, start anew "
                "in another --output: the schedule's length is fixed"
            )
        history = run.read_history()
        # Empty: stopped after the only epoch's updates, before its figures.
        figures: dict[str, Any] = history[-1] if history else {}
        run.add_metrics("train", figures)
        for name, given in (("data", log), ("validation", measured)):
            if given and (bad := given.bad_lines()):
                print(f"--{name}: left out bad lines: {describe_bad(bad)}")
                run.add_metrics(f"bad_lines/{name}", bad)
    return figures


def _start(
    run: RunFolder, settings: dict[str, Any], model: Any, log: ClickLog
) -> None:
    """Makes the run, or checks that it goes on with the same clicks."""
    clicks, bad = log.count(), sum(log.bad_lines().values())
    if not _RESUME.value:
        found = {"clicks": clicks, "bad_lines": bad}
        run.create({"version": dssm.__version__, **settings, **found}, model)
    elif (clicks, bad) != (settings["clicks"], settings["bad_lines"]):
        raise InputError(
            f"{settings['data']}: found {clicks} clicks and {bad} bad lines, "
            f"expected the {settings['clicks']} and {settings['bad_lines']} "
            "that the run was started with; restore them, or train anew in "
            "another --output"
        )
    print(f"{clicks:,} clicks; {model.count_params():,} parameters")


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Lets a scheduler's polite signal save a checkpoint, too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _settings(run: RunFolder) -> dict[str, Any]:
    """The flags of a new run, or those that a run was started with."""
    if not _RESUME.value:
        run.check_new()
        return given_settings(FLAGS)
    settings = run.read_config()
    for name in (*SETTINGS, "clicks", "bad_lines"):
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


def _plan(
    run: RunFolder, settings: dict[str, Any], clicks: ClickLog
) -> TrainingPlan:
    judged = None
    if settings["judged_negatives"]:
        judged = judged_negatives(settings["data"], settings["min_relevant"])
    return make_plan(
        settings,
        clicks,
        lambda: titles_of(settings["data"], clicks),
        run.path,
        judged,
    )


def _new_model(settings: dict[str, Any], log: ClickLog) -> dssm.TwoTower:
    towers = "tied" if settings["tied"] else "separate"
    if settings["equal_start"] and not settings["tied"]:
        towers = "equal_start"
    recipe = dssm.PRESETS[settings["preset"]]
    model = (
        recipe.with_encoder(oov_buckets=settings["oov_buckets"])
        .replace(
            negatives=settings["negatives"], n=settings["n"], towers=towers
        )
        .build(settings["seed"])
    )
    if model.adapts:
        model.adapt(titles_of(settings["data"], log))
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

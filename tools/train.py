"""Trains two encoders, a pair scorer, a KeyVec or a ranker.

This is the work of the program lstm-dssm-train. Its help and its flags are in
`tools/flags/train.py`, which is imported first and without TensorFlow.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data.click_log import describe_bad
from keras_lstm_dssm.distributed.cluster import in_cluster
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.run_folder import RunFolder, check_resumable
from keras_lstm_dssm.settings.presets import RANKER
from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread
from keras_lstm_dssm.tools.flagged_recipe import check_unchanged, flagged_recipe
from keras_lstm_dssm.tools.flags.train import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.ranker_flags import check_ranker_flags
from keras_lstm_dssm.tools.train_flags import allowed_bad_lines, data_options
from keras_lstm_dssm.tools.train_ranker import train_by_flags
from keras_lstm_dssm.tools.train_workers import (
    is_first_worker,
    train_by_workers,
    trains_by_workers,
)


def main(_: list[str]) -> dict[str, Any]:
    """Trains, or resumes; returns the last epoch's metrics."""
    run = RunFolder(FLAGS.output)
    check_ranker_flags(FLAGS)
    if FLAGS.preset == RANKER:
        if in_cluster():
            raise InputError("one process trains a ranker: unset TF_CONFIG")
        _check(run)
        return train_by_flags(FLAGS, run, allowed_bad_lines(FLAGS))
    options: dict[str, Any] = {
        "save_minutes": FLAGS.save_minutes,
        "histograms": FLAGS.histograms,
    }
    if trains_by_workers(FLAGS):
        epochs = _finished_epochs(run)
        _warn_without_teacher()
        train_by_workers(FLAGS, run)
        if not is_first_worker():
            return {}
        finished = bool(epochs) and run.read_history() == epochs
    elif FLAGS.resume:
        check_resumable(run.path)
        check_unchanged(FLAGS, run.read_config())
        epochs = run.read_history()
        use_one_intra_op_thread()
        with _sigterm_as_ctrl_c():
            dssm.resume(run.path, **options)
        finished = run.read_history() == epochs
    else:
        _check(run)
        _warn_without_teacher()
        use_one_intra_op_thread()
        with _sigterm_as_ctrl_c():
            dssm.train(
                FLAGS.data,
                flagged_recipe(FLAGS),
                output=run.path,
                **data_options(FLAGS),
                **options,
            )
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
    return metrics["train"]


def _finished_epochs(run: RunFolder) -> list[dict[str, float]]:
    """Checks a run that workers start or go on with; returns its figures."""
    if not FLAGS.resume:
        check_folder(run.path)
    elif run.config.exists():
        check_unchanged(FLAGS, run.read_config())
    return run.read_history()


def _check(run: RunFolder) -> None:
    """Checks the input before anything is written."""
    if not FLAGS.data:
        raise InputError(
            "--data is missing: expected `api`, a BEIR folder or click files, "
            "or documents (`api_documents` or a folder) for a KeyVec"
        )
    run.check_new()
    run.read_metrics()  # reports a damaged file early
    run.read_history()
    check_folder(run.path)


def _warn_without_teacher() -> None:
    """Warns of a new run by the preset `taught` that has no teacher."""
    is_new = not FLAGS.resume and is_first_worker()
    if is_new and FLAGS.preset == "taught" and not FLAGS.teacher:
        print(
            "warning: --preset=taught has the schedule for a --teacher, and"
            " there is none: --preset=best is the recipe without one",
            file=sys.stderr,
        )


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Treats SIGTERM, by which schedulers stop a process, like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())

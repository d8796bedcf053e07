r"""Train two encoders on clicks, a pair scorer, a KeyVec or a ranker.

Example:
  lstm-dssm-train --data=clicks.tsv.gz --preset=best --output=build/run
  lstm-dssm-train --data=api_documents --preset=keyvec --output=build/keyvec
  lstm-dssm-train --data=JUDGED --dev=JUDGED --preset=ranker \
    --features=build/run --output=build/ranker

`--data` is `api` (docstrings of installed packages), a BEIR folder, or click
files: one click a line, query TAB clicked title, gzip or not, globs allowed.
For `keyvec` it is `api_documents` or a folder with documents.jsonl.
The run folder holds config.json, checkpoints/, model.keras, history.csv,
metrics.json and logs/ for TensorBoard. A run that was stopped or killed, at
any moment, is continued by `lstm-dssm-train --output=RUN --resume` and ends
with the weights of an uninterrupted one. `--dev=JUDGED --select=mrr@10
--patience=3` measures rankings after each epoch, keeps the best epoch and
stops after 3 evaluations without a better one. `--teacher=TEACH` also learns
from the vectors of a sentence encoder, which `lstm-dssm-teach` has computed.
`--init=RUN --data=new.tsv --replay=old.tsv:0.2` starts a new run from the
weights of another one, on new clicks and a share of old ones. `--workers=2`
trains on two processes, or on as many machines of a Ray cluster.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from absl import flags

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import describe_bad
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.tools.program import definers, new_flags, program
from keras_lstm_dssm.tools.ranker_flags import (
    RANKER,
    check_ranker_flags,
    train_by_flags,
)
from keras_lstm_dssm.tools.train_flags import (
    EXPECTED_FINITE,
    allowed_bad_lines,
    check_unchanged,
    define_train_flags,
    flagged_recipe,
    is_finite,
)
from keras_lstm_dssm.tools.worker_flags import (
    define_worker_flags,
    is_first_worker,
    train_by_workers,
    trains_by_workers,
)
from keras_lstm_dssm.training import RunFolder
from keras_lstm_dssm.training.ranker_folder import check_resumable

FLAGS = new_flags()
define = definers(FLAGS)
_OUTPUT = define.string("output", None, "Folder of the run.")
_RESUME = define.bool(
    "resume", False,
    "Continue the run in --output, with the settings it was started with.",
)  # fmt: skip
define_train_flags(FLAGS)
_SAVE_MINUTES = define.float(
    "save_minutes", 10.0,
    "Minutes since the last checkpoint after which one is saved within an "
    "epoch.",
    0.0,
)  # fmt: skip
_HISTOGRAMS = define.bool(
    "histograms", False,
    "Also write histograms of the gates for TensorBoard, in logs/gates.",
)  # fmt: skip
define_worker_flags(FLAGS)
flags.register_validator(
    "save_minutes", is_finite, EXPECTED_FINITE, flag_values=FLAGS
)


def main(_: list[str]) -> dict[str, Any]:
    """Trains, or resumes; returns the last epoch's metrics."""
    run = RunFolder(_OUTPUT.value)
    check_ranker_flags(FLAGS)
    if FLAGS.preset == RANKER:
        _check(run)
        allowed = allowed_bad_lines(FLAGS.flag_values_dict())
        return train_by_flags(FLAGS, run, allowed)
    options: dict[str, Any] = {
        "save_minutes": _SAVE_MINUTES.value,
        "histograms": _HISTOGRAMS.value,
    }
    if trains_by_workers(FLAGS):
        epochs = _finished_epochs(run)
        train_by_workers(FLAGS, run)
        if not is_first_worker():
            return {}
        finished = bool(epochs) and run.read_history() == epochs
    elif _RESUME.value:
        check_resumable(run.path)
        check_unchanged(FLAGS, run.read_config())
        epochs = run.read_history()
        with _sigterm_as_ctrl_c():
            dssm.resume(run.path, **options)
        finished = run.read_history() == epochs
    else:
        _check(run)
        with _sigterm_as_ctrl_c():
            dssm.train(
                FLAGS.data,
                flagged_recipe(FLAGS),
                output=run.path,
                seed=FLAGS.seed,
                validation=FLAGS.validation,
                dev=FLAGS.dev,
                select=FLAGS.select,
                every=FLAGS.every,
                patience=FLAGS.patience,
                min_relevant=FLAGS.min_relevant,
                max_bad_lines=allowed_bad_lines(FLAGS.flag_values_dict()),
                negatives_from=FLAGS.negatives_from,
                salience=FLAGS.salience,
                teacher=FLAGS.teacher,
                init=FLAGS.init,
                replay=FLAGS.replay,
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
    if not _RESUME.value:
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


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Treats SIGTERM, by which schedulers stop a process, like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


run = program(main, FLAGS, __doc__, required=["output"])

if __name__ == "__main__":
    sys.exit(run())

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

from absl import flags

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.tools.train_flags import (
    EXPECTED_FINITE,
    define_train_flags,
    is_finite,
)
from keras_lstm_dssm.tools.worker_flags import define_worker_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string("output", None, "Folder of the run.")
define.bool(
    "resume", False,
    "Continue the run in --output, with the settings it was started with.",
)  # fmt: skip
define_train_flags(FLAGS)
define.float(
    "save_minutes", 10.0,
    "Minutes since the last checkpoint after which one is saved within an "
    "epoch.",
    0.0,
)  # fmt: skip
define.bool(
    "histograms", False,
    "Also write histograms of the gates for TensorBoard, in logs/gates.",
)  # fmt: skip
define_worker_flags(FLAGS)
for name in ("save_minutes", "start_minutes"):
    flags.register_validator(
        name, is_finite, EXPECTED_FINITE, flag_values=FLAGS
    )

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["output"])

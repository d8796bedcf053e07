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

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.settings.presets import (
    KEYVEC_PRESETS,
    RANKER,
    SCORER_PRESETS,
    TOWER_PRESETS,
)
from keras_lstm_dssm.settings.recipes import (
    KeyVecRecipe,
    Recipe,
    ScorerRecipe,
)
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools.settings_flags import (
    check_finite,
    define_bad_line_flags,
    define_settings,
)

FLAGS = new_flags()
define = definers(FLAGS)
define.string("output", None, "Folder of the run.")
define.bool(
    "resume", False,
    "Continue the run in --output, with the settings it was started with.",
)  # fmt: skip
define_settings(
    FLAGS, {"": TrainingConfig}, leave_out=["max_bad_lines"], defaults=True
)
define_bad_line_flags(FLAGS)
define.enum(
    "preset", "lstm_96",
    [*TOWER_PRESETS, *SCORER_PRESETS, *KEYVEC_PRESETS, RANKER],
    "Recipe: two towers (a system of the paper, `best`, or `taught` for "
    "--teacher), a pair scorer (such as `mv_lstm_tensor`), `keyvec` for "
    "documents, or `ranker`, boosted trees over --features "
    "(docs/ranker.md). The flags of a recipe change single values of it; "
    "their default is the preset's.",
)  # fmt: skip
define_settings(
    FLAGS,
    {
        "two towers": Recipe,
        "pair scorers": ScorerRecipe,
        "KeyVec": KeyVecRecipe,
    },
)
define.integer(
    "oov_buckets", None,
    "Two towers: embedding rows for letters beyond a-z and 0-9: 8192 for "
    "texts in other scripts; 0, as in the paper, reads all such letters as #.",
    0,
)  # fmt: skip
define.list(
    "features", [],
    "Ranker: folders of runs of two towers and of pair scorers, separated "
    "by commas, whose scores are features beside the overlap of words. "
    "The first towers find the candidates when the ranker is served.",
)  # fmt: skip
define.string(
    "encoder", None,
    "Ranker: a sentence encoder of others whose cosine is a feature, as "
    "for lstm-dssm-teach; a ranker with one cannot be exported.",
)  # fmt: skip
define.integer(
    "workers", None,
    "Two towers: train by this many processes, which Ray Train starts and "
    "restarts (docs/scaling.md). Without it, a process that finds "
    "TF_CONFIG is one of the workers that it names.", 1,
)  # fmt: skip
define.string(
    "ray_address", None,
    "With --workers: the Ray cluster, `auto` for the one of this machine; "
    "by default Ray is started here and ends with the training.",
)  # fmt: skip
define.integer(
    "worker_cpus", None,
    "With workers: cores and threads of each; by default the cluster's "
    "cores by --workers, and all cores with TF_CONFIG.", 1,
)  # fmt: skip
define.float(
    "start_minutes", 5.0,
    "With workers: minutes to wait for all of them to start.", 0.0,
)  # fmt: skip
check_finite(FLAGS, "start_minutes")

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["output"])

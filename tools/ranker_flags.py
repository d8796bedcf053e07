"""The flags of `lstm-dssm-train --preset=ranker`, and its training."""

from typing import Any

from absl import flags

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools.program import definers
from keras_lstm_dssm.training import RunFolder, TreeOptions
from keras_lstm_dssm.training.ranker_training import MINED, SELECT

RANKER = "ranker"
"""The value of `--preset` for boosted trees, which have no recipe."""

_OWN = ("features", "encoder")
_SHARED = (
    "data", "dev", "select", "patience", "min_relevant", "seed",
    "mined_negatives", "on_bad_line", "max_bad_lines", "preset", "output",
    "resume", "json", "debug", "help",
)  # fmt: skip


def define_ranker_flags(values: flags.FlagValues) -> None:
    """Defines the flags that only rankers have."""
    define = definers(values)
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


def check_ranker_flags(values: flags.FlagValues) -> None:
    """Checks that no flag is set which the preset does not use.

    Raises:
        InputError: One is.
    """
    is_ranker = values.preset == RANKER
    for name in values:
        used = name in _SHARED or name in _OWN
        if values[name].present and (not used if is_ranker else name in _OWN):
            raise InputError(
                f"--{name} is not a flag of --preset={values.preset}: leave it "
                "out"
            )


def train_by_flags(
    values: flags.FlagValues, run: RunFolder, max_bad_lines: int
) -> dict[str, Any]:
    """Trains a ranker into a run folder; returns its metrics.

    Args:
        values: The flags of the program.
        run: The run folder.
        max_bad_lines: The number of bad lines that may be left out.

    Raises:
        InputError: See `train_ranker`; or the run is to be resumed.
    """
    if values.resume:
        raise InputError(
            "--resume is not a flag of --preset=ranker, which is trained in"
            " one go: leave it out"
        )
    options = TreeOptions()
    if values.patience is not None:
        options = TreeOptions(patience=values.patience)
    dssm.train_ranker(
        values.data,
        values.features,
        encoder=values.encoder,
        output=run.path,
        dev=values.dev,
        select=values.select if values["select"].present else SELECT,
        options=options,
        seed=values.seed,
        min_relevant=values.min_relevant,
        mined_negatives=values.mined_negatives or MINED,
        max_bad_lines=max_bad_lines,
    )
    print(f"wrote {run.path}")
    return run.read_metrics()["train"]

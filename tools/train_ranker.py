"""Trains boosted trees, `lstm-dssm-train --preset=ranker`."""

from typing import Any

from absl import flags

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.ranker.train_ranker import MINED, SELECT, TreeOptions
from keras_lstm_dssm.run_folder import RunFolder


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

"""The flags that say what is trained, and how: the settings of a run."""

import functools
from collections.abc import Mapping
from typing import Any

from absl import flags

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.two_tower import NEGATIVES
from keras_lstm_dssm.training.hard_negatives import MINE_EVERY, MINE_TOP


def define_bad_line_flags(values: flags.FlagValues) -> None:
    """Defines `--on_bad_line` and `--max_bad_lines`."""
    flags.DEFINE_enum(
        "on_bad_line", "stop", ["stop", "skip"],
        "What to do at a line that is no click (no tab, several, invalid "
        "UTF-8 ...): stop and name it, or leave it out and count it.",
        flag_values=values,
    )  # fmt: skip
    flags.DEFINE_integer(
        "max_bad_lines", 100, "For --on_bad_line=skip: with more, stop.", 0,
        flag_values=values,
    )  # fmt: skip


def allowed_bad_lines(settings: Mapping[str, Any]) -> int:
    """Returns how many bad lines a log may have, by the flags' values."""
    skips = settings["on_bad_line"] == "skip"
    return settings["max_bad_lines"] if skips else 0


_LEAST = 1e-9  # absl's bounds are inclusive, and 0 trains nothing
_MOST = 1e30  # and let NaN pass; float32 overflows at 3e38

SETTINGS = (
    "data", "validation", "preset", "epochs", "batch_size", "learning_rate",
    "threshold", "gamma", "negatives", "n", "equal_start", "tied",
    "title_pairs", "hard_negatives", "mine_every", "mine_top",
    "judged_negatives", "logq", "oov_buckets", "min_relevant", "seed",
    "on_bad_line", "max_bad_lines",
)  # fmt: skip
"""Flags that a resumed run keeps, written to its config.json."""

NOT_FINITE = f"expected a finite number, {_MOST} at most"


def is_finite(value: float) -> bool:
    """Whether a number is neither NaN nor too large for float32."""
    return value <= _MOST


def define_train_flags(values: flags.FlagValues) -> None:
    """Defines the flags in `SETTINGS`, but for those of bad lines."""
    text, whole, real, switch, choice = (
        functools.partial(define, flag_values=values)
        for define in (
            flags.DEFINE_string,
            flags.DEFINE_integer,
            flags.DEFINE_float,
            flags.DEFINE_bool,
            flags.DEFINE_enum,
        )
    )
    text(
        "data",
        None,
        "`api`, a BEIR folder, or click files (.tsv, .tsv.gz, globs); or "
        "several, separated by commas.",
    )
    text("validation", None, "Click files for the loss after each epoch.")
    choice(
        "preset",
        "lstm_96",
        list(dssm.PRESETS),
        "Encoder: one of the paper's systems; or `best`, with a recipe of its "
        "own for the flags that are not given.",
    )
    whole("epochs", 5, "Passes over the clicks.", 1)
    whole("batch_size", 256, "Clicks in an update.", 1)
    real("learning_rate", 0.1, "The fixed step, epsilon.", _LEAST)
    real(
        "threshold",
        1.0,
        "Norm to which each tower's gradient is renormalised, th_G.",
        _LEAST,
    )
    real("gamma", 10.0, "Scale of the cosines.", _LEAST)
    choice(
        "negatives",
        "in_batch",
        NEGATIVES,
        "`in_batch` trains better; `random` draws --n of them, as the paper.",
    )
    whole("n", 4, "Negatives a query, for --negatives=random.", 1)
    switch(
        "equal_start", False,
        "Both encoders start from the same random weights: helps with few"
        " clicks.",
    )  # fmt: skip
    switch("tied", False, "One encoder for queries and titles.")
    whole(
        "title_pairs",
        0,
        "Also train on this many pairs for each title of --data, clicked or "
        "not: some words of the title, a fifth misspelled, and the title.",
        0,
    )
    whole(
        "hard_negatives",
        0,
        "Also this many titles a click that the model takes for answers and "
        "that were not clicked for the query, mined every --mine_every epochs.",
        0,
    )
    whole(
        "mine_every",
        MINE_EVERY,
        "Epochs between two minings; the first ones go without.",
        1,
    )
    whole(
        "mine_top",
        MINE_TOP,
        "Nearest titles a query that --hard_negatives are drawn from.",
        1,
    )
    whole(
        "judged_negatives",
        0,
        "Also this many titles a click that were judged below --min_relevant "
        "for the query; --data is a BEIR folder with such.",
        0,
    )
    switch(
        "logq",
        False,
        "Correct in-batch negatives for how often each title is clicked.",
    )
    whole(
        "oov_buckets",
        0,
        "Rows for trigrams with letters beyond a-z and 0-9; 8192 for texts in "
        "other scripts, 0 as in the paper.",
        0,
    )
    whole(
        "min_relevant",
        1,
        "For a BEIR folder without clicks: grade from which a judged title of "
        "the training split counts as clicked.",
        1,
    )
    whole("seed", 0, "Of the weights and of the order.", 0, 2**32 - 1)
    for name in ("learning_rate", "threshold", "gamma"):
        flags.register_validator(
            name, is_finite, NOT_FINITE, flag_values=values
        )


def given_settings(values: flags.FlagValues) -> dict[str, Any]:
    """Returns each setting: the flag, or the preset's recipe, or the default.

    Raises:
        InputError: `--data` is missing, or two settings exclude each other.
    """
    if not values.data:
        raise InputError(
            "--data is missing: `api`, a BEIR folder or click files"
        )
    recipe = (
        dssm.PRESETS[values.preset].to_dict() if values.preset == "best" else {}
    )
    recipe["equal_start"] = values.preset == "best"
    settings = {
        name: values[name].value
        if values[name].present
        else recipe.get(name, values[name].value)
        for name in SETTINGS
    }
    if settings["judged_negatives"] and not values["hard_negatives"].present:
        settings["hard_negatives"] = 0  # a recipe's, which these replace
    if settings["hard_negatives"] and settings["judged_negatives"]:
        raise InputError(
            "--hard_negatives and --judged_negatives: give one of them"
        )
    if settings["logq"] and settings["negatives"] != "in_batch":
        raise InputError(
            "--logq corrects in-batch negatives; got --negatives="
            f"{settings['negatives']}"
        )
    return settings

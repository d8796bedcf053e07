"""The flags of `lstm-dssm-train --preset=ranker`."""

from absl import flags

from keras_lstm_dssm.command_line import definers
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.presets import RANKER

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

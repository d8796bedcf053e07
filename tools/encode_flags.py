"""Flags of lstm-dssm-encode for output in several files, the parts."""

from absl import flags

from keras_lstm_dssm.command_line import definers
from keras_lstm_dssm.settings.choices import FORMATS

PART_FLAGS = ("shard", "rows_per_file", "format", "workers")
"""Names of flags; if any of them is set, the output is parts."""


def define_part_flags(values: flags.FlagValues) -> None:
    """Defines the flags for parts."""
    define = definers(values)
    define.string(
        "shard", "0/1",
        "Encode a share of the parts: 3/16 is number 3 of the shares 0 to 15, "
        "each of which is a process of its own, on any machine.",
    )  # fmt: skip
    define.integer(
        "rows_per_file", 1_000_000,
        "Lines of the input in a part. Memory does not depend on it.", 1,
    )  # fmt: skip
    define.enum(
        "format", "npy", list(FORMATS),
        "How parts are written: a NumPy array, with ids and hashes of titles "
        "beside it; or parquet, which needs pyarrow. Default with --workers: "
        "parquet.",
    )  # fmt: skip
    define.integer(
        "workers", None,
        "Encode all parts with this many actors of Ray, which restarts those "
        'that fail. Needs pip install "keras-lstm-dssm[ray]".', 1,
    )  # fmt: skip
    define.string(
        "ray_address", None,
        "With --workers: address of a Ray cluster, such as auto; by default "
        "Ray is started on this machine.",
    )  # fmt: skip

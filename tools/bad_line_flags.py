"""Flags of the programs that can leave out bad lines of a click log."""

from collections.abc import Mapping
from typing import Any

from absl import flags


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

"""Names of data, in options: specifications, and old clicks with a share."""

import math
import os
from typing import Any, NamedTuple

from keras_lstm_dssm.errors import InputError

API = "api"
API_SENTENCES = "api_sentences"
API_DOCUMENTS = "api_documents"
BUILT_IN = (API, API_SENTENCES, API_DOCUMENTS)
"""Names of the data sets that are made of docstrings and manuals."""

UBI = "ubi:"
"""What a data specification of a UBI folder begins with."""

_EXPECTED = "expected old clicks, a colon and a share, such as old.tsv:0.2"


def named_weights(option: str, text: str, example: str) -> dict[str, float]:
    """Reads an option of names and weights, such as `click:1,purchase:3`.

    Raises:
        InputError: It is malformed, or a weight is not a number from 0 to 1e6.
    """
    pairs = [part.rpartition(":")[::2] for part in text.split(",")]
    try:
        weights = {key.strip(): float(weight) for key, weight in pairs}
    except ValueError:
        weights = {"": 0.0}
    if "" in weights or not all(0 <= w <= 1e6 for w in weights.values()):
        raise InputError(
            f"{option} is {text!r:.80}: expected names and weights, such as"
            f" {example}"
        )
    return weights


def field_weights(fields: str) -> dict[str, float]:
    """Reads the fields of products and their weights, `title:1,brand:0.5`.

    Raises:
        InputError: It is malformed, or the title has no weight above 0.
    """
    example = "title:1,brand:0.5"
    weights = named_weights("fields", fields, example)
    if not weights.get("title"):
        raise InputError(
            f"fields is {fields!r:.80}: expected a weight above 0 for title,"
            f" which each product has, such as {example}"
        )
    return weights


def parts_of(spec: str | os.PathLike[str]) -> list[str]:
    """Returns the parts of a specification, which commas separate."""
    if not isinstance(spec, str | os.PathLike):
        raise InputError(
            f"found {spec!r:.60} ({type(spec).__name__}), expected a path;"
            " several are one text, with commas between"
        )
    spec = os.fspath(spec)
    if os.path.exists(spec):  # the name may have a comma
        return [spec]
    return [part.strip() for part in spec.split(",") if part.strip()]


def absolute_spec(spec: str) -> str:
    """Makes the paths of a data specification absolute."""

    def absolute(part: str) -> str:
        if part in BUILT_IN:
            return part
        prefix = UBI if part.startswith(UBI) else ""
        return prefix + os.path.abspath(part.removeprefix(prefix))

    return ",".join(map(absolute, parts_of(spec)))


class ReplaySpec(NamedTuple):
    """Which old clicks are mixed into a training on new clicks, how many."""

    data: str  # see `data.open_log`
    share: float  # old clicks for each new click

    @classmethod
    def parse(cls, replay: Any) -> "ReplaySpec | None":
        """Reads `"old.tsv:0.2"`, a pair of clicks and share, or `None`."""
        if replay is None:
            return None
        parts = (
            replay.rpartition(":")[::2] if isinstance(replay, str) else replay
        )
        try:
            data, share = parts
            if hasattr(data, "paths"):  # a `ClickLog`
                data = ",".join(data.paths)
            spec = cls(absolute_spec(os.fspath(data)), float(share))
        except (TypeError, ValueError):
            spec = cls("", 0.0)
        if not spec.data or not 0 < spec.share < math.inf:
            raise InputError(f"replay is {replay!r:.80}: {_EXPECTED}")
        return spec

    def __str__(self) -> str:
        return f"{self.data}:{self.share!r}"

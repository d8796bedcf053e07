"""`Settings`, the base of all settings, and `setting`, which declares a field.

The declared fields define the flags, checks and help texts of the programs.
"""

import dataclasses
import inspect
import numbers
import os
import re
from collections.abc import Collection, Mapping
from types import UnionType
from typing import Any, ClassVar, TypeVar, get_args

from keras_lstm_dssm.errors import InputError

NDCG_CUTOFFS = (1, 3, 5, 10)

MEASURES = (
    *(f"ndcg@{k}" for k in NDCG_CUTOFFS),
    "mrr@10",
    "map",
    "p@1",
    "p@10",
    "recall@10",
    "recall@100",
)
"""Ranking measures of searches for titles. Reports list them in this order."""

LIST_MEASURES = ("p@1", "mrr", "map", "ndcg@3", "ndcg@5")
"""Ranking measures of judged lists. Reports list them in this order."""

CLUSTER_MEASURES = ("f1", "v", "ari", "ami")
"""Measures of clusters: pairwise F1, V-measure, adjusted Rand index and
adjusted mutual information."""

MODES = ("rerank", "retrieve")
"""Modes of an evaluation: order judged documents, or search all documents."""

RANDOM_ORDER = "random"
"""The name of the random baseline in results."""

TOWERS = ("separate", "equal_start", "tied")
"""How the two encoders relate: different random weights, equal random weights
at the start, or one shared encoder; see `Recipe`."""

NEGATIVES = ("random", "in_batch", "corpus")
"""Sources of the negatives of two towers, see `Recipe`."""

WORDS = ("vocabulary", "stems", "trigrams")
"""Kinds of word vectors of pair scorers and KeyVecs, see `KeyVecRecipe`."""

KEY_WORDS_OF = ("summary", "document")
"""The text that a document's key words come from, see `KeyVecRecipe`."""

SALIENCE_TEACHERS = ("bm25", "trigrams", "lead")
"""Untrained methods that mark the salient sentences of a document."""

DEFAULT_SALIENCE = "bm25"

TOKENIZERS = ("space", "alphanumeric", "stemmed")
"""How BM25 and other word-based systems split texts into words."""

BM25_TERMS = ("stems", "words", "trigrams")
"""Terms of a hybrid retriever's BM25. `stems` are English, without stop words.
`trigrams` are letter trigrams of words, and letter pairs of Chinese words."""

HYBRID_PARTS = ("towers", "words", "bm25", "numbers", "hubness")
"""The parts of a hybrid retriever's score that have a weight, in the order of
the retriever's output `parts`."""

MAP_METHODS = ("tsne", "pca")
"""Methods that lay out a report's map of titles or documents."""

VECTORS = ("float32", "int8")
"""How a retriever stores the documents' vectors."""

FORMATS = ("npy", "parquet")
"""File formats of vectors that are computed in bulk."""

MAX_K = 1000
"""Default maximum number of results for a query."""

BATCH_SIZES = (
    *(1, 2, 3, 4, 6, 8, 12, 16, 24),
    *(32, 48, 64, 96, 128, 192, 256, 384, 512),
)
"""Batch sizes in `batching.config`: a server pads batches to these sizes."""

_Self = TypeVar("_Self", bound="Settings")


def setting(default: Any, **facts: Any) -> Any:
    """Declares a field of `Settings`; `_check` reads most of the `facts`."""
    # Facts that `_check` does not read:
    # `unused_if`: name of another field -> value that makes this field unused.
    # `names`: values that the flag accepts. Python code may set other values.
    # `flag`: the name of the flag; `False` for a field without a flag.
    # `joint`: `False` if a training by several workers cannot use the field.
    # `stored`: `False` if `config.json` does not hold the field.
    return dataclasses.field(default=default, metadata=facts)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of all settings; the constructor checks the values."""

    noun: ClassVar[str] = "recipe"

    def replace(self: _Self, **changes: Any) -> _Self:
        """Returns a copy with some attributes changed, and checks the copy."""
        self.check_names(changes)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns the values as a dict that can be written as JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[_Self], values: Mapping[str, Any]) -> _Self:
        """Makes settings from the result of `to_dict`."""
        cls.check_names(values)
        return cls(**values)

    @classmethod
    def check_names(cls, values: Mapping[str, Any]) -> None:
        """Raises `InputError` unless all keys of `values` are attributes."""
        names = {field.name for field in dataclasses.fields(cls)}
        for name in values:
            if name not in names:
                raise InputError(
                    f"a {cls.noun} has no {name!r}: expected one of "
                    f"{', '.join(sorted(names))}"
                )

    def check_used(self, names: Collection[str]) -> None:
        """Raises `InputError` if one of the fields `names` has no effect."""
        for field in dataclasses.fields(self):
            unused_if = field.metadata.get("unused_if", {})
            for other, value in unused_if.items():
                if field.name in names and getattr(self, other) == value:
                    reason, advice = f"without {other}", "set"
                    if value:
                        reason, advice = f"with {other}={value}", "change"
                    raise InputError(
                        f"{field.name} is not used {reason}: leave it out, or"
                        f" {advice} {other}"
                    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _plain_number(getattr(self, field.name))
            object.__setattr__(self, field.name, value)
            is_allowed, expected = _check(field, value)
            if not is_allowed:
                raise InputError(
                    f"{field.name} is {value!r}: expected {expected}"
                )


def types_of(field: dataclasses.Field[Any]) -> tuple[Any, ...]:
    """Returns the types that a field may have, such as `(int, NoneType)`."""
    is_union = isinstance(field.type, UnionType)
    return get_args(field.type) if is_union else (field.type,)


def least_of(field: dataclasses.Field[Any]) -> int:
    """Returns the least value that an `int` field allows."""
    return field.metadata.get("least", 0 if field.default == 0 else 1)


def _plain_number(value: Any) -> Any:
    """Converts a NumPy number to a Python number; keeps other values."""
    if isinstance(value, int | float) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _check(field: dataclasses.Field[Any], value: Any) -> tuple[bool, str]:
    """Returns whether a value is allowed, and describes the allowed values."""
    bounds, types = field.metadata, types_of(field)
    is_number = isinstance(value, int | float) and type(value) is not bool
    if value is None and type(None) in types:
        return True, ""
    if "choices" in bounds:
        choices = bounds["choices"]
        return value in choices, f"one of {', '.join(choices)}"
    if "each" in bounds:
        names = bounds["each"]
        is_allowed = _is_list(value) and all(name in names for name in value)
        return is_allowed, f"none, one or more of {', '.join(names)}"
    if "each_least" in bounds:
        least = bounds["each_least"]
        is_allowed = (
            _is_list(value)
            and len(value) > 0
            and all(type(number) is int and number >= least for number in value)
        )
        return is_allowed, f"whole numbers of {least} or more"
    if "path" in bounds:
        return isinstance(value, str | os.PathLike), "a path"
    if bool in types:
        return type(value) is bool, "True or False"
    if int in types:
        least, most = least_of(field), bounds.get("most", float("inf"))
        is_allowed = type(value) is int and least <= value <= most
        allowed = f"a whole number of {least} or more"
        if "most" in bounds:
            allowed = f"a whole number from {least} to {most:,}"
        return is_allowed, bounds.get("expected", allowed)
    if "below" in bounds:
        below = bounds["below"]
        is_allowed = is_number and 0 <= value < below
        return is_allowed, f"0 or more, and less than {below}"
    if "least" in bounds:
        least, most = bounds["least"], bounds.get("most")
        is_allowed = is_number and least <= value < float("inf")
        if most is None:
            return is_allowed, f"a finite number of {least:g} or more"
        return is_allowed and value <= most, f"{least:g} to {most:g}"
    if "above" in bounds:
        above = bounds["above"]
        is_allowed = is_number and above < value < float("inf")
        return is_allowed, f"a finite number above {above:g}"
    return True, ""


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str)


def help_of(cls: type) -> dict[str, str]:
    """Returns attribute -> help text, from a settings class's docstring."""
    section = re.search(
        r"^Attributes:\n(.*?)(?=^\S|\Z)",
        inspect.getdoc(cls) or "",
        re.MULTILINE | re.DOTALL,
    )
    text = inspect.cleandoc("\n" + section[1]) if section else ""
    entry = re.compile(r"^(\w+): (.*?)(?=^\w|\Z)", re.MULTILINE | re.DOTALL)
    texts = {}
    for name, description in entry.findall(text):
        line = " ".join(description.split())
        # A flag's help leaves out references, and sentences about Python.
        line = re.sub(r", see `[^`]*`| In Python [^.]*\.", "", line)
        texts[name] = re.sub(r'`"([^"`]*)"`', r"`\1`", line)
    return texts


def named_weights(option: str, text: str, example: str) -> dict[str, float]:
    """Parses names with weights from 0 to 1e6, such as `click:1,purchase:3`."""
    pairs = [pair.rpartition(":")[::2] for pair in text.split(",")]
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
    """Parses the weights of product fields, such as `title:1,brand:0.5`."""
    example = "title:1,brand:0.5"
    weights = named_weights("fields", fields, example)
    if not weights.get("title"):
        raise InputError(
            f"fields is {fields!r:.80}: expected a weight above 0 for title,"
            f" which each product has, such as {example}"
        )
    return weights

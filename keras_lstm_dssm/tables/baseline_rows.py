"""The baselines of a table: what is tried on dev, and how each is trained."""

import hashlib
import itertools
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras_lstm_dssm
from keras_lstm_dssm.baselines import (
    TOKENIZERS,
    BM25System,
    Doc2VecSystem,
    PLSASystem,
    UnigramLMSystem,
)
from keras_lstm_dssm.baselines.skip_thought import SkipThoughtSystem
from keras_lstm_dssm.data.api_paragraphs import api_paragraphs, read_paragraphs
from keras_lstm_dssm.evaluation import System
from keras_lstm_dssm.files import cache_folder, read_json, write_json
from keras_lstm_dssm.tables.dataset import DataSet
from keras_lstm_dssm.tables.table_settings import Settings

Options = dict[str, Any]
"""What is chosen on dev: `{"k1": 0.9, "b": 0.5, "tokenizer": "words"}`."""


class Trained(NamedTuple):
    """A system that is ready to be measured.

    Attributes:
        system: The system; None is random order, whose figures are exact.
        parameters: Numbers that it learnt; of one tower, as the paper counts.
        dev: Its figure on dev.
        train_seconds: Time it took to learn, without looks at dev.
        titles_per_second: Speed of its document encoder, where it has one.
        epoch: The epoch it is of, the best on dev, of those it was trained.
        history: A row for each epoch.
    """

    system: System | None
    parameters: int
    dev: float
    train_seconds: float = 0.0
    titles_per_second: float | None = None
    epoch: int | None = None
    history: tuple[dict[str, Any], ...] = ()


_SECONDS = "seconds.json"


def skip_thought(
    paragraphs: Sequence[Sequence[str]], options: Options, seed: int
) -> tuple[SkipThoughtSystem, float]:
    """Trains Skip-Thought, or reads what was trained on the same before.

    It sees no clicks, so one training serves every data set, and a uni and a
    bi one serve the combined one; they take minutes each.

    Args:
        paragraphs: What it learns from.
        options: Arguments of `SkipThoughtSystem`.
        seed: Of its weights.

    Returns:
        The system, and the seconds that its training took.
    """
    if options["mode"] == "combined":
        (uni, one), (bi, other) = (
            skip_thought(paragraphs, {**options, "mode": mode}, seed)
            for mode in ("uni", "bi")
        )
        return SkipThoughtSystem.combine(uni, bi), one + other
    key = json.dumps(
        [keras_lstm_dssm.__version__, options, seed, paragraphs],
        sort_keys=True,
    )
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    folder = Path(cache_folder(), f"skip_thought-{name}")
    # Written last, so that a folder that has it is whole.
    if (folder / _SECONDS).exists():
        taken = read_json(folder / _SECONDS)["seconds"]
        return SkipThoughtSystem.load(folder), taken
    start = time.perf_counter()
    system = SkipThoughtSystem(seed=seed, **options).fit(paragraphs)
    seconds = time.perf_counter() - start
    os.makedirs(folder, exist_ok=True)
    system.save(folder)
    write_json(folder / _SECONDS, {"seconds": seconds})
    return system, seconds


GRIDS: dict[str, dict[str, list[Any]]] = {
    "bm25": {
        "tokenizer": list(TOKENIZERS),
        "k1": [0.6, 0.9, 1.2, 1.6, 2.0],
        "b": [0.0, 0.25, 0.5, 0.75, 1.0],
    },
    "ulm": {
        "tokenizer": list(TOKENIZERS),
        "mu": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 500.0, 2000.0],
    },
    "plsa": {"tokenizer": ["alphanumeric", "stemmed"], "topics": [100, 500]},
    "doc2vec": {"tokenizer": ["alphanumeric", "stemmed"]},
    "skip_thought": {"mode": ["uni", "bi", "combined"]},
}
"""What is tried on dev; all else is as in the paper."""


def baseline_options(name: str) -> list[Options]:
    """Returns every combination of a baseline's grid, `[{}]` without one."""
    grid = GRIDS.get(name, {})
    return [
        dict(zip(grid, values, strict=True))
        for values in itertools.product(*grid.values())
    ]


def train_baseline(
    name: str, options: Options, seed: int, data: DataSet, settings: Settings
) -> Trained:
    """Trains a baseline: on the titles of the corpus, or on paragraphs."""
    if name == "random":
        return Trained(None, 0, data.dev.random()[data.dev_measure])
    options = dict(options)
    if "tokenizer" in options:
        options["tokenizer"] = TOKENIZERS[options["tokenizer"]]
    start = time.perf_counter()
    system: Any
    match name:
        case "bm25":
            system = BM25System(**options)
        case "ulm":
            system = UnigramLMSystem(**options)
        case "plsa":
            system = PLSASystem(seed=seed, **options).fit(data.titles)
        case "doc2vec":
            system = Doc2VecSystem(seed=seed, **options).fit(data.titles)
        case "skip_thought":
            path = settings.paragraphs
            text = read_paragraphs(path) if path else api_paragraphs()
            system, taken = skip_thought(text, options, seed)
            start = time.perf_counter() - taken  # perhaps long ago
        case _:
            raise ValueError(name)
    seconds = time.perf_counter() - start
    return Trained(system, system.parameters, data.dev_figure(system), seconds)

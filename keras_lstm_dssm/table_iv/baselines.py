"""The baselines of Table IV: what is tried on dev, and how each is made."""

import itertools
import time
from typing import Any

from keras_lstm_dssm.baselines import (
    TOKENIZERS,
    BM25System,
    Doc2VecSystem,
    PLSASystem,
    UnigramLMSystem,
)
from keras_lstm_dssm.data.api_paragraphs import api_paragraphs, read_paragraphs
from keras_lstm_dssm.table_iv.dataset import DataSet
from keras_lstm_dssm.table_iv.settings import Settings
from keras_lstm_dssm.table_iv.skip_thought import skip_thought
from keras_lstm_dssm.table_iv.trained import Options, Trained

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

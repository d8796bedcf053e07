"""A retriever of many titles to measure, of words that a log really has."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.benchmarks.own_towers import OwnTowers
from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.export.documents import VECTORS
from keras_lstm_dssm.export.retriever import RetrieverModule
from keras_lstm_dssm.export.saved_model import export_encoder, publish_module
from keras_lstm_dssm.export.vector_files import write_vectors
from keras_lstm_dssm.text import as_strings

_EPOCHS = 3
_BATCH = 256
_WORDS = 8
_SEED = 7


class Index(NamedTuple):
    """What was written.

    Attributes:
        queries: Distinct queries of the log.
        vectors: The titles' .npy, float32 `[n, d]`.
        models: Folder of `query_encoder` and of one retriever for each kind
            of vectors, `float32` and `int8`.
        megabytes: Size on disk of each retriever's variables.
    """

    queries: list[str]
    vectors: Path
    models: Path
    megabytes: dict[str, float]


def make_index(log: ClickLog, titles: int, queries: int, folder: Path) -> Index:
    """Trains a little, encodes the titles once, and exports them twice.

    An untrained encoder's vectors lie close together, and rounding would
    seem to lose more than it does; three epochs part them.

    Args:
        log: Clicks to train on; their titles come first in the index.
        titles: How many; made of the log's words where it has not as many.
        queries: How many to keep, at most.
        folder: Where to write.
    """
    model = OwnTowers().model
    batches = training_batches(log, _BATCH, epochs=_EPOCHS, seed=_SEED)
    model.fit(batches, shuffle=False, verbose=0)
    names = index_titles(list(islice(log.documents(), titles)), titles)
    vectors = model.document_encoder.encode(names)
    write_vectors(folder / "titles.npy", vectors)
    models = folder / "models"
    export_encoder(model.query_encoder, models / "query_encoder")
    ids = as_strings([f"title-{row}" for row in range(titles)])
    megabytes = {}
    for kind in VECTORS:
        module = RetrieverModule(model.query_encoder, ids, vectors, kind)
        version = publish_module(module, models / kind, None)
        files = (version / "variables").iterdir()
        megabytes[kind] = sum(file.stat().st_size for file in files) / 1e6
    distinct = dict.fromkeys(pair.query for pair in log)
    return Index(
        list(islice(distinct, queries)),
        folder / "titles.npy",
        models,
        megabytes,
    )


def index_titles(known: Sequence[str], titles: int) -> list[str]:
    """Fills titles up with others, of words drawn as often as they occur."""
    words = np.array([word for text in known for word in text.split()], object)
    drawn = np.random.default_rng(_SEED).choice(
        words, (titles - len(known), _WORDS)
    )
    return [*known, *map(" ".join, drawn.tolist())]

"""Retrievers of many titles: latency, memory and what rounding loses."""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.benchmarks import retriever_run
from keras_lstm_dssm.benchmarks.measure import seconds
from keras_lstm_dssm.benchmarks.processes import measured
from keras_lstm_dssm.benchmarks.retriever_index import Index, make_index
from keras_lstm_dssm.benchmarks.retriever_run import SIZES, numpy_search
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.documents import VECTORS
from keras_lstm_dssm.export.faiss_index import overlap
from keras_lstm_dssm.serving.saved_models import SavedEncoder, SavedRetriever

_KS = (10, 100)


def measure_retriever(
    log: ClickLog, titles: int, queries: int, rounds: int
) -> dict[str, Any]:
    """Searches many titles with both retrievers and with plain NumPy.

    Args:
        log: Clicks to train on, for titles and queries.
        titles: Titles in the index, 100 or more.
        queries: Single queries of one measurement; batches hold as many
            together, but there are 20 calls or more.
        rounds: Processes for each way, in turn; medians over them count.

    Returns:
        By way (`float32`, `int8`, `numpy`) what `retriever_run.measure_way`
        gives, and for the retrievers `disk_megabytes` and `recall@10`,
        `recall@100` beside exact search over the float32 vectors;
        `ratio_numpy`, NumPy's p50 by ours, above 1 where ours is faster;
        `make_seconds`, for training, encoding and exporting.
    """
    if titles < _KS[-1]:
        raise InputError(
            f"--titles_in_index={titles}: expected {_KS[-1]} or more"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made: list[Index] = []
        taken = seconds(
            lambda: made.append(make_index(log, titles, queries, folder))
        )
        (index,) = made
        (folder / "queries.txt").write_text("\n".join(index.queries), "utf-8")
        found: dict[str, list[dict[str, Any]]] = {
            way: [] for way in (*VECTORS, "numpy")
        }
        for _ in range(rounds):
            for way, results in found.items():
                results.append(_run(way, folder, queries))
        figures: dict[str, Any] = {
            way: _median(results) for way, results in found.items()
        }
        for kind, recall in _recall(index).items():
            figures[kind]["disk_megabytes"] = index.megabytes[kind]
            figures[kind] |= recall
    for kind in VECTORS:
        figures[kind]["ratio_numpy"] = {
            size: figures["numpy"][size]["p50_ms"]
            / figures[kind][size]["p50_ms"]
            for size in (f"batch_{size}" for size in SIZES)
        }
    return figures | {"make_seconds": taken}


def _run(way: str, folder: Path, queries: int) -> dict[str, Any]:
    return measured(retriever_run.__name__, way, str(folder), str(queries))


def _median(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of equal figures, nested ones too."""
    return {
        name: _median([one[name] for one in results])
        if isinstance(value, dict)
        else statistics.median(one[name] for one in results)
        for name, value in results[0].items()
    }


def _recall(index: Index) -> dict[str, dict[str, float]]:
    """Recall@k of each kind of retriever beside exact search in NumPy."""
    encoder = SavedEncoder(index.models / "query_encoder")
    vectors = np.load(index.vectors)
    asked = encoder.encode(index.queries)
    # One by one: a matrix of all scores would be large.
    exact = np.concatenate(
        [numpy_search(asked[i : i + 1], vectors, _KS[-1])[1]
         for i in range(len(asked))]
    )  # fmt: skip
    result = {}
    for kind in VECTORS:
        retriever = SavedRetriever(index.models / kind)
        hits = retriever.search(index.queries, _KS[-1])
        rows = np.array(
            [[int(hit.id.split("-")[1]) for hit in row] for row in hits]
        )
        result[kind] = {
            f"recall@{k}": overlap(exact[:, :k], rows[:, :k]) for k in _KS
        }
    return result

"""The suite `retriever` measures latency, memory and recall of retrievers.

    python -m benchmarks.retriever METHOD FOLDER QUERIES

This command measures one method of search in a process of its own, so that the
memory of other methods does not count. METHOD is `float32`, `int8` or `numpy`,
see `measure_search`. QUERIES is the number of queries to search for. The
function `write_retrievers` writes FOLDER.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clocks import medians, percentiles, seconds
from benchmarks.measure import memory_megabytes, results_of_process
from benchmarks.towers import new_model
from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Index
from keras_lstm_dssm.export.bulk.documents import DocumentRows
from keras_lstm_dssm.export.bulk.parts import write_vectors
from keras_lstm_dssm.export.export_models import export_model
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.export.graphs.retriever import VECTORS as KINDS
from keras_lstm_dssm.export.graphs.retriever import RetrieverModule
from keras_lstm_dssm.export.publish.versions import publish_module
from keras_lstm_dssm.serving.saved_models import SavedEncoder, SavedRetriever

_RECALL_KS = (10, 100)
_EPOCHS = 3
_BATCH = 256
_TITLE_WORDS = 8
_SEED = 7
_K = 10
_BATCH_SIZES = (1, 32)
_LARGEST_BATCH = 512
_FEWEST_CALLS = 20


def measure_retriever(
    log: ClickLog, title_count: int, query_count: int, rounds: int
) -> dict[str, Any]:
    """Compares retrievers, float32 and int8, with a search in NumPy."""
    if title_count < (fewest := _RECALL_KS[-1]):
        raise InputError(
            f"--titles_in_index={title_count}: expected {fewest} or more"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_seconds = seconds(
            lambda: write_retrievers(log, title_count, query_count, folder)
        )
        rounds_of: dict[str, list[dict[str, Any]]] = {
            method: [] for method in (*KINDS, "numpy")
        }
        for _ in range(rounds):
            for method, measured in rounds_of.items():
                measured.append(
                    results_of_process(__name__, method, name, str(query_count))
                )
        results: dict[str, Any] = {
            method: medians(measured) for method, measured in rounds_of.items()
        }
        for kind, recall in _recall(folder).items():
            files = (folder / "models" / kind).glob("*/variables/*")
            disk_bytes = sum(file.stat().st_size for file in files)
            results[kind] |= {**recall, "disk_megabytes": disk_bytes / 1e6}
    for kind in KINDS:
        results[kind]["ratio_numpy"] = {
            size: results["numpy"][size]["p50_ms"]
            / results[kind][size]["p50_ms"]
            for size in (f"batch_{size}" for size in _BATCH_SIZES)
        }
    return results | {"make_seconds": make_seconds}


def write_retrievers(
    log: ClickLog, title_count: int, query_count: int, folder: Path
) -> None:
    """Trains two towers; writes queries, models, and the vectors of titles."""
    model = new_model()
    batches = training_batches(log, _BATCH, epochs=_EPOCHS, seed=_SEED)
    model.fit(batches, shuffle=False, verbose=0)
    titles = list(islice(log.documents(), title_count))
    vectors = model.document_encoder.encode(fill_up_titles(titles, title_count))
    write_vectors(folder / "titles.npy", vectors)
    models = folder / "models"
    export_model(model.query_encoder, models / "query_encoder")
    rows = DocumentRows([*map(str, range(title_count))], vectors)
    for kind in KINDS:
        encoder = EncoderModule(model.query_encoder)
        module = RetrieverModule(encoder, rows, kind)
        publish_module(module, models / kind)
    distinct = dict.fromkeys(pair.query for pair in log)
    (folder / "queries.txt").write_text(
        "\n".join(islice(distinct, query_count)), "utf-8"
    )


def fill_up_titles(titles: Sequence[str], count: int) -> list[str]:
    """Adds titles of eight random words, until there are `count` titles."""
    words = np.array([word for text in titles for word in text.split()], object)
    drawn = np.random.default_rng(_SEED).choice(
        words, (count - len(titles), _TITLE_WORDS)
    )
    return [*titles, *map(" ".join, drawn.tolist())]


def measure_search(method: str, folder: Path, count: int) -> dict[str, Any]:
    """Measures latency and memory of searches for the ten best titles.

    The methods `float32` and `int8` search with an exported retriever. `numpy`
    multiplies the queries' vectors by the vectors of all titles.
    """
    queries = (folder / "queries.txt").read_text("utf-8").splitlines()
    megabytes_before = memory_megabytes("VmRSS")
    search = _new_search(method, folder)
    results: dict[str, Any] = {}
    for size in _BATCH_SIZES:
        endless = cycle(queries)
        calls = max(_FEWEST_CALLS, -(-count // size))
        batches = [list(islice(endless, size)) for _ in range(calls)]
        percentiles(search, batches[:3])  # the first calls allocate memory
        p50, p99 = percentiles(search, batches)
        results[f"batch_{size}"] = {"p50_ms": p50, "p99_ms": p99}
    resident = memory_megabytes("VmRSS") - megabytes_before
    search(list(islice(cycle(queries), _LARGEST_BATCH)))
    peak = memory_megabytes("VmHWM") - megabytes_before
    return results | {"resident_megabytes": resident, "peak_megabytes": peak}


def _new_search(method: str, folder: Path) -> Callable[[list[str]], Any]:
    if method != "numpy":
        retriever = SavedRetriever(folder / "models" / method)
        return lambda texts: retriever.search(texts, _K)
    encoder = SavedEncoder(folder / "models" / "query_encoder")
    vectors = np.load(folder / "titles.npy")
    return lambda texts: np.argpartition(
        encoder.encode(texts) @ vectors.T, -_K, axis=1
    )[:, -_K:]


def _recall(folder: Path) -> dict[str, dict[str, float]]:
    """Returns kind -> `recall@k` -> found share of the k nearest titles."""
    queries = (folder / "queries.txt").read_text("utf-8").splitlines()
    encoder = SavedEncoder(folder / "models" / "query_encoder")
    index = Index.from_vectors(np.load(folder / "titles.npy"))
    exact, _ = index.nearest(encoder.encode(queries), _RECALL_KS[-1])
    recall = {}
    for kind in KINDS:
        retriever = SavedRetriever(folder / "models" / kind)
        hits = retriever.search(queries, _RECALL_KS[-1])
        rows = np.array([[int(hit.id) for hit in row] for row in hits])
        recall[kind] = {
            f"recall@{k}": _overlap(exact[:, :k], rows[:, :k])
            for k in _RECALL_KS
        }
    return recall


def _overlap(exact: np.ndarray, approximate: np.ndarray) -> float:
    """Returns which share of `exact`, `[queries, k]`, is in `approximate`."""
    shared = exact[:, :, np.newaxis] == approximate[:, np.newaxis]
    return float(shared.any(axis=2).mean())


if __name__ == "__main__":
    method, folder, count = sys.argv[1:]
    print(json.dumps(measure_search(method, Path(folder), int(count))))

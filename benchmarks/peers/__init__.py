"""The protocol of peers, which run in separate processes.

A peer is a model of this package, rebuilt in another library. The process of a
peer prints "ready". Then each line of standard input names a task, such as
`train` or `encode`. The process measures the task, and prints the result as
JSON. In code, `work` is the name of a task. The peers in PyTorch and JAX read
settings and hashed texts from a folder, so that they need no TensorFlow.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.clocks import wall_and_cpu

_SETTINGS = "settings.json"


class Texts(NamedTuple):
    """Hashed texts, such as the queries of a batch."""

    ids: np.ndarray  # trigram ids of all words, word after word
    trigrams_per_word: np.ndarray
    words_per_text: np.ndarray


Batch = Mapping[str, np.ndarray]
"""The input of a model for one batch: name -> array."""


def as_batch(*texts: Texts) -> Batch:
    """Returns several `Texts` as one batch."""
    return {
        f"{number}/{name}": array
        for number, hashed in enumerate(texts)
        for name, array in hashed._asdict().items()
    }


def texts_of(batch: Batch) -> list[Texts]:
    """Returns the `Texts` from which `as_batch` made a batch."""
    fields = len(Texts._fields)
    arrays = list(batch.values())
    return [
        Texts(*arrays[start : start + fields])
        for start in range(0, len(arrays), fields)
    ]


def write_input(
    folder: Path, settings: Mapping[str, Any], **batches: Iterable[Batch]
) -> None:
    """Writes the settings of a peer, and the batches for each task."""
    (folder / _SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
    for work, work_batches in batches.items():
        arrays = {
            f"{number}/{name}": array
            for number, batch in enumerate(work_batches)
            for name, array in batch.items()
        }
        np.savez(folder / work, **arrays)  # type: ignore[arg-type]


def read_settings(folder: Path) -> dict[str, Any]:
    """Returns the settings that `write_input` wrote."""
    return json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))


def read_batches(folder: Path, work: str) -> list[dict[str, np.ndarray]]:
    """Returns the batches that `write_input` wrote for a task, in order."""
    batches: list[dict[str, np.ndarray]] = []
    with np.load(folder / f"{work}.npz") as file:
        for key in file.files:
            number, _, name = key.partition("/")
            if int(number) == len(batches):
                batches.append({})
            batches[-1][name] = file[key]
    return batches


def answer(works: Mapping[str, Callable[[], Any]]) -> None:
    """Prints "ready", then the result of each task named on standard input."""
    print("ready", flush=True)
    for line in sys.stdin:
        result = np.asarray(works[line.strip()]())
        print(json.dumps(result.tolist()), flush=True)


def answer_as_towers(
    folder: Path,
    prepare: Callable[[Texts], Any],
    train: Callable[[list[list[Any]]], Any],
    encode: Callable[[list[Any]], Any],
) -> None:
    """Runs the tasks `train` and `encode` of two towers, see `answer`.

    `prepare` converts hashed texts to the input of a tower. `train` takes the
    inputs of both towers for each batch, and returns the wall and processor
    seconds of a step. `encode` takes the input of the document tower for each
    batch. `answer_as_towers` measures the time of `encode`.
    """
    pairs, titles = (
        [
            list(map(prepare, texts_of(batch)))
            for batch in read_batches(folder, work)
        ]
        for work in ("train", "encode")
    )
    batches = [texts for (texts,) in titles]
    answer(
        {
            "train": partial(train, pairs),
            "encode": partial(wall_and_cpu, partial(encode, batches)),
        }
    )

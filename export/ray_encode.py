"""Encodes titles into parts with the actors of Ray Data.

The rows of the dataset are the numbers of the parts; each actor reads the
titles of a part, encodes them and writes the part, as `encode_shard` does, so
that parts are the same bytes, whoever writes them. Ray Data deals parts to
idle actors, and gives those of an actor or a node that is gone to others.
All machines must see the input and the output under the same paths.

Source: https://docs.ray.io/en/latest/data/batch_inference.html
"""

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.encode_parts import (
    PartJob,
    PartResult,
    encode_part,
)
from keras_lstm_dssm.export.part_files import part_name
from keras_lstm_dssm.export.title_files import (
    TitleReader,
    count_lines,
    open_titles,
)
from keras_lstm_dssm.version import __version__
from keras_lstm_dssm.workers.ray_cluster import ray_cluster

_STORE_BYTES = 200 << 20  # vectors never pass through Ray's object store
# TensorFlow reads them when it loads its first model.
_THREADS = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def encode_with_ray(
    saved_model: str,
    job: PartJob,
    workers: int,
    address: str | None = None,
) -> Iterator[PartResult]:
    """Encodes all parts that are not complete, with actors of Ray Data.

    Args:
        saved_model: Folder of the exported encoder, on all machines.
        job: What is written, and where.
        workers: Number of actors, of one CPU each.
        address: Address of a Ray cluster, such as `"auto"`; `None` starts
            Ray on this machine, or uses the Ray of this process.

    Yields:
        The result of each part, as it is complete.

    Raises:
        InputError: Ray is not installed, there is no cluster, or it has
            fewer CPUs than workers; or see `encode_shard`.
    """
    ray = import_optional("ray", "ray")
    data = import_optional("ray.data", "ray")
    job = job._replace(
        folder=job.folder.resolve(), files=[*map(os.path.abspath, job.files)]
    )
    job.folder.mkdir(parents=True, exist_ok=True)
    # Ray needs a CPU for its own tasks.
    local = {"num_cpus": workers + 1, "object_store_memory": _STORE_BYTES}
    with ray_cluster(ray, address, **local):
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < workers:
            raise InputError(
                f"--workers={workers}: found a Ray cluster of {cpus} CPUs, "
                "expected one for each worker: lower --workers, or add nodes"
            )
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        parts = _parts(job, _counts(ray, job, address))
        results = data.from_items(
            parts, override_num_blocks=len(parts)
        ).map_batches(
            _PartActor,
            fn_constructor_args=(
                os.path.abspath(saved_model),
                job,
                __version__,
            ),
            batch_size=1,
            compute=data.ActorPoolStrategy(size=min(workers, len(parts))),
            num_cpus=1,
        )
        for row in results.iter_rows():
            if row["error"]:
                raise InputError(row["error"])
            yield PartResult(
                row["name"],
                int(row["rows"]),
                float(row["seconds"]),
                bool(row["was_complete"]),
                bool(row["last"]),
            )


class PartEncoder:
    """Encodes parts of titles; the class whose objects are actors of Ray Data.

    Args:
        saved_model: Folder of the exported encoder.
        job: What is written, and where.
        version: The version of this package in the process that starts it.

    Call arguments:
        batch: `file_number` and `part`, int `[n]`.

    Returns:
        The fields of `PartResult` and `error`, arrays `[n]`; `error` is ""
        or one line.
    """

    def __init__(
        self, saved_model: str, job: PartJob, version: str = __version__
    ) -> None:
        self._saved_model = saved_model
        self._job = job
        self._version = version
        self._encode: Any = None
        # The file that was read last, and the part that follows in it.
        self._reader: tuple[int, int, TitleReader] | None = None

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Encodes the parts of a batch."""
        rows = [
            self._row(int(file_number), int(part))
            for file_number, part in zip(
                batch["file_number"], batch["part"], strict=True
            )
        ]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _row(self, file_number: int, part: int) -> dict[str, Any]:
        name = part_name(file_number, part)
        result = PartResult(name, 0, 0.0, False, False)
        error = ""
        try:
            result = self._part(file_number, part)
        except (InputError, OSError) as problem:
            # A full disk's error names no file in its message.
            where = getattr(problem, "filename", None)
            error = f"{socket.gethostname()}, {name}: " + (
                f"{where}: {getattr(problem, 'strerror', problem)}"
                if where
                else str(problem)
            )
        return {**result._asdict(), "error": error}

    def _part(self, file_number: int, part: int) -> PartResult:
        if self._encode is None:
            self._encode = _load(self._saved_model, self._version)
        lines, reader, next_part = self._job.lines, None, 0
        if self._reader and self._reader[0] == file_number:
            _, next_part, reader = self._reader
        if reader is None or next_part > part:
            reader, next_part = open_titles(self._job.files[file_number]), 0
        self._reader = None  # it is of no use after an error
        reader.skip((part - next_part) * lines)
        result = encode_part(self._encode, self._job, file_number, part, reader)
        self._reader = file_number, part + 1, reader
        return result


class _PartActor(PartEncoder):
    """A `PartEncoder` in a process of its own, for which it has one CPU."""

    def __init__(self, saved_model: str, job: PartJob, version: str) -> None:
        os.environ.update(_THREADS)
        super().__init__(saved_model, job, version)


def _load(saved_model: str, version: str) -> Any:
    if version != __version__:
        raise InputError(
            f"found keras-lstm-dssm {__version__} on this worker, expected "
            f"{version} as where it was started: install the same version"
        )
    from keras_lstm_dssm.serving.saved_models import SavedEncoder

    return SavedEncoder(saved_model).encode


def _counts(ray: Any, job: PartJob, address: str | None) -> list[int]:
    """Counts the lines of all files, several files at once.

    In a cluster its machines count. On one machine threads of this process
    do, since each new process would first import TensorFlow.
    """
    if address is None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [*pool.map(count_lines, job.files)]
    count = ray.remote(num_cpus=1)(_count)
    counts = ray.get([count.remote(path) for path in job.files])
    problems = [problem for _, problem in counts if problem]
    if problems:
        raise InputError(problems[0])
    return [lines for lines, _ in counts]


def _parts(job: PartJob, counts: Sequence[int]) -> list[dict[str, int]]:
    return [
        {"file_number": number, "part": part}
        for number, lines in enumerate(counts)
        for part in range(max(1, -(-lines // job.lines)))
    ]


def _count(path: str) -> tuple[int, str]:
    try:
        return count_lines(path), ""
    except InputError as error:
        return 0, str(error)

"""Encodes large files of documents into parts, in shards or on Ray.

A part has the vectors for `PartJob.lines` lines of an input file. A shard is a
share of the parts. `encode_shard` encodes one shard, in one process.
`encode_with_ray` encodes all parts: it makes a Ray dataset with a row for each
part, and Ray Data assigns the rows to idle actors. Both functions write the
same bytes. All machines must see the input and the output under the same paths.

Source: https://docs.ray.io/en/latest/data/batch_inference.html
"""

import hashlib
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.distributed.on_ray import ray_cluster
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.bulk.documents import (
    DocumentReader,
    Documents,
    count_lines,
    open_document_file,
)
from keras_lstm_dssm.export.bulk.parts import (
    PartInfo,
    PartRows,
    locked_part,
    part_name,
    read_info,
    write_info,
    writing_part,
)
from keras_lstm_dssm.fingerprints import title_hashes
from keras_lstm_dssm.version import __version__

LINES_AT_ONCE = 65_536
"""Maximum number of titles that are in memory and encoded at once."""


class Shard(NamedTuple):
    """Shard `number`, counted from 0, of `shards` shards.

    Part p of input file f belongs to the shard (f + p) mod `shards`.
    """

    number: int = 0
    shards: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parses `"3/16"`: shard 3 of the shards 0 to 15."""
        match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        if not match or not int(match[1]) < int(match[2]):
            raise InputError(
                f"shard is {text!r}: expected a number, a slash and the count "
                "of shards, such as 0/16 to 15/16 for 16 shards"
            )
        return cls(int(match[1]), int(match[2]))


class PartJob(NamedTuple):
    """Settings that all parts of an output share."""

    folder: Path  # output folder
    files: Sequence[str]  # paths of the input files
    lines: int  # input lines of a part; a file's last part may have fewer
    kind: str  # format of the parts, one of `FORMATS`
    encoder_sha256: str  # fingerprint of the encoder


class PartResult(NamedTuple):
    """A complete part."""

    name: str
    rows: int  # number of titles
    seconds: float  # time of encoding and writing; 0 if `was_complete`
    was_complete: bool  # whether an earlier run wrote the part
    last: bool  # whether this is the last part of its input file


Encode = Callable[[list[str]], Any]
"""A function from n texts to their vectors, float32 `[n, d]`."""

LoadEncoder = Callable[[], Encode]
"""Picklable function that loads an encoder in another process."""


def encode_shard(
    encode: Encode, job: PartJob, shard: Shard | None = None
) -> Iterator[PartResult]:
    """Encodes the parts of a shard; by default all parts of the input."""
    number, shards = shard or Shard()
    for file_number, path in enumerate(job.files):
        reader, part = open_document_file(path), 0
        while part == 0 or not reader.at_end:
            if (file_number + part) % shards == number:
                yield encode_part(encode, job, file_number, part, reader)
            else:
                reader.skip(job.lines)
            part += 1


def encode_part(
    encode: Encode,
    job: PartJob,
    file_number: int,
    part: int,
    reader: DocumentReader,
) -> PartResult:
    """Encodes the next part of `reader`; a complete part is only checked."""
    name = part_name(file_number, part)
    with locked_part(job.folder, name):
        if complete := read_info(job.folder, name):
            return _compare_part(job, name, complete, reader)
        start = time.monotonic()
        digest, rows, tagged = hashlib.sha256(), 0, 0
        dimension = encode([""]).shape[1]
        with writing_part(job.folder, name, job.kind, dimension) as write:
            for chunk in reader.take(job.lines, LINES_AT_ONCE):
                if chunk.ids:
                    hashes = _hash(digest, chunk)
                    vectors = encode(chunk.titles)
                    titles = [" ".join(title.split()) for title in chunk.shown]
                    write(
                        PartRows(chunk.ids, vectors, hashes, titles, chunk.tags)
                    )
                    rows += len(chunk.ids)
                    tagged += sum(map(bool, chunk.tags))
        last = reader.at_end
        info = PartInfo(
            job.kind, Path(job.files[file_number]).name, file_number,
            len(job.files), part, last, job.lines, rows, dimension,
            digest.hexdigest(), job.encoder_sha256, tagged,
        )  # fmt: skip
        write_info(job.folder, name, info)
        return PartResult(name, rows, time.monotonic() - start, False, last)


def _compare_part(
    job: PartJob, name: str, info: PartInfo, reader: DocumentReader
) -> PartResult:
    """Checks that a complete part agrees with `job` and `reader`."""
    for setting, found, expected in (
        ("encoder", info.encoder_sha256, job.encoder_sha256),
        ("--rows_per_file", info.lines, job.lines),
        ("--format", info.format, job.kind),
        ("number of files", info.files, len(job.files)),
    ):
        _check(job, name, setting, found, expected)
    digest, rows = hashlib.sha256(), 0
    for chunk in reader.take(job.lines, LINES_AT_ONCE):
        rows += len(chunk.ids)
        _hash(digest, chunk)
    setting = "hash of ids, titles and tags"
    _check(job, name, setting, info.input_sha256, digest.hexdigest())
    setting = "value of `last` (whether it is the last part of a file)"
    _check(job, name, setting, info.last, reader.at_end)
    return PartResult(name, rows, 0.0, True, info.last)


def _hash(digest: Any, documents: Documents) -> np.ndarray:
    """Adds ids, titles and tags to a digest; returns the titles' hashes."""
    hashes = title_hashes(documents.titles)
    tag_rows = documents.tags or [()] * len(documents.ids)
    for key, text_hash, tags in zip(
        documents.ids, hashes, tag_rows, strict=True
    ):
        digest.update(f"{key}\n".encode("utf-8", "surrogateescape"))
        digest.update(text_hash.tobytes())
        if tags:
            digest.update(f"\t{','.join(tags)}\n".encode())
    return hashes


def _check(
    job: PartJob, name: str, setting: str, found: Any, expected: Any
) -> None:
    if found != expected:
        raise InputError(
            f"{job.folder}/{name}: found a part with another {setting}, "
            f"{str(found):.12}, expected {str(expected):.12}: name another "
            "--output, or remove the folder"
        )


_STORE_BYTES = 200 << 20  # object store of a local Ray cluster, without vectors
# Environment variables that limit TensorFlow to one thread in each actor.
_THREADS = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def encode_with_ray(
    load_encoder: LoadEncoder,
    job: PartJob,
    workers: int,
    address: str | None = None,  # of a Ray cluster; None starts a local cluster
) -> Iterator[PartResult]:
    """Encodes all parts with `workers` Ray actors of one CPU each."""
    ray = import_optional("ray", "ray")
    data = import_optional("ray.data", "ray")
    job = job._replace(
        folder=job.folder.resolve(), files=[*map(os.path.abspath, job.files)]
    )
    job.folder.mkdir(parents=True, exist_ok=True)
    # Ray needs one more CPU, for internal tasks.
    local = {"num_cpus": workers + 1, "object_store_memory": _STORE_BYTES}
    with ray_cluster(ray, address, **local):
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < workers:
            raise InputError(
                f"--workers={workers}: found a Ray cluster of {cpus} CPUs, "
                "expected a CPU for each worker: lower --workers, or add nodes"
            )
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        parts = [
            {"file_number": number, "part": part}
            for number, lines in enumerate(_counts(ray, job, address))
            for part in range(max(1, -(-lines // job.lines)))
        ]
        results = data.from_items(
            parts, override_num_blocks=len(parts)
        ).map_batches(
            PartEncoder,
            fn_constructor_args=(load_encoder, job, __version__),
            batch_size=1,
            compute=data.ActorPoolStrategy(size=min(workers, len(parts))),
            num_cpus=1,
            runtime_env={"env_vars": _THREADS},
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
    """The actor of Ray Data that encodes parts."""

    def __init__(
        self,
        load_encoder: LoadEncoder,
        job: PartJob,
        version: str = __version__,
    ) -> None:
        self._load_encoder = load_encoder
        self._job = job
        self._version = version
        self._encode: Encode | None = None
        # Index of the open file, index of the file's next part, and the reader.
        self._reader: tuple[int, int, DocumentReader] | None = None

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Encodes n parts; returns `PartResult`'s fields and `error`, `[n]`."""
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
            # The message of an OSError may omit the file's path.
            path = getattr(problem, "filename", None)
            error = f"{socket.gethostname()}, {name}: " + (
                f"{path}: {getattr(problem, 'strerror', problem)}"
                if path
                else str(problem)
            )
        return {**result._asdict(), "error": error}

    def _part(self, file_number: int, part: int) -> PartResult:
        if self._encode is None:
            if self._version != __version__:
                raise InputError(
                    f"found keras-lstm-dssm {__version__} on this worker, "
                    f"expected {self._version} as in the starting process: "
                    "install the same version"
                )
            self._encode = self._load_encoder()
        lines, reader, next_part = self._job.lines, None, 0
        if self._reader and self._reader[0] == file_number:
            _, next_part, reader = self._reader
        if reader is None or next_part > part:
            reader = open_document_file(self._job.files[file_number])
            next_part = 0
        self._reader = None  # an error below makes the reader unusable
        reader.skip((part - next_part) * lines)
        result = encode_part(self._encode, self._job, file_number, part, reader)
        self._reader = file_number, part + 1, reader
        return result


def _counts(ray: Any, job: PartJob, address: str | None) -> list[int]:
    """Counts each file's lines, in threads or on the Ray cluster `address`."""
    if address is None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [*pool.map(count_lines, job.files)]
    count = ray.remote(num_cpus=1)(_count)
    counts = ray.get([count.remote(path) for path in job.files])
    problems = [problem for _, problem in counts if problem]
    if problems:
        raise InputError(problems[0])
    return [lines for lines, _ in counts]


def _count(path: str) -> tuple[int, str]:
    try:
        return count_lines(path), ""
    except InputError as error:
        return 0, str(error)

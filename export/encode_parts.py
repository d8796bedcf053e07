"""Encodes titles into the parts of a folder, a share of them or all.

Part k of file f holds a run of at most `lines` lines of that file. Shard i of
n encodes the parts with (f + k) % n == i, so that shards share no state: they
can be the jobs of an array, on machines that see one folder.
"""

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.part_files import (
    PartInfo,
    PartRows,
    part_name,
    read_info,
    write_info,
)
from keras_lstm_dssm.export.part_writer import PartWriter
from keras_lstm_dssm.export.title_files import (
    TitleReader,
    Titles,
    open_titles,
)
from keras_lstm_dssm.fingerprints import title_hashes

LINES_AT_ONCE = 65_536
"""Number of titles that are encoded at once, and are in memory."""


class Shard(NamedTuple):
    """A share of the parts.

    Attributes:
        number: Number of the share, from 0.
        shares: How many there are.
    """

    number: int = 0
    shares: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Reads `"3/16"`: share 3 of the shares 0 to 15.

        Raises:
            InputError: It is something else.
        """
        match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        if not match or not int(match[1]) < int(match[2]):
            raise InputError(
                f"shard is {text!r}: expected a number, a slash and how many "
                "shards there are, from 0/16 to 15/16"
            )
        return cls(int(match[1]), int(match[2]))


WHOLE = Shard()
"""The only share of all parts."""


class PartJob(NamedTuple):
    """Says how parts are written.

    Attributes:
        folder: The folder of the parts.
        files: The files of titles.
        lines: Number of lines in a part.
        kind: One of `part_files.FORMATS`.
        encoder_sha256: Fingerprint of the encoder.
    """

    folder: Path
    files: Sequence[str]
    lines: int
    kind: str
    encoder_sha256: str


class PartResult(NamedTuple):
    """What has become of a part.

    Attributes:
        name: Its name.
        rows: Number of its titles.
        seconds: The time it took.
        was_complete: Whether it was complete before.
        last: Whether it is the last part of its file.
    """

    name: str
    rows: int
    seconds: float
    was_complete: bool
    last: bool


Encode = Callable[[list[str]], Any]
"""A function from n titles to their vectors, float32 `[n, d]`."""


def encode_shard(
    encode: Encode, job: PartJob, shard: Shard = WHOLE
) -> Iterator[PartResult]:
    """Encodes the parts of a shard that are not complete.

    Args:
        encode: The encoder.
        job: What is written, and where.
        shard: The share of the parts.

    Yields:
        The result of each part, in the order of the input.

    Raises:
        InputError: The input is wrong; or a part is complete, but of other
            titles or of another encoder.
    """
    for file_number, path in enumerate(job.files):
        reader, part = open_titles(path), 0
        while part == 0 or not reader.at_end:
            if (file_number + part) % shard.shares == shard.number:
                yield encode_part(encode, job, file_number, part, reader)
            else:
                reader.skip(job.lines)
            part += 1


def encode_part(
    encode: Encode,
    job: PartJob,
    file_number: int,
    part: int,
    reader: TitleReader,
) -> PartResult:
    """Encodes one part, unless it is complete.

    The titles of a complete part are read, and compared with it.

    Args:
        encode: The encoder.
        job: What is written, and where.
        file_number: Index of the part's file.
        part: Index of the part in its file.
        reader: The file, at the first line of the part.

    Raises:
        InputError: See `encode_shard`.
    """
    start = time.monotonic()
    name = part_name(file_number, part)
    digest, rows, tagged = hashlib.sha256(), 0, 0
    chunks = reader.take(job.lines, LINES_AT_ONCE)
    known = read_info(job.folder, name)
    if known:
        for what, found, expected in (
            ("encoder", known.encoder_sha256, job.encoder_sha256),
            ("--rows_per_file", known.lines, job.lines),
            ("--format", known.format, job.kind),
            ("number of files", known.files, len(job.files)),
        ):
            _check(job, name, what, found, expected)
        for chunk in chunks:
            rows += len(chunk.ids)
            _hash(digest, chunk)
        _check(job, name, "titles", known.input_sha256, digest.hexdigest())
        _check(job, name, "number of lines", known.last, reader.at_end)
        return PartResult(name, rows, 0.0, True, known.last)
    dimension = encode([""]).shape[1]
    with PartWriter(job.folder, name, job.kind, dimension) as writer:
        for chunk in chunks:
            if chunk.ids:
                hashes = _hash(digest, chunk)
                vectors = encode(chunk.titles)
                writer.write(PartRows(chunk.ids, vectors, hashes, chunk.tags))
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


def _hash(digest: Any, titles: Titles) -> Any:
    hashes = title_hashes(titles.titles)
    tags = titles.tags or [()] * len(titles.ids)
    for key, title_hash, of_one in zip(titles.ids, hashes, tags, strict=True):
        digest.update(f"{key}\n".encode("utf-8", "surrogateescape"))
        digest.update(title_hash.tobytes())
        if of_one:
            digest.update(f"\t{','.join(of_one)}\n".encode())
    return hashes


def _check(
    job: PartJob, name: str, what: str, found: Any, expected: Any
) -> None:
    if found != expected:
        raise InputError(
            f"{job.folder}/{name}: found a part with another {what}, "
            f"{str(found):.12}, expected {str(expected):.12}: name another "
            "--output, or remove the folder"
        )

"""The files of one part of encoded titles: written atomically, read back.

A part has a name, such as `part-00002-00013`: the third file of the input,
and its fourteenth run of lines. `NAME.json` describes it and is written last,
so that a part with this file is complete.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.documents import read_vectors
from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.fingerprints import HASH_BYTES

_EXPECTED = "as lstm-dssm-encode writes it: restore the part, or encode again"


class PartInfo(NamedTuple):
    """Describes one part of the vectors that `lstm-dssm-encode` writes.

    It is stored beside the vectors, in the file `.json` of the part.

    Attributes:
        format: One of `FORMATS`.
        file: Name of the input file, without its folder.
        file_number: Index of the file among those of the input.
        files: Number of input files.
        part: Index of the part in its file.
        last: Whether it is the last part of its file.
        lines: Number of lines in each part of a file but the last.
        rows: Number of titles.
        dimension: Width of a vector.
        input_sha256: Hash of ids, titles and tags.
        encoder_sha256: Fingerprint of the encoder.
        tagged: Number of titles that have tags.
    """

    format: str
    file: str
    file_number: int
    files: int
    part: int
    last: bool
    lines: int
    rows: int
    dimension: int
    input_sha256: str
    encoder_sha256: str
    tagged: int = 0


def part_name(file_number: int, part: int) -> str:
    """Returns the name of a part, without a suffix."""
    return f"part-{file_number:05}-{part:05}"


def read_info(folder: Path, name: str) -> PartInfo | None:
    """Reads the description of a part; `None` if the part is not complete.

    Raises:
        InputError: The file is damaged.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        info = PartInfo(**read_json(path))
    except TypeError as error:
        raise InputError(f"{path}: {error}; {_EXPECTED}") from None
    data = folder / f"{name}.{info.format}"
    if not data.exists():
        raise InputError(f"{data}: not found, expected a part {_EXPECTED}")
    return info


def write_info(folder: Path, name: str, info: PartInfo) -> None:
    """Completes a part by its description; removes what other starts left."""
    write_json(folder / f"{name}.json", info._asdict())
    for partial in folder.glob(f".partial-*-{name}.*"):
        partial.unlink(missing_ok=True)


class PartRows(NamedTuple):
    """The rows of a part, or some of them.

    Attributes:
        ids: The id of each title.
        vectors: float32 `[n, d]`.
        hashes: Hashes of the titles, uint8 `[n, 16]`.
        tags: The tags of each title; none if no title has any.
    """

    ids: list[str]
    vectors: np.ndarray
    hashes: np.ndarray
    tags: Sequence[Sequence[str]] = ()

    @property
    def tags_of_each(self) -> Sequence[Sequence[str]]:
        """The tags of each title; an empty sequence for one without tags."""
        return self.tags or [()] * len(self.ids)


def tag_lines(tags: Iterable[Sequence[str]]) -> Iterable[str]:
    """Returns the lines of a file of tags: one a title, separated by commas."""
    return (f"{','.join(of_one)}\n" for of_one in tags)


def read_part(folder: Path, name: str, info: PartInfo) -> PartRows:
    """Reads a part.

    Raises:
        InputError: A file is missing or damaged.
    """
    if not info.rows:
        return PartRows(
            [],
            np.empty((0, info.dimension), np.float32),
            np.empty((0, HASH_BYTES), np.uint8),
        )
    read = _read_npy if info.format == "npy" else _read_parquet
    rows = read(folder / name, info.tagged > 0)
    shapes = (
        len(rows.ids), rows.vectors.shape, rows.hashes.shape,
        len(rows.tags_of_each), sum(map(bool, rows.tags)),
    )  # fmt: skip
    expected = (
        info.rows, (info.rows, info.dimension), (info.rows, HASH_BYTES),
        info.rows, info.tagged,
    )  # fmt: skip
    if shapes != expected:
        raise InputError(
            f"{folder / name}: found {shapes[0]:,} ids, vectors of shape "
            f"{list(shapes[1])} and {shapes[4]:,} titles with tags, expected "
            f"{list(expected[1])} and {info.tagged:,}, {_EXPECTED}"
        )
    return rows


def _read_npy(base: Path, tagged: bool) -> PartRows:
    vectors = read_vectors(base.with_name(f"{base.name}.npy"))
    ids = base.with_name(f"{base.name}.ids").read_bytes().decode()
    hashes = base.with_name(f"{base.name}.hashes").read_bytes()
    whole = len(hashes) - len(hashes) % HASH_BYTES
    tags: list[list[str]] = []
    if tagged:
        lines = base.with_name(f"{base.name}.tags").read_bytes().decode()
        tags = [
            line.split(",") if line else [] for line in lines.split("\n")[:-1]
        ]
    return PartRows(
        ids.split("\n")[:-1],
        vectors,
        np.frombuffer(hashes[:whole], np.uint8).reshape(-1, HASH_BYTES),
        tags,
    )


def _read_parquet(base: Path, tagged: bool) -> PartRows:
    arrow = import_optional("pyarrow", "parquet")
    parquet = import_optional("pyarrow.parquet", "parquet")
    path = base.with_name(f"{base.name}.parquet")
    try:
        table = parquet.read_table(path).combine_chunks()
        vectors = table["vector"].combine_chunks()
        hashes = table["title_hash"].combine_chunks()
        width = vectors.type.list_size
        return PartRows(
            table["id"].to_pylist(),
            vectors.flatten().to_numpy().reshape(-1, width),
            np.frombuffer(b"".join(hashes.to_pylist()), np.uint8).reshape(
                -1, HASH_BYTES
            ),
            table["tags"].to_pylist() if tagged else (),
        )
    except (OSError, KeyError, ValueError, arrow.ArrowException) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{path}: {reason}; expected a part {_EXPECTED}"
        ) from error

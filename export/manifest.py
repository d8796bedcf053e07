"""MANIFEST.sha256: the digests of a version's files, written and checked."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from keras_lstm_dssm.errors import InputError

MANIFEST = "MANIFEST.sha256"
"""Name of the file in a version's folder, as `sha256sum -c` reads it."""

_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")
_MAX_BYTES = 1 << 24


def write_manifest(folder: str | os.PathLike[str]) -> Path:
    """Writes the digest and the path of each file in a folder.

    Args:
        folder: A version's folder, whose other files are complete.

    Returns:
        The file, `folder/MANIFEST.sha256`.

    Raises:
        InputError: The folder has a symbolic link, a device or a pipe, or a
            name with a line break or a backslash.

    Example:
        >>> print(write_manifest("models/scorer/1").read_text())
        f1d2...  assets.extra/tf_serving_warmup_requests
        8c45...  saved_model.pb
        ...
    """
    path = Path(folder, MANIFEST)
    lines = [
        f"{_digest(Path(folder, name))}  {name}\n" for name in _files(folder)
    ]
    try:
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        error.filename = str(path)  # that of a full disk names no file
        raise
    return path


def verify_manifest(folder: str | os.PathLike[str]) -> None:
    """Checks that a folder has exactly the files of its manifest.

    This finds files that are damaged, missing or added. It does not tell who
    wrote them: whoever can write in the folder can write the manifest, too,
    unless its own digest is compared with one that is kept elsewhere.

    Args:
        folder: A version's folder.

    Raises:
        InputError: There is no manifest, it cannot be read, or a file is
            missing, different, not listed or no plain file.

    Example:
        >>> verify_manifest("models/retriever/1")
    """
    listed = _read(Path(folder, MANIFEST))
    found = set(_files(folder))
    for name in sorted(listed.keys() | found):
        if name not in found:
            problem = f"it is missing, and {MANIFEST} lists it"
        elif name not in listed:
            problem = f"{MANIFEST} does not list it"
        elif _digest(Path(folder, name)) != listed[name]:
            problem = f"found another content than {MANIFEST} says"
        else:
            continue
        raise InputError(
            f"{Path(folder, name)}: {problem}; restore the version from its"
            " export, or export it again"
        )


def _read(path: Path) -> dict[str, str]:
    """Returns the digests of a manifest, by the files' paths."""
    try:
        if path.is_symlink() or not path.is_file():
            raise FileNotFoundError(2, "no such plain file")
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError("it has more than 16 MiB")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path}: {reason}; export the version again with this release,"
            " which writes the file, or serve it without --verify"
        ) from error
    digests: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in digests:
            raise InputError(
                f"{path}:{number}: found {line!r:.80}, expected a SHA-256"
                " digest, two spaces and the path of a file, once; restore the"
                " version from its export, or export it again"
            )
        digests[match[2]] = match[1]
    return digests


def _files(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yields the paths of all files but the manifest, in the folder.

    Raises:
        InputError: One of them is no plain file, or has a strange name.
    """
    root = Path(folder)
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        if path.is_symlink() or not path.is_file():
            raise InputError(
                f"{path}: found a link or a device, expected a plain file;"
                " copy the files of the version themselves"
            )
        if not name.isprintable() or "\\" in name:
            raise InputError(
                f"{root}: found the name {name!r}, expected one without line"
                " breaks and backslashes"
            )
        if name != MANIFEST:
            yield name


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()

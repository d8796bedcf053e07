"""Hashes that show whether weights, files or titles have changed."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

HASH_BYTES = 16


def weights_hash(weights: Iterable[Any]) -> str:
    """Returns the SHA-256 of weights: their types, shapes and values."""
    digest = hashlib.sha256()
    for weight in weights:
        array = np.asarray(
            weight.numpy() if hasattr(weight, "numpy") else weight
        )
        digest.update(f"{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def files_hash(paths: Iterable[str | os.PathLike[str]]) -> str:
    """Returns the SHA-256 of the files' names, sizes and bytes."""
    digest = hashlib.sha256()
    for path in map(Path, paths):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        _add_file(digest, path)
    return digest.hexdigest()


def file_hash(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    _add_file(digest, path)
    return digest.hexdigest()


def _add_file(digest: Any, path: str | os.PathLike[str]) -> None:
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)


def id_hashes(ids: Iterable[str]) -> np.ndarray:
    """Returns the distinct hashes of ids, uint64 `[n]`, ascending."""
    hashes = title_hashes(ids)[:, :8]
    return np.unique(np.ascontiguousarray(hashes).view(np.uint64))


def title_hashes(titles: Iterable[str]) -> np.ndarray:
    """Returns a hash of each title, uint8 `[n, 16]`."""
    hashes = b"".join(
        hashlib.blake2b(
            title.encode("utf-8", "surrogateescape"), digest_size=HASH_BYTES
        ).digest()
        for title in titles
    )
    return np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES)

"""Publishes a retriever anew after some of its titles have changed."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import Documents
from keras_lstm_dssm.export.graphs.retriever import (
    VECTORS,
    RetrieverDetails,
    RetrieverModule,
    check_tags,
)
from keras_lstm_dssm.export.graphs.saved_module import SIGNATURE
from keras_lstm_dssm.export.publish.models_config import (
    saved_fingerprint,
    served_version,
)
from keras_lstm_dssm.export.publish.server_files import (
    check_server_files,
    warmup_sizes,
    write_server_files,
)
from keras_lstm_dssm.export.publish.versions import (
    publish_together,
    saved_model_writer,
    version_folders,
)
from keras_lstm_dssm.fingerprints import title_hashes
from keras_lstm_dssm.text import as_bytes, as_strings, encode_in_batches

_ENCODE_BATCH = 2048


class Refreshed(NamedTuple):
    """What a refresh has done.

    Attributes:
        folder: The folder of the new version; that of the old one if nothing
            has changed.
        published: Whether there is a new version.
        rows: Number of titles in it.
        encoded: Number of titles that were new or had changed.
        deleted: Number of titles that were removed.
        unknown: Ids to delete that the retriever did not have.
    """

    folder: Path
    published: bool
    rows: int
    encoded: int
    deleted: int
    unknown: list[str]


class LoadedEncoder:
    """An exported encoder, as a part of the graph of another model.

    Args:
        version: The folder of a version.

    Attributes:
        weights: The variables.
        resources: Other objects of the graph, such as tables.
    """

    def __init__(self, version: Path) -> None:
        self._model = tf.saved_model.load(str(version))
        self._serve = self._model.signatures[SIGNATURE]
        self.weights = list(self._model.weights)
        self.resources = list(self._model.resources)

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors, float32 `[batch, d]`."""
        return self._serve(text=text)["embedding"]


def refresh_retriever(
    base: str | os.PathLike[str],
    add: Documents | None = None,
    delete: Iterable[str] = (),
    progress: bool = False,
) -> Refreshed:
    """Publishes a new version of a retriever, with some titles changed.

    The new version is complete, and equals a full export of the same titles
    in the same order: those of the old version, changed ones in their places,
    then new ones. Only titles whose hash differs are encoded, by the encoder
    of the old version, which must still be in the folder of the models. The
    other vectors stay the same bit for bit; in a full export their last bits
    depend on the batches.

    Args:
        base: The folder of the retriever, such as `MODELS/retriever`.
        add: Titles to add; one whose id exists replaces the old title.
        delete: Ids to remove, before titles are added.
        progress: Whether to show a progress bar. Default `False`.

    Raises:
        InputError: There is no retriever, its encoder is not in the folder,
            no title would be left, or the folder cannot be written to. No
            version is published.

    Example:
    >>> refresh_retriever("MODELS/retriever", Documents(["t9"], ["new lamp"]))
    Refreshed(folder=PosixPath('MODELS/retriever/2'), published=True, ...)
    """
    base = Path(base).resolve()
    version = served_version(base)
    if version is None:
        raise InputError(
            f"{base}: no version here, expected a retriever such as "
            "MODELS/retriever: export one with --run and --documents"
        )
    details = RetrieverDetails.read(version)
    encoders = _encoder_versions(base.parent, details.encoder_sha256)
    check_server_files(base.parent, [base.name])
    stored = _Stored.read(version, details)
    unknown = stored.delete(delete)
    deleted = stored.count - stored.left
    changed = stored.add(add) if add else []
    if not stored.left:
        raise InputError(f"{base}: no title would be left: add some")
    if not (deleted or changed or stored.tags_changed):
        return Refreshed(version, False, stored.left, 0, 0, unknown)
    query, document = encoders
    if changed:
        encoder = LoadedEncoder(document)
        stored.put(
            encode_in_batches(
                encoder.encode, [title for _, title in changed], _ENCODE_BATCH,
                progress,
            )
        )  # fmt: skip
    module = stored.module(LoadedEncoder(query))
    sizes = warmup_sizes(base.parent)
    writer = saved_model_writer(module, base.name, sizes)
    (folder,) = publish_together(base.parent, {base.name: writer})
    write_server_files(base.parent, {base.name: int(folder.name)})
    return Refreshed(folder, True, stored.left, len(changed), deleted, unknown)


class _Stored:
    """The rows of a version, changed in memory."""

    def __init__(
        self,
        ids: list[bytes],
        arrays: Sequence[np.ndarray],
        tags: list[list[str]],
        details: RetrieverDetails,
    ) -> None:
        self.count = len(ids)
        self.tags_changed = False
        self._ids = ids
        self._arrays = list(arrays)
        self._hashes = details.hashes
        self._tags = tags
        self._details = details
        self._row = {key: row for row, key in enumerate(ids)}
        self._changed: list[int] = []

    @classmethod
    def read(cls, version: Path, details: RetrieverDetails) -> "_Stored":
        try:
            reader = tf.train.load_checkpoint(
                str(version / "variables" / "variables")
            )
        except (ValueError, tf.errors.OpError) as error:
            raise InputError(
                f"{version}: no variables that can be read; restore the folder"
            ) from error

        def value(name: str) -> np.ndarray:
            return reader.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE")

        ids = value("ids").tolist()
        arrays = [
            value(f"vectors/{name}") for name in VECTORS[details.kind].names
        ]
        if not len(ids) == len(arrays[0]) == len(details.hashes):
            raise InputError(
                f"{version}: found {len(ids)} ids, {len(arrays[0])} vectors "
                f"and {len(details.hashes)} hashes: restore the folder"
            )
        tags: list[list[str]] = []
        if reader.has_tensor("tags/numbers/.ATTRIBUTES/VARIABLE_VALUE"):
            names = [name.decode() for name in value("tags/names").tolist()]
            tags = [
                [names[number] for number in row if number < len(names)]
                for row in value("tags/numbers").tolist()
            ]
        return cls(ids, arrays, tags, details)

    @property
    def left(self) -> int:
        return len(self._row)

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Removes rows; returns the ids that there are not."""
        names = list(dict.fromkeys(ids))
        return [
            name
            for name, key in zip(names, as_bytes(names), strict=True)
            if self._row.pop(key, None) is None
        ]

    def add(self, documents: Documents) -> list[tuple[int, str]]:
        """Adds documents; returns rows and titles that have no vector yet."""
        check_tags(documents.tags, len(documents.ids))
        hashes = title_hashes(documents.titles)
        new_hashes, changed = [self._hashes], []
        rows = self.count
        for number, key in enumerate(as_bytes(documents.ids)):
            tags = list(documents.tags[number]) if documents.tags else []
            row = self._row.get(key)
            if row is None:
                row = rows
                rows += 1
                self._row[key] = row
                self._ids.append(key)
                new_hashes.append(hashes[number : number + 1])
                changed.append((row, documents.titles[number]))
            elif (self._hashes[row] != hashes[number]).any():
                self._hashes[row] = hashes[number]
                changed.append((row, documents.titles[number]))
            self._set_tags(row, tags)
        self._hashes = np.concatenate(new_hashes)
        self._changed = [row for row, _ in changed]
        return changed

    def _set_tags(self, row: int, tags: list[str]) -> None:
        if not (tags or self._tags):
            return
        self._tags += [[] for _ in range(len(self._ids) - len(self._tags))]
        if sorted(self._tags[row]) != sorted(tags):
            self._tags[row] = tags
            self.tags_changed = True

    def put(self, vectors: np.ndarray) -> None:
        """Stores the vectors of the rows that `add` has returned."""
        more = len(self._ids) - self.count
        stored = VECTORS[self._details.kind].stored(vectors)
        for number, new in enumerate(stored):
            old = self._arrays[number]
            whole = np.concatenate(
                [old, np.empty((more, *old.shape[1:]), old.dtype)]
            )
            whole[self._changed] = new
            self._arrays[number] = whole

    def module(self, encoder: LoadedEncoder) -> RetrieverModule:
        """Returns a retriever of the rows that are left, in their order."""
        rows = sorted(self._row.values())
        kind, max_k = self._details.kind, self._details.max_k
        ids = as_strings([self._ids[row] for row in rows])
        vectors = VECTORS[kind].from_stored(
            *(array[rows] for array in self._arrays)
        )
        tags = [self._tags[row] for row in rows] if self._tags else []
        module = RetrieverModule(encoder, ids, vectors, kind, max_k, tags)
        module.details = RetrieverDetails(
            self._details.encoder_sha256,
            self._hashes[rows],
            self._details.kind,
            self._details.max_k,
        )
        return module


def _encoder_versions(models_dir: Path, fingerprint: str) -> tuple[Path, Path]:
    """Finds the encoders of queries and of titles that a retriever is of."""
    for name, of_queries in (
        ("document_encoder", "query_encoder"),
        ("keyvec", "keyvec"),
    ):
        folders = version_folders(models_dir / name)
        for number in sorted(folders, reverse=True):
            query = models_dir / of_queries / str(number)
            if query.is_dir() and (
                saved_fingerprint(folders[number]) == fingerprint
            ):
                return query, folders[number]
    raise InputError(
        f"{models_dir}: found no encoder with the fingerprint "
        f"{fingerprint:.12} of the retriever's titles: restore its version, or "
        "export all titles with --run and --documents"
    )

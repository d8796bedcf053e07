"""Updates of a published retriever: only documents that changed are encoded."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import (
    Documents,
    check_documents,
    checked_tags,
)
from keras_lstm_dssm.export.graphs.hybrid import HybridModule, HybridSource
from keras_lstm_dssm.export.graphs.retriever import (
    VECTORS,
    DocumentRows,
    RetrieverModule,
    RetrieverSource,
)
from keras_lstm_dssm.export.graphs.saved_module import SIGNATURE, ServedModule
from keras_lstm_dssm.export.publish.models_config import (
    saved_fingerprint,
    served_version,
)
from keras_lstm_dssm.export.publish.server_files import (
    check_server_files,
    publish_models,
)
from keras_lstm_dssm.export.publish.versions import (
    publication,
    version_folders,
)
from keras_lstm_dssm.fingerprints import title_hashes
from keras_lstm_dssm.model_cards.record import refresh_models_card
from keras_lstm_dssm.text.strings import as_bytes, encode_in_batches

_ENCODE_BATCH = 2048


class RetrieverUpdate(NamedTuple):
    """What an update has changed."""

    # The folder of the new version, or of the old one if nothing has changed.
    folder: Path
    published: bool  # whether there is a new version
    rows: int  # number of titles in it
    encoded: int  # number of titles that were new or had changed
    deleted: int  # number of titles that were removed
    unknown: list[str]  # ids to delete that the retriever did not have


def update_retriever(
    base: str | os.PathLike[str],
    add: Documents | None = None,
    delete: Iterable[str] = (),
    progress: bool = False,
) -> RetrieverUpdate:
    """Publishes a new version of a retriever, with some titles changed.

    The new version is complete, and equals a full export of the same titles
    in the same order: those of the old version, changed ones in their places,
    then new ones. Only titles whose hash differs are encoded, by the encoder
    of the old version, which must still be in the folder of the models. The
    other vectors stay the same bit for bit; in a full export their last bits
    depend on the batches.

    Other processes that publish in the folder of the models wait until this
    one has ended, so that two updates at once lose nothing.

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
    >>> update_retriever("MODELS/retriever", Documents(["t9"], ["new lamp"]))
    RetrieverUpdate(folder=PosixPath('MODELS/retriever/2'), ...)
    """
    base = Path(base).resolve()
    if served_version(base) is None:
        raise InputError(
            f"{base}: no version here, expected a retriever such as "
            "MODELS/retriever: export one with --run and --documents"
        )
    if add is not None and add.ids:
        check_documents(add)
    with publication(base.parent):
        return _updated(base, add, delete, progress)


def _updated(
    base: Path, add: Documents | None, delete: Iterable[str], progress: bool
) -> RetrieverUpdate:
    version = served_version(base)
    assert version, base  # versions are never removed
    source = RetrieverSource.read(version)
    hybrid = HybridSource.read(version)
    if source.encoder_sha256:  # without, BM25 alone
        query, document = _encoder_versions(base.parent, source.encoder_sha256)
    check_server_files(base.parent, [base.name])
    rows = _RetrieverRows.read(version, source)
    unknown = rows.delete(delete)
    deleted = rows.stored - rows.count
    new = rows.add(add) if add else {}
    if not rows.count:
        raise InputError(f"{base}: no title would be left: add some")
    if not (deleted or new or rows.tags_changed):
        return RetrieverUpdate(version, False, rows.count, 0, 0, unknown)
    if new and source.encoder_sha256:
        encode = LoadedEncoder(document).encode
        texts = [*new.values()]
        rows.set_vectors(
            [*new], encode_in_batches(encode, texts, _ENCODE_BATCH, progress)
        )
    options = source.kind, source.max_k, source.encoder_sha256
    encoder = LoadedEncoder(query) if source.encoder_sha256 else None
    module: ServedModule
    if hybrid is not None:
        counts = hybrid.counts.updated(rows.order, new)
        hybrid = hybrid.with_counts(counts)
        module = HybridModule(encoder, rows.document_rows(), hybrid, *options)
    else:
        assert encoder is not None, version
        module = RetrieverModule(encoder, rows.document_rows(), *options)
    (folder,) = publish_models(base.parent, {base.name: module})
    refresh_models_card(base.parent, base.name, int(folder.name), rows.count)
    return RetrieverUpdate(folder, True, rows.count, len(new), deleted, unknown)


class LoadedEncoder:
    """A published encoder as a `GraphModule`, for the graph of a retriever."""

    def __init__(self, version: Path) -> None:
        self._model = tf.saved_model.load(str(version))
        self._serve = self._model.signatures[SIGNATURE]
        self.weights = list(self._model.weights)
        self.resources = list(self._model.resources)

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """See `GraphModule`."""
        return self._serve(text=text)["embedding"]

    def word_rows(self, words: tf.Tensor) -> tf.Tensor:
        """See `HybridEncoder`; only of a hybrid with words."""
        return self._model.word_rows(words)


class _RetrieverRows:
    """The documents of a version, with changes that are in memory only.

    `stored` counts the rows in the version; `tags_changed` says whether the
    tags of one have changed.
    """

    def __init__(
        self,
        ids: list[bytes],
        arrays: Sequence[np.ndarray],
        tags: list[list[str]],
        source: RetrieverSource,
    ) -> None:
        self.stored = len(ids)
        self.tags_changed = False
        self._ids = ids
        self._arrays = list(arrays)
        self._hashes = source.hashes
        self._tags = tags
        self._kind = source.kind
        self._row = {key: row for row, key in enumerate(ids)}

    @classmethod
    def read(cls, version: Path, source: RetrieverSource) -> "_RetrieverRows":
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
            value(f"vectors/{name}")
            for name in VECTORS[source.kind].names
            if source.encoder_sha256
        ]
        for array in (*arrays, source.hashes):
            if len(ids) != len(array):
                raise InputError(
                    f"{version}: found {len(ids)} ids, {len(array)} vectors or"
                    " hashes: restore the folder"
                )
        tags: list[list[str]] = []
        if reader.has_tensor("tags/numbers/.ATTRIBUTES/VARIABLE_VALUE"):
            names = [name.decode() for name in value("tags/names").tolist()]
            tags = [
                [names[number] for number in row if number < len(names)]
                for row in value("tags/numbers").tolist()
            ]
        return cls(ids, arrays, tags, source)

    @property
    def count(self) -> int:
        """Number of rows that are not deleted."""
        return len(self._row)

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Removes rows by their ids; returns ids that no row has."""
        names = list(dict.fromkeys(ids))
        return [
            name
            for name, key in zip(names, as_bytes(names), strict=True)
            if self._row.pop(key, None) is None
        ]

    def add(self, documents: Documents) -> dict[int, str]:
        """Adds documents; returns rows and their titles that need vectors."""
        hashes = title_hashes(documents.titles)
        rows = []
        for key in as_bytes(documents.ids):
            row = self._row.setdefault(key, len(self._ids))
            if row == len(self._ids):
                self._ids.append(key)
            rows.append(row)
        new_rows = len(self._ids) - len(self._hashes)
        self._hashes = np.pad(self._hashes, [(0, new_rows), (0, 0)])
        new = {}
        for number, row in enumerate(rows):
            is_stored = row < self.stored
            if not is_stored or (self._hashes[row] != hashes[number]).any():
                self._hashes[row] = hashes[number]
                new[row] = documents.titles[number]
            tags = documents.tags[number] if documents.tags else ()
            self._set_tags(row, list(checked_tags(tags)))
        return new

    def _set_tags(self, row: int, tags: list[str]) -> None:
        if not (tags or self._tags):
            return
        self._tags += [[] for _ in range(len(self._ids) - len(self._tags))]
        if sorted(self._tags[row]) != sorted(tags):
            self._tags[row] = tags
            self.tags_changed = True

    def set_vectors(self, rows: list[int], vectors: np.ndarray) -> None:
        """Stores the vectors of the rows that `add` has returned."""
        new_rows = len(self._ids) - self.stored
        for number, values in enumerate(VECTORS[self._kind].stored(vectors)):
            old = self._arrays[number]
            array = np.concatenate(
                [old, np.empty((new_rows, *old.shape[1:]), old.dtype)]
            )
            array[rows] = values
            self._arrays[number] = array

    @property
    def order(self) -> list[int]:
        """The numbers of the rows that are not deleted, in their order."""
        return sorted(self._row.values())

    def document_rows(self) -> DocumentRows:
        """Returns the rows that are not deleted, in their order."""
        rows = self.order
        return DocumentRows(
            [self._ids[row].decode(errors="surrogateescape") for row in rows],
            self._arrays
            and VECTORS[self._kind](*(array[rows] for array in self._arrays)),
            self._hashes[rows],
            [self._tags[row] for row in rows] if self._tags else (),
        )


def _encoder_versions(models_dir: Path, fingerprint: str) -> tuple[Path, Path]:
    """Returns the published encoders of queries and titles of a retriever."""
    for name, query_name in (
        ("document_encoder", "query_encoder"),
        ("keyvec", "keyvec"),
    ):
        folders = version_folders(models_dir / name)
        for number in sorted(folders, reverse=True):
            query = models_dir / query_name / str(number)
            if query.is_dir() and (
                saved_fingerprint(folders[number]) == fingerprint
            ):
                return query, folders[number]
    raise InputError(
        f"{models_dir}: found no encoder with the fingerprint "
        f"{fingerprint:.12} of the retriever's titles: restore its version, or "
        "export all titles with --run and --documents"
    )

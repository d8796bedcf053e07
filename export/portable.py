"""Two towers and their documents in one file, for `LocalModel`."""

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm import encoders
from keras_lstm_dssm.distillation import TeacherVectors
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError, check_choice
from keras_lstm_dssm.export.bulk.documents import Documents
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.export.graphs.retriever import (
    check_documents,
    checked_tags,
    int8_codes,
)
from keras_lstm_dssm.files import check_writable, replacing
from keras_lstm_dssm.model_cards.record import iso_time, run_records
from keras_lstm_dssm.models import TwoTower
from keras_lstm_dssm.models.kinds import TOWERS, kind_of
from keras_lstm_dssm.settings.choices import VECTORS
from keras_lstm_dssm.tables import HashedUniform
from keras_lstm_dssm.version import __version__
from lstm_dssm_client.local_encoder import ENCODERS
from lstm_dssm_client.portable_file import (
    DOCUMENT,
    QUERY,
    Arrays,
    stored_table,
    stored_texts,
    write_portable,
)


def export_portable(
    model: TwoTower,
    path: str | os.PathLike[str],
    documents: Documents | None = None,
    weights: str = "int8",
    vectors: str = "float32",
    progress: bool = False,
    runs: Sequence[str | os.PathLike[str]] = (),
    teacher: TeacherVectors | None = None,
) -> None:
    """Writes both encoders and the documents into one file.

    `lstm_dssm_client.LocalModel` searches and encodes with it, without
    TensorFlow. The documents are encoded by the model itself, also where the
    file has rounded weights.

    Args:
        model: The trained towers, whose encoders are of this package.
        path: File to write; an older one is replaced when it is complete.
        documents: Ids, titles and tags; by default the file has none.
        weights: How the rows of the trigram tables are stored: `int8`, 1 byte
            a number and one scale a row, or `float32`. All other weights are
            float32.
        vectors: How the documents' vectors are stored: `float32`, or `int8`.
        progress: Whether to show a progress bar.
        runs: Folders of the runs that the model comes from, for the card.
        teacher: See `export_models`.

    Raises:
        InputError: The model is no `TwoTower`, or an encoder is of another
            class; `weights` or `vectors` is none of these; a weight is not
            finite; there are no titles, or another number of ids; or the file
            cannot be written.

    Example:
    >>> export_portable(model, "shop.safetensors", Documents(titles, titles))
    """
    check_choice(VECTORS, weights=weights)
    check_choice(VECTORS, vectors=vectors)
    check_writable(path)
    check_portable(model)
    arrays: Arrays = {}
    towers = {QUERY: model.query_encoder, DOCUMENT: model.document_encoder}
    EncoderModule(model.query_encoder)  # raises if it is not finite
    document = EncoderModule(model.document_encoder, teacher)
    for name, tower in towers.items():
        for weight, values in _stored_weights(tower, weights):
            arrays[f"{name}/{weight}"] = values
    if documents:
        check_documents(documents.ids, documents.titles, documents.tags)
        rows = document.encode_all(documents.titles, progress)
        arrays |= _stored_documents(documents, rows, vectors)
    now = time.time()
    header = {
        "package": __version__,
        "version": int(now),
        "encoders": {
            name: {"class": type(tower).__name__, "config": tower.get_config()}
            for name, tower in towers.items()
        },
        "card": {
            "date": iso_time(now),
            "documents": len(documents.ids) if documents else 0,
            "runs": run_records(runs),
        },
    }
    with replacing(path) as partial:
        write_portable(partial, header, arrays)


def check_portable(model: Any) -> None:
    """Checks that a model is two towers whose encoders `LocalModel` has."""
    if (kind := kind_of(model)) is not TOWERS:
        raise InputError(
            f"found a {kind.noun}, and only two towers are portable:"
            " export it for a server, with --output"
        )
    for tower in model.towers:
        name = type(tower).__name__
        if name not in ENCODERS or getattr(encoders, name) is not type(tower):
            raise InputError(
                f"found the encoder {name}, and only {', '.join(ENCODERS)} are"
                " portable: export it for a server, with --output"
            )


def _stored_weights(
    tower: TextEncoder, kind: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the names and the arrays of an encoder's weights."""
    layers = {id(layer.table): layer for layer in tower.embeddings}
    inner = {id(weight) for layer in tower.layers for weight in layer.weights}
    for weight in tower.weights:
        # The path of an encoder's own weight begins with the encoder's name.
        name = weight.path if id(weight) in inner else weight.name
        values = weight.numpy()
        if layer := layers.get(id(weight)):
            rows, start = layer.changed_rows(), (0, 0.0)
            if isinstance(layer.initializer, HashedUniform):
                start = layer.initializer.seed, layer.initializer.limit
            rows = rows if len(rows) else np.array([0])
            yield from stored_table(name, values, rows, start, kind).items()
        elif values.dtype.kind in "iu":  # signs of a sketch, rows of words
            yield name, values
        else:
            yield name, np.asarray(values, np.float32)


def _stored_documents(
    documents: Documents, vectors: np.ndarray, kind: str
) -> Arrays:
    """Returns the arrays of the documents: vectors, titles, ids and tags.

    Ids are left out if they are the titles, and tags if there are none.
    """
    arrays = stored_texts("titles", documents.titles)
    if kind == "float32":
        arrays["vectors"] = vectors
    else:
        arrays["vectors"], arrays["vectors.scales"] = int8_codes(vectors)
    if documents.ids != documents.titles:
        arrays |= stored_texts("ids", documents.ids)
    if any(documents.tags):
        tags = [",".join(checked_tags(row)) for row in documents.tags]
        arrays |= stored_texts("tags", tags)
    return arrays

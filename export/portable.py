"""Two towers or a hybrid, and documents, in one file for `LocalModel`."""

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from keras_lstm_dssm import encoders
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError, check_choice
from keras_lstm_dssm.evaluation.postings import stemmer_facts, title_postings
from keras_lstm_dssm.export.bulk.documents import (
    Documents,
    check_documents,
    checked_tags,
)
from keras_lstm_dssm.export.graphs.encoder import (
    EncoderModule,
    HybridEncoderModule,
)
from keras_lstm_dssm.export.graphs.retriever import int8_codes
from keras_lstm_dssm.files import check_writable, replacing
from keras_lstm_dssm.model_cards import (
    iso_time,
    run_record,
    teacher_facts,
)
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings.fields import VECTORS
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.tables import HashedUniform
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from keras_lstm_dssm.version import __version__
from lstm_dssm_client.bm25 import Postings
from lstm_dssm_client.local_encoder import ENCODERS, PARTS
from lstm_dssm_client.portable_file import (
    DOCUMENT,
    QUERY,
    Arrays,
    stored_table,
    stored_texts,
    write_portable,
)


def export_portable(
    model: TwoTower | None,
    path: str | os.PathLike[str],
    documents: Documents | None = None,
    weights: str = "int8",
    vectors: str = "float32",
    progress: bool = False,
    run: str | os.PathLike[str] | None = None,
    teacher: TeacherVectors | None = None,
    hybrid: HybridSettings | None = None,
    known_texts: Iterable[str] = (),
) -> HybridSettings | None:
    """Writes both encoders and the documents into one file.

    `lstm_dssm_client.LocalModel` searches and encodes with it, without
    TensorFlow. The documents are encoded by the model itself, also where the
    file has rounded weights.

    Args:
        model: The trained towers, whose encoders are of this package. With
            `hybrid` it can be `None`.
        path: File to write; an older one is replaced when it is complete.
        documents: Ids, titles and tags; by default the file has none.
        weights: How the rows of the trigram tables are stored: `int8`, 1 byte
            a number and one scale a row (float16 where rows are summed into
            the vector itself), or `float32`. All other weights are float32.
        vectors: How the documents' vectors are stored: `float32`, or `int8`.
        progress: Whether to show a progress bar.
        run: Folder of the run that the model comes from, for the card.
        teacher: See `export_models`.
        hybrid: See `export_models`; the file has the parts with a weight.
        known_texts: See `export_models`.

    Returns:
        The settings of the hybrid in the file, if it is one: weights whose sum
        is 1, and the terms of BM25.

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
    if documents:
        check_documents(documents)
    arrays: Arrays = {}
    encoder: EncoderModule | None
    if hybrid is None:
        check_portable(model)
        assert model is not None
        described, encoder = _store_towers(arrays, model, weights, teacher)
    else:
        if not documents:
            raise InputError(
                "a hybrid retriever ranks titles: give them with --documents"
            )
        parts = HybridParts.of(model, teacher)
        hybrid = parts.settled(hybrid, documents.titles)
        described, encoder = _store_hybrid(arrays, parts, hybrid, weights)
        if hybrid.bm25:
            postings = title_postings(documents.titles, hybrid, known_texts)
            arrays |= _stored_postings(postings)
    if documents:
        rows = encoder and encoder.encode_all(documents.titles, progress)
        arrays |= _stored_documents(documents, rows, vectors)
    now = time.time()
    header = {
        "package": __version__,
        "version": int(now),
        "encoders": described,
        "card": {
            "date": iso_time(now),
            "documents": len(documents.ids) if documents else 0,
            "run": run_record(run),
            **teacher_facts(teacher.folder if teacher is not None else None),
            **(stemmer_facts(hybrid) if hybrid is not None else {}),
        },
    }
    if hybrid is not None:
        header["hybrid"] = hybrid.to_dict()
    with replacing(path) as partial:
        write_portable(partial, header, arrays)
    return hybrid


def check_portable(model: Any) -> None:
    """Checks that a model is two towers whose encoders `LocalModel` has."""
    if not isinstance(model, TwoTower):
        raise InputError(
            f"found a {kind_of(model).noun}, and only two towers are portable:"
            " export it for a server, with --output"
        )
    for tower in model.towers:
        _check_encoder(tower)


def _check_encoder(tower: TextEncoder) -> None:
    name = type(tower).__name__
    if name not in ENCODERS or getattr(encoders, name) is not type(tower):
        raise InputError(
            f"found the encoder {name}, and only {', '.join(ENCODERS)} are"
            " portable: export it for a server, with --output"
        )


def _store_towers(
    arrays: Arrays,
    model: TwoTower,
    kind: str,
    teacher: TeacherVectors | None,
) -> tuple[dict[str, Any], EncoderModule]:
    """Adds the weights of two encoders to arrays; describes the encoders."""
    EncoderModule(model.query_encoder)  # raises if it is not finite
    module = EncoderModule(model.document_encoder, teacher)
    described = {}
    for name in (QUERY, DOCUMENT):
        tower = getattr(model, name)
        described[name] = _store_encoder(arrays, name, tower, [tower], kind)
    return described, module


def _store_hybrid(
    arrays: Arrays, parts: HybridParts, settings: HybridSettings, kind: str
) -> tuple[dict[str, Any], EncoderModule | None]:
    """Does the same for the parts of a hybrid that have vectors, if any."""
    pair = parts.encoders(settings.weights)
    if pair is None:
        return {}, None
    described = {
        name: {
            part: _store_encoder(arrays, f"{name}/{part}", *encoder, kind)
            for part, encoder in hybrid.parts.items()
        }
        for name, hybrid in zip((QUERY, DOCUMENT), pair, strict=True)
    }
    HybridEncoderModule(pair[0])
    return described, HybridEncoderModule(pair[1], parts.teacher)


def _store_encoder(
    arrays: Arrays, path: str, tower: TextEncoder, layers: list[Any], kind: str
) -> dict[str, Any]:
    """Adds the weights of an encoder, or of a part of it; describes it."""
    _check_encoder(tower)
    for weight, values in _stored_weights(tower, layers, kind):
        arrays[f"{path}/{weight}"] = values
    name = type(tower).__name__
    part = f"{name}/{path.partition('/')[2]}"
    return {
        "class": part if part in PARTS else name,
        "config": tower.get_config(),
    }


def _stored_postings(postings: Postings) -> Arrays:
    """Returns the arrays of BM25."""
    return {
        **stored_texts("bm25/forms", [*postings.term_of]),
        "bm25/form_terms": np.fromiter(postings.term_of.values(), np.int32),
        "bm25/bounds": postings.bounds,
        "bm25/documents": postings.documents,
        "bm25/scores": postings.scores,
    }


def _stored_weights(
    tower: TextEncoder, layers: Iterable[Any], kind: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the names and the arrays of the weights of an encoder's layers."""
    embeddings = {id(layer.table): layer for layer in tower.embeddings}
    inner = {id(weight) for layer in tower.layers for weight in layer.weights}
    for weight in [weight for layer in layers for weight in layer.weights]:
        # The path of an encoder's own weight begins with the encoder's name.
        name = weight.path if id(weight) in inner else weight.name
        values = weight.numpy()
        if layer := embeddings.get(id(weight)):
            rows, start = layer.changed_rows(), (0, 0.0)
            if isinstance(layer.initializer, HashedUniform):
                start = layer.initializer.seed, layer.initializer.limit
            rows = rows if len(rows) else np.array([0])
            # No gate is behind a sum: the vector has all of its rounding.
            is_sum = layer is getattr(tower, "bag_embedding", None)
            dtype = "float16" if is_sum and kind == "int8" else kind
            yield from stored_table(name, values, rows, start, dtype).items()
        elif values.dtype.kind in "iu":  # signs of a sketch, rows of words
            yield name, values
        else:
            yield name, np.asarray(values, np.float32)


def _stored_documents(
    documents: Documents, vectors: np.ndarray | None, kind: str
) -> Arrays:
    """Returns the arrays of the documents: vectors, if any, titles, ids, tags.

    Texts and ids are left out if they are the titles, and tags if there are
    none.
    """
    titles = [*documents.shown]
    arrays = stored_texts("titles", titles)
    if documents.titles != titles:
        arrays |= stored_texts("texts", documents.titles)
    if vectors is not None and kind == "float32":
        arrays["vectors"] = vectors
    elif vectors is not None:
        arrays["vectors"], arrays["vectors.scales"] = int8_codes(vectors)
    if documents.ids != titles:
        arrays |= stored_texts("ids", documents.ids)
    if any(documents.tags):
        tags = [",".join(checked_tags(row)) for row in documents.tags]
        arrays |= stored_texts("tags", tags)
    return arrays

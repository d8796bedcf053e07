"""Exports a retriever as a SavedModel from queries to nearest documents."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.document_tags import check_tags
from keras_lstm_dssm.export.documents import joined_sentences
from keras_lstm_dssm.export.encoded_parts import EncodedParts
from keras_lstm_dssm.export.encoder import GraphEncoder
from keras_lstm_dssm.export.filtered_search import retriever_module
from keras_lstm_dssm.export.retriever import (
    MAX_K,
    RetrieverModule,
    check_documents,
    check_retriever_options,
    encoder_module,
)
from keras_lstm_dssm.export.retriever_details import RetrieverDetails
from keras_lstm_dssm.export.saved_module import publish_module
from keras_lstm_dssm.fingerprints import title_hashes
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.text import as_strings


def new_retriever(
    query_encoder: GraphEncoder | KeyVec,
    document_encoder: GraphEncoder | KeyVec,
    ids: Sequence[str],
    titles: Sequence[Any],
    vectors: str = "float32",
    max_k: int = MAX_K,
    progress: bool = False,
    tags: Sequence[Sequence[str]] = (),
) -> RetrieverModule:
    """Encodes documents and returns a retriever of them.

    For the arguments and the errors see `export_retriever`; `titles` may also
    be lists of sentences for a KeyVec; `progress` says whether to show a
    progress bar.
    """
    check_retriever_options(vectors, max_k)
    check_documents(ids, titles)
    check_tags(tags, len(titles))
    document_module = encoder_module(document_encoder)
    module = retriever_module(
        query_encoder,
        as_strings(ids),
        document_module.encode_all(titles, progress),
        vectors,
        max_k,
        tags,
    )
    module.details = RetrieverDetails(
        document_module.fingerprint,
        title_hashes(map(joined_sentences, titles)),
        vectors,
        max_k,
    )
    return module


def retriever_of_parts(
    query_encoder: GraphEncoder | KeyVec,
    fingerprint: str,
    parts: EncodedParts,
    vectors: str = "float32",
    max_k: int = MAX_K,
) -> RetrieverModule:
    """Returns a retriever of titles that were encoded before.

    Args:
        query_encoder: The encoder that encodes queries, in the server.
        fingerprint: That of the encoder of titles of the same training.
        parts: The encoded titles.
        vectors: See `export_retriever`.
        max_k: See `export_retriever`.

    Raises:
        InputError: The parts are of another encoder, or damaged; an id has
            two titles, or two sets of tags; or see `export_retriever`.
    """
    check_retriever_options(vectors, max_k)
    if parts.encoder_sha256 != fingerprint:
        raise InputError(
            f"{parts.folder}: found titles encoded by the encoder "
            f"{parts.encoder_sha256:.12}, expected {fingerprint:.12} as in "
            "the run: encode them with the document_encoder of this run"
        )
    rows = parts.read()
    check_tags(rows.tags, len(rows.ids))
    module = retriever_module(
        query_encoder, as_strings(rows.ids), rows.vectors, vectors, max_k,
        rows.tags,
    )  # fmt: skip
    module.details = RetrieverDetails(fingerprint, rows.hashes, vectors, max_k)
    return module


def export_retriever(
    query_encoder: GraphEncoder | KeyVec,
    document_encoder: GraphEncoder | KeyVec,
    ids: Sequence[str],
    titles: Sequence[str],
    base: str | os.PathLike[str],
    version: int | None = None,
    vectors: str = "float32",
    max_k: int = MAX_K,
    tags: Sequence[Sequence[str]] = (),
) -> Path:
    """Publishes a retriever over the given titles, for TF Serving.

    Args:
        query_encoder: The encoder that encodes queries, in the server.
        document_encoder: The encoder that encodes the titles, during export;
            a KeyVec is the encoder of both.
        ids: The ids that the retriever returns, one for each title.
        titles: The documents' titles, or whole documents for a KeyVec.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.
        vectors: `float32`, or `int8` for a quarter of the memory.
        max_k: Maximum number of results for a query; a larger k in a request
            is reduced to it.
        tags: The tags of each title, 32 at most, by which a search can be
            restricted; by default no title has any.

    Returns:
        The version's folder, `base/<number>`.

    Raises:
        InputError: There are no titles, or another number of ids; an id is
            empty; `vectors` is no key of `VECTORS`; `max_k` is below 1; a
            weight is not finite; there are tags, but not for each title, or a
            tag is blank or has a comma; or the version exists already.

    Example:
    >>> encoder = dssm.DSSMEncoder(units=[4])
    >>> titles = ["hex bolt", "wood glue"]
    >>> path = export_retriever(encoder, encoder, ["d1", "d2"], titles, "shop")
    >>> path.as_posix()
    'shop/1'
    """
    module = new_retriever(
        query_encoder,
        document_encoder,
        ids,
        titles,
        vectors,
        max_k,
        tags=tags,
    )
    return publish_module(module, base, version)

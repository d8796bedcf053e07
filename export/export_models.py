"""Exports all models of one training, into a folder for TF Serving.

Exports a retriever as a SavedModel from queries to nearest documents.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Mixture
from keras_lstm_dssm.export.bulk.documents import Documents, joined_sentences
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.export.graphs.encoder import (
    EncoderModule,
    GraphEncoder,
    MixtureTowers,
    mixture_towers,
)
from keras_lstm_dssm.export.graphs.keyvec import KeyVecModule
from keras_lstm_dssm.export.graphs.ranking import (
    RankerModule,
    ScorerModule,
    TwoStageModule,
)
from keras_lstm_dssm.export.graphs.retriever import (
    MAX_K,
    RetrieverDetails,
    RetrieverModule,
    check_documents,
    check_retriever_options,
    check_tags,
    encoder_module,
)
from keras_lstm_dssm.export.publish.server_files import (
    check_server_files,
    warmup_sizes,
    write_server_files,
)
from keras_lstm_dssm.export.publish.versions import (
    find_models,
    publish_module,
    publish_together,
    saved_model_writer,
)
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.fingerprints import title_hashes
from keras_lstm_dssm.models import KeyVec, PairScorer, TwoTower
from keras_lstm_dssm.ranker import Ranker
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
    module = RetrieverModule(
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
    module = RetrieverModule(
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


_Model = TwoTower | MixtureTowers | PairScorer | KeyVec


def export_models(
    model: TwoTower | PairScorer | KeyVec | Mixture | Ranker,
    output: str | os.PathLike[str],
    documents: Documents | EncodedParts | None = None,
    vectors: str = "float32",
    max_k: int = MAX_K,
    progress: bool = False,
) -> list[Path]:
    """Publishes a pair scorer; or the encoders of a model, and a retriever.

    Two towers, and a `Mixture` of several, are `query_encoder` and
    `document_encoder`, a KeyVec is `keyvec`. A folder can have the models of
    several trainings: encoders and a retriever, which find documents, and a
    `scorer`, which orders them. A `Ranker` is `ranker` and, with documents,
    `two_stage`. An export changes the models of its own training only.

    All exported models get one version number, above every version in the
    folder, so that equal numbers mean the same training. They are served
    together: a server reads in `models.config` which version of each is
    live, and that file is replaced last. If the export fails or is
    interrupted, the versions of the last complete export stay live.

    Args:
        model: The trained model, or a mixture of `TwoTower`s, whose vectors
            are concatenated.
        output: Folder of the models, made if missing. `models.config`,
            `batching.config` and a README for the server's operator are
            written next to the models.
        documents: Ids and texts for the retriever of towers or of a KeyVec,
            or for the two stages of a ranker, which reads no `EncodedParts`;
            by default no retriever is exported, and an existing one does not
            change.
        vectors: How the retriever stores its vectors: `float32`, or `int8`
            for a quarter of the memory.
        max_k: Maximum number of results for a query, by default 1,000; a
            larger k in a request is reduced to it.
        progress: Whether to show a progress bar.

    Returns:
        The folders of the new versions.

    Raises:
        InputError: `output` cannot be written to, or holds a `models.config`
            or another model that a server could not read; `vectors` or
            `max_k` is wrong; there are documents for a pair scorer, or for a
            retriever in the folder of other encoders; a part of a mixture is
            no `TwoTower`; a ranker reads an encoder of others, or no towers
            though there are documents; a weight is not finite. No version is
            published.

    Example:
    >>> export_models(model, "models", Documents(titles, titles))
    [PosixPath('models/query_encoder/1'), ...]
    """
    check_retriever_options(vectors, max_k)
    if isinstance(model, Ranker):
        if isinstance(documents, EncodedParts):
            raise InputError(
                f"{documents.folder}: found encoded titles, expected a file of "
                "titles, whose words a ranker compares: name the file"
            )
        check_folder(output)
        names = ["ranker", "two_stage"] if documents else ["ranker"]
        check_server_files(output, names)
        ranker: dict[str, tf.Module] = {"ranker": RankerModule(model)}
        if documents:
            ranker["two_stage"] = TwoStageModule(
                model, documents, vectors, max_k, progress
            )
        return _publish(output, ranker)
    trained = mixture_towers(model) if isinstance(model, Mixture) else model
    if documents is not None:
        _check_retriever(trained, output)
    check_folder(output)
    modules = _modules(trained)
    names = [*modules, "retriever"] if documents else [*modules]
    check_server_files(output, names)
    if documents is not None and not isinstance(trained, PairScorer):
        query_encoder, document_encoder = _query_and_document_encoder(trained)
        modules["retriever"] = (
            retriever_of_parts(
                query_encoder,
                [*modules.values()][-1].fingerprint,
                documents,
                vectors,
                max_k,
            )
            if isinstance(documents, EncodedParts)
            else new_retriever(
                query_encoder,
                document_encoder,
                documents.ids,
                _texts(trained, documents),
                vectors,
                max_k,
                progress,
                documents.tags,
            )
        )
    return _publish(output, modules)


def _publish(
    output: str | os.PathLike[str], modules: Mapping[str, tf.Module]
) -> list[Path]:
    """Publishes modules by their names, and writes the server's files."""
    sizes = warmup_sizes(output)
    writers = {
        name: saved_model_writer(module, name, sizes)
        for name, module in modules.items()
    }
    folders = publish_together(output, writers)
    write_server_files(output, {f.parent.name: int(f.name) for f in folders})
    return folders


def _modules(model: _Model) -> dict[str, tf.Module]:
    """Returns the modules of a model alone, by the names they are served as."""
    if isinstance(model, PairScorer):
        return {"scorer": ScorerModule(model)}
    if isinstance(model, KeyVec):
        return {"keyvec": KeyVecModule(model)}
    return {
        "query_encoder": EncoderModule(model.query_encoder),
        "document_encoder": EncoderModule(model.document_encoder),
    }


def _query_and_document_encoder(
    model: TwoTower | MixtureTowers | KeyVec,
) -> tuple[GraphEncoder | KeyVec, GraphEncoder | KeyVec]:
    if isinstance(model, KeyVec):
        return model, model
    return model.query_encoder, model.document_encoder


def _texts(
    model: TwoTower | MixtureTowers | KeyVec, documents: Documents
) -> Sequence[str] | Sequence[list[str]]:
    """Returns the documents as a model reads them: texts or sentences."""
    if isinstance(model, KeyVec) and documents.sentences:
        return documents.sentences
    return documents.titles


def _check_retriever(model: _Model, output: str | os.PathLike[str]) -> None:
    """Checks that a retriever for a model may be exported to a folder.

    Raises:
        InputError: The model is a pair scorer; or the folder has encoders of
            another training, whose retriever would be replaced.
    """
    if isinstance(model, PairScorer):
        raise InputError(
            "documents are for the retriever of a KeyVec or of two towers, "
            "and this model is a pair scorer: leave them out"
        )
    other = "query_encoder" if isinstance(model, KeyVec) else "keyvec"
    if other in find_models(output):
        raise InputError(
            f"{output}: found {other}, of another training, whose retriever "
            "would be replaced; name another folder"
        )


def export_encoder(
    encoder: GraphEncoder,
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes an encoder as a version of a model, for TF Serving.

    Args:
        encoder: The trained encoder.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.

    Returns:
        `base/<number>`, which holds `saved_model.pb`.

    Raises:
        InputError: The version exists already, or a weight is not finite.

    Example:
    >>> export_encoder(model.query_encoder, "models/query_encoder")
    PosixPath('models/query_encoder/1')
    """
    return publish_module(EncoderModule(encoder), base, version)


def export_scorer(
    model: PairScorer,
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes a pair scorer as a version of a model, for TF Serving.

    Args:
        model: The trained pair scorer.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.

    Returns:
        `base/<number>`, which holds `saved_model.pb`.

    Raises:
        InputError: The version exists already, a weight is not finite, or
            the matcher has not been pre-trained.

    Example:
    >>> export_scorer(model, "models/scorer")
    PosixPath('models/scorer/1')
    """
    return publish_module(ScorerModule(model), base, version)


def export_keyvec(
    model: KeyVec,
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes a KeyVec as a version of a model, for TF Serving.

    Args:
        model: The trained model.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.

    Returns:
        `base/<number>`, which holds `saved_model.pb`.

    Raises:
        InputError: The version exists already, or a weight is not finite.

    Example:
    >>> export_keyvec(model, "models/keyvec")
    PosixPath('models/keyvec/1')
    """
    return publish_module(KeyVecModule(model), base, version)

"""Publishes trained models in a folder for TF Serving.

`export_models` publishes all models of one training together, with the files
that a server needs. `export_model` and `export_retriever` publish a version of
a single model.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.errors import InputError, check_choice
from keras_lstm_dssm.evaluation.hubness import hubness, sample
from keras_lstm_dssm.evaluation.postings import title_postings
from keras_lstm_dssm.export.bulk.documents import Documents, check_documents
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.export.graphs.encoder import (
    EncoderModule,
    GraphEncoder,
    HybridEncoderModule,
)
from keras_lstm_dssm.export.graphs.hybrid import HybridModule
from keras_lstm_dssm.export.graphs.retriever import (
    MAX_K,
    RetrieverModule,
    encoded_rows,
    retriever_graph,
)
from keras_lstm_dssm.export.graphs.saved_module import Graphs
from keras_lstm_dssm.export.portable import portable_part
from keras_lstm_dssm.export.publish.server_files import (
    check_server_files,
    publish_models,
)
from keras_lstm_dssm.export.publish.versions import publication, publish_module
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.model_cards import write_models_card
from keras_lstm_dssm.model_folders import find_models
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings.fields import VECTORS
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.kinds import KINDS, kind_of
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from lstm_dssm_client.signatures import check_count

if TYPE_CHECKING:
    from keras_lstm_dssm.models.keyvec import KeyVec
    from keras_lstm_dssm.models.pair_scorer import PairScorer


def export_models(
    model: "TwoTower | PairScorer | KeyVec | None",
    output: str | os.PathLike[str],
    documents: Documents | EncodedParts | None = None,
    vectors: str = "float32",
    max_k: int = MAX_K,
    progress: bool = False,
    run: str | os.PathLike[str] | None = None,
    teacher: TeacherVectors | None = None,
    hybrid: HybridSettings | None = None,
    queries: Iterable[str] = (),
) -> list[Path]:
    """Publishes a trained model with all files that a server needs.

    Two towers become `query_encoder` and `document_encoder`. A KeyVec becomes
    `keyvec`, and a pair scorer becomes `scorer`. With documents, towers and
    KeyVecs also get a `retriever`. Other models in the folder do not change.

    All exported models get the same version number, which is higher than every
    version number in the folder. If an export fails, servers keep the versions
    of the last complete export.

    Args:
        model: The trained model. With `hybrid`, the model can be `None`.
        output: Folder of the models, made if missing. The export also writes
            `models.config`, `batching.config` and a README for the server's
            operator into this folder.
        documents: Ids and texts for the retriever. By default no retriever is
            exported, and an existing retriever does not change.
        vectors: The dtype of the retriever's vectors: `float32`, or `int8`,
            which needs a quarter of the memory.
        max_k: Maximum number of results for a query, by default 1,000. A
            larger k in a request counts as `max_k`.
        progress: Whether to show a progress bar.
        run: Folder of the model's training run, for the record of the export
            in `card.json` and `CARD.md` of `output`. With neither `run` nor
            `teacher`, nothing is recorded.
        teacher: A teacher's vectors of titles. With a `word_sum` model, the
            retriever uses these vectors. A title that has no vector of the
            teacher gets a sum of word vectors. With `hybrid`, word vectors are
            fitted to the teacher if the model has no word vectors.
        hybrid: Weights of towers, word vectors and BM25 in the scores of a
            hybrid retriever; by default the retriever is not hybrid. Weights of
            missing towers or missing word vectors have no effect. With neither
            a model nor a teacher, no encoder is exported.
        queries: Training queries, for `hybrid`. Without queries, hubness (the
            mean cosine of a title with its nearest queries) has no weight. If
            BM25 compares stems, the retriever stores the stems of the words in
            titles and queries, because graphs cannot compute Porter2 stems.

    Returns:
        The folders of the new versions.

    Raises:
        InputError: `output` cannot be written to, or contains a
            `models.config` or a model that a server could not read; `vectors`
            or `max_k` is wrong; `documents` are given for a pair scorer; the
            retriever would replace the retriever of another training; a weight
            is not finite. In all these cases no version is published.

    Example:
    >>> export_models(model, "models", Documents(titles, titles))
    [PosixPath('models/query_encoder/1'), ...]
    """
    check_choice(VECTORS, vectors=vectors)
    check_count(max_k, "max_k")
    options = (model, documents, vectors, max_k, progress)
    if hybrid is not None:
        graphs = hybrid_graphs(*options, teacher, hybrid, queries)
    else:
        kind = kind_of(model)
        keywords: dict[str, Any] = {}
        if teacher is not None:
            keywords["teacher"] = teacher
        if keywords and "teacher" not in kind.options:
            raise InputError(
                f"found a {kind.noun}, and only two towers use a teacher's"
                " vectors of titles: leave the teacher out"
            )
        graphs = kind.load("graphs")(*options, **keywords)
    _check_output(output, graphs)
    modules = {name: make() for name, make in graphs.items()}
    with publication(output):
        _check_output(output, graphs)  # again: the folder may have changed
        folders = publish_models(output, modules)
        if run is not None or teacher is not None:
            write_models_card(
                output,
                {folder.parent.name: int(folder.name) for folder in folders},
                run,
                _count(documents),
                teacher.folder if teacher is not None else None,
            )
    return folders


def export_model(
    model: "GraphEncoder | PairScorer | KeyVec",
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes an encoder, a pair scorer or a KeyVec alone, for TF Serving.

    Args:
        model: The trained encoder, for example `TwoTower.query_encoder`, or
            the trained pair scorer or KeyVec.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.

    Returns:
        The folder `base/<number>` with `saved_model.pb`.

    Raises:
        InputError: The version exists already, a weight is not finite, or
            the matcher of a pair scorer has not been pre-trained.

    Example:
    >>> export_model(model.query_encoder, "models/query_encoder")
    PosixPath('models/query_encoder/1')
    """
    return publish_module(_module(model), base, version)


def export_retriever(
    query_encoder: "GraphEncoder | KeyVec",
    document_encoder: "GraphEncoder | KeyVec",
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
        query_encoder: Encodes queries in the server; may be a KeyVec.
        document_encoder: Encodes the titles during export. If `query_encoder`
            is a KeyVec, `document_encoder` must be the same KeyVec.
        ids: The titles' ids, which the retriever returns.
        titles: The documents' titles, or whole documents for a KeyVec.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.
        vectors: The dtype of the stored vectors: `float32`, or `int8`, which
            needs a quarter of the memory.
        max_k: Maximum number of results for a query, by default 1,000. A
            larger k in a request counts as `max_k`.
        tags: The tags of each title, at most 32, for searches that are
            restricted to tags; by default titles have no tags.

    Returns:
        The version's folder, `base/<number>`.

    Raises:
        InputError: There are no titles; the numbers of ids, tags and titles
            differ; an id is empty; `vectors` is unknown; `max_k` is below 1; a
            weight is not finite; a tag is blank or has a comma; a title has
            more than 32 tags; or the version exists already.

    Example:
    >>> encoder = dssm.DSSMEncoder(units=[4])
    >>> titles = ["hex bolt", "wood glue"]
    >>> path = export_retriever(encoder, encoder, ["d1", "d2"], titles, "shop")
    >>> path.as_posix()
    'shop/1'
    """
    check_choice(VECTORS, vectors=vectors)
    check_count(max_k, "max_k")
    documents = Documents([*ids], [*titles], tags=tags)
    check_documents(documents)
    encoder = _module(document_encoder)
    module = RetrieverModule(
        _module(query_encoder), encoded_rows(encoder, documents), vectors, max_k
    )
    return publish_module(module, base, version)


def tower_graphs(
    towers: TwoTower,
    documents: Documents | EncodedParts | None,
    vectors: str,
    max_k: int,
    progress: bool,
    teacher: TeacherVectors | None = None,
) -> Graphs:
    """Returns the functions that make the exported models of two towers."""
    query = EncoderModule(towers.query_encoder)
    document = EncoderModule(towers.document_encoder, teacher)
    portable = partial(portable_part, towers.query_encoder)
    return {
        "query_encoder": lambda: query,
        "document_encoder": lambda: document,
        **retriever_graph(
            query, document, documents, vectors, max_k, progress, portable
        ),
    }


def hybrid_graphs(
    model: Any,
    documents: Documents | EncodedParts | None,
    vectors: str,
    max_k: int,
    progress: bool,
    teacher: TeacherVectors | None,
    settings: HybridSettings,
    queries: Iterable[str],
) -> Graphs:
    """Returns the functions that make a hybrid retriever and its encoders."""
    queries = list(queries)
    if not isinstance(documents, Documents):
        raise InputError(
            "a hybrid retriever counts the words of titles: give the titles as"
            " a file, with --documents"
        )
    parts = HybridParts.of(model, teacher)
    settings = parts.settled(settings, documents.titles, queries)
    check_documents(documents)
    pair = parts.encoders(settings.weights)
    graphs: Graphs = {}
    query = document = None
    if pair is not None:
        query = HybridEncoderModule(pair[0])
        document = HybridEncoderModule(pair[1], teacher)
        graphs = {
            "query_encoder": lambda: query,
            "document_encoder": lambda: document,
        }

    def retriever() -> HybridModule:
        postings = title_postings(
            documents.titles, settings, queries, documents.fields
        )
        rows = encoded_rows(document, documents, progress)
        title_hubness = None
        if pair is not None and settings.hubness:
            query_vectors = pair[0].encode(sample(queries))
            title_hubness = hubness(rows.vectors, query_vectors)
        module = HybridModule(
            query, rows, settings, postings, title_hubness, vectors, max_k
        )
        module.portable = portable_part(
            pair and pair[0],
            rows,
            module.stored,
            settings,
            postings,
            title_hubness,
        )
        return module

    return {**graphs, "retriever": retriever}


def _count(documents: Documents | EncodedParts | None) -> int | None:
    if isinstance(documents, EncodedParts):
        return documents.rows
    return len(documents.ids) if documents else None


def _module(model: "GraphEncoder | PairScorer | KeyVec") -> Any:
    kind = KINDS.get(getattr(model, "kind", ""))
    if kind is None:
        return EncoderModule(model)
    (make,) = kind.load("graphs")(model, None, "float32", MAX_K, False).values()
    return make()


def _check_output(
    output: str | os.PathLike[str], names: Collection[str]
) -> None:
    """Checks that models with these names can be published in a folder."""
    if "retriever" in names:
        encoders = {"query_encoder", "keyvec"} & find_models(output).keys()
        for name in encoders.difference(names):
            raise InputError(
                f"{output}: found {name} of another training, and this export"
                " would replace the retriever of that training: give another"
                " folder"
            )
    check_folder(output)
    check_server_files(output, names)

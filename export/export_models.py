"""The functions that publish trained models in a folder for TF Serving.

`export_models` publishes all models of one training together, with the files
that a server needs beside them; `export_model` and `export_retriever` publish
a version of a single model.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.errors import InputError
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
    check_retriever_options,
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
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.kinds import KINDS, kind_of
from keras_lstm_dssm.training.hybrid_parts import HybridParts

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
    """Publishes all that a server needs of a trained model.

    Two towers become `query_encoder` and `document_encoder`, and a KeyVec
    becomes `keyvec`, each with a `retriever` if there are documents. A pair
    scorer becomes `scorer`. A folder can have models of several trainings; an
    export changes those of its training only.

    All exported models get one version number, above every version in the
    folder, so that equal numbers mean the same training. They are served
    together: a server reads in `models.config` which version of each is
    live, and that file is replaced last. If the export fails or is
    interrupted, the versions of the last complete export stay live.

    Args:
        model: The trained model. With `hybrid` it can be `None`.
        output: Folder of the models, made if missing. `models.config`,
            `batching.config` and a README for the server's operator are
            written next to the models.
        documents: Ids and texts for the retriever of towers or of a KeyVec;
            by default no retriever is exported, and an existing one does not
            change.
        vectors: How the retriever stores its vectors: `float32`, or `int8`
            for a quarter of the memory.
        max_k: Maximum number of results for a query, by default 1,000; a
            larger k in a request is reduced to it.
        progress: Whether to show a progress bar.
        run: Folder of the run that the model comes from. With it the export
            is recorded in `card.json` and `CARD.md` of `output`; by default
            it is not.
        teacher: For a run of `word_sum`: the teacher, whose own vectors its
            titles get in the retriever; other titles get sums of words. With
            `hybrid`, words are fitted to it if the model has no words part.
        hybrid: Weights of towers, words and BM25, by which the retriever ranks
            then; the encoders are those of the first two, and without a model
            and a teacher there are none. The settings of parts that are missing
            do not count.
        queries: With `hybrid`: training queries. Hubness is measured with
            them, and is left out without any; and the stems of their words are
            known, as those of titles: stems are looked up, not computed.

    Returns:
        The folders of the new versions.

    Raises:
        InputError: `output` cannot be written to, or holds a `models.config`
            or another model that a server could not read; `vectors` or
            `max_k` is wrong; there are documents for a pair scorer, or for a
            retriever in the folder of other encoders; a weight is not finite.
            No version is published.

    Example:
    >>> export_models(model, "models", Documents(titles, titles))
    [PosixPath('models/query_encoder/1'), ...]
    """
    check_retriever_options(vectors, max_k)
    options = (model, documents, vectors, max_k, progress)
    if hybrid is not None:
        graphs = hybrid_graphs(*options, teacher, hybrid, queries)
    else:
        kind = kind_of(model)
        taught: dict[str, Any] = {} if teacher is None else {"teacher": teacher}
        if taught and "teacher" not in kind.options:
            raise InputError(
                "a teacher has vectors of titles for two towers, and this model"
                f" is another: found a {kind.noun}: leave it out"
            )
        graphs = kind.load("graphs")(*options, **taught)
    _check_output(output, graphs)
    modules = {name: make() for name, make in graphs.items()}
    with publication(output):
        _check_output(output, graphs)  # others may have published meanwhile
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
        `base/<number>`, which holds `saved_model.pb`.

    Raises:
        InputError: The version exists already, a weight is not finite, or
            the matcher of a scorer has not been pre-trained.

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
    check_retriever_options(vectors, max_k)
    documents = Documents([*ids], [*titles], tags=tags)
    check_documents(documents)
    encoder = _module(document_encoder)
    module = RetrieverModule(
        _module(query_encoder),
        encoded_rows(encoder, documents),
        vectors,
        max_k,
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
    """Returns what is exported of two towers."""
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
    """Returns what is exported of a hybrid."""
    queries = list(queries)
    if not isinstance(documents, Documents):
        raise InputError(
            "a hybrid retriever counts the words of titles: give them with"
            " --documents, as a file"
        )
    parts = HybridParts.of(model, teacher)
    settings = parts.settled(settings, documents.titles, bool(queries))
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
        hubs = None
        if pair is not None and settings.hubness:
            hubs = hubness(rows.vectors, pair[0].encode(sample(queries)))
        module = HybridModule(
            query, rows, settings, postings, hubs, vectors, max_k
        )
        module.portable = portable_part(
            pair and pair[0], rows, vectors, settings, postings, hubs
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
    """Checks that models of these names can be published in a folder."""
    if "retriever" in names:
        others = {"query_encoder", "keyvec"} & find_models(output).keys()
        for name in others.difference(names):
            raise InputError(
                f"{output}: found {name}, of another training, whose retriever "
                "would be replaced; name another folder"
            )
    check_folder(output)
    check_server_files(output, names)

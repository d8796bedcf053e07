"""Exports two towers or a hybrid retriever to a file for `LocalModel`."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm import encoders
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.encoders.hybrid_encoder import HybridEncoder
from keras_lstm_dssm.errors import InputError, check_choice
from keras_lstm_dssm.evaluation.hubness import hubness, sample
from keras_lstm_dssm.evaluation.postings import stemmer_facts, title_postings
from keras_lstm_dssm.export.bulk.documents import (
    DocumentRows,
    Documents,
    check_documents,
    checked_tags,
)
from keras_lstm_dssm.export.graphs.encoder import (
    EncoderModule,
    HybridEncoderModule,
)
from keras_lstm_dssm.export.graphs.retriever import StoredVectors, encoded_rows
from keras_lstm_dssm.files import check_writable, replacing
from keras_lstm_dssm.model_cards import iso_time, run_record, teacher_facts
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings.fields import VECTORS
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.tables import HashedUniform
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from keras_lstm_dssm.version import __version__
from lstm_dssm_client.bm25 import Postings
from lstm_dssm_client.hybrid import HUBNESS
from lstm_dssm_client.local_encoder import ENCODERS, PARTS
from lstm_dssm_client.portable_file import (
    DOCUMENT,
    PORTABLE_PART,
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
    queries: Iterable[str] = (),
) -> HybridSettings | None:
    """Writes the encoders and the documents into one file.

    `lstm_dssm_client.LocalModel` searches and encodes with the file, without
    TensorFlow. Documents are encoded with the model's full weights, even if the
    file stores rounded weights.

    Args:
        model: The trained towers. The encoders must be encoders of this package
            other than `LayerEncoder`. With `hybrid`, the model can be `None`.
        path: File to write. An existing file is replaced at the end.
        documents: Ids, titles and tags; by default the file has no documents.
        weights: How the rows of the trigram tables are stored: `int8`, with a
            scale for each row, or `float32`. With `int8`, the table
            `bag_embedding` of a `CombinedEncoder` is stored as float16. Other
            floating-point weights are float32.
        vectors: How the documents' vectors are stored: `float32`, or `int8`.
        progress: Whether to show a progress bar.
        run: Folder of the model's training run, for the card.
        teacher: See `export_models`.
        hybrid: See `export_models`. The file omits encoders with weight 0.
        queries: See `export_models`.

    Returns:
        The settings of the hybrid in the file, or `None` without `hybrid`.

    Raises:
        InputError: The model is no `TwoTower`; an encoder is a `LayerEncoder`
            or of another package; `weights` or `vectors` is unknown; a weight
            is not finite; there are no titles; the numbers of ids, tags and
            titles differ; an id is empty; a tag is blank or has a comma; a
            title has more than 32 tags; `hybrid` is given without documents; or
            the file cannot be written.

    Example:
    >>> export_portable(model, "shop.safetensors", Documents(titles, titles))
    """
    check_choice(VECTORS, weights=weights)
    check_choice(VECTORS, vectors=vectors)
    check_writable(path)
    if documents:
        check_documents(documents)
    module: EncoderModule | None = None
    postings = None
    if hybrid is None:
        check_portable(model)
        assert model is not None
        pair: Any = (model.query_encoder, model.document_encoder)
        EncoderModule(pair[0])  # checks that the weights are finite
        module = EncoderModule(pair[1], teacher)
    else:
        if not documents:
            raise InputError(
                "a hybrid retriever ranks titles: give them with --documents"
            )
        parts = HybridParts.of(model, teacher)
        queries = list(queries)
        hybrid = parts.settled(hybrid, documents.titles, queries)
        pair = parts.encoders(hybrid.weights) or ()
        if pair:
            HybridEncoderModule(pair[0])
            module = HybridEncoderModule(pair[1], parts.teacher)
        postings = title_postings(
            documents.titles, hybrid, queries, documents.fields
        )
    rows = encoded_rows(module, documents, progress) if documents else None
    title_hubness = None
    if hybrid is not None and hybrid.hubness and pair:
        assert rows is not None
        query_vectors = pair[0].encode(sample(queries))
        title_hubness = hubness(rows.vectors, query_vectors)
    stored = None
    if rows is not None and rows.vectors is not None:
        stored = StoredVectors(rows.vectors, vectors)
    contents = _Contents(
        dict(zip((QUERY, DOCUMENT), pair, strict=False)),
        rows,
        stored,
        hybrid,
        postings,
        title_hubness,
        weights,
        documents.titles if documents else (),
        {
            "run": run_record(run),
            **teacher_facts(teacher.folder if teacher is not None else None),
        },
    )
    with replacing(path) as partial:
        contents.write(partial)
    return hybrid


def portable_part(
    encoder: Any,  # a `TextEncoder`, a `HybridEncoder` or None
    rows: DocumentRows,
    stored: StoredVectors | None,
    hybrid: HybridSettings | None = None,
    postings: Postings | None = None,
    title_hubness: np.ndarray | None = None,
) -> Callable[[Path], None] | None:
    """Returns a function that writes a retriever's file for `LocalModel`.

    Returns `None` if `LocalModel` cannot compute the encoder's vectors.
    """
    towers = [encoder]
    if isinstance(encoder, HybridEncoder):
        towers = [part.encoder for part in encoder.parts.values()]
    if encoder is not None and not all(map(_is_portable, towers)):
        return None
    by_name = {} if encoder is None else {QUERY: encoder}
    rows = rows._replace(vectors=None)  # frees memory for the other exports
    contents = _Contents(by_name, rows, stored, hybrid, postings, title_hubness)
    return lambda version: contents.write(version / PORTABLE_PART)


class _Contents(NamedTuple):
    """The content of a file for `LocalModel`."""

    encoders: Mapping[str, Any]
    rows: DocumentRows | None
    stored: StoredVectors | None
    hybrid: HybridSettings | None
    postings: Postings | None
    title_hubness: np.ndarray | None = None
    weights: str = "float32"
    texts: Sequence[str] = ()  # texts to search; hits show `rows.titles`
    card: Mapping[str, Any] = {}

    def write(self, path: Path) -> None:
        arrays: Arrays = {}
        records = {
            name: self._store(arrays, name, encoder)
            for name, encoder in self.encoders.items()
        }
        if self.rows is not None:
            arrays |= _stored_documents(self.rows, self.stored, self.texts)
        now = time.time()
        card = {
            "date": iso_time(now),
            "documents": len(self.rows.ids) if self.rows else 0,
            **self.card,
        }
        header = {
            "package": __version__,
            "version": int(now),
            "encoders": records,
            "card": card,
        }
        if self.hybrid is not None:
            assert self.postings is not None
            header["hybrid"] = {
                **self.hybrid.to_dict(),
                "terms": self.postings.words,
            }
            card |= stemmer_facts(self.hybrid)
            arrays |= {
                **stored_texts("terms/forms", [*self.postings.term_of]),
                "terms/form_terms": np.fromiter(
                    self.postings.term_of.values(), np.int32
                ),
                "terms/bounds": self.postings.bounds,
                "terms/documents": self.postings.documents,
                "terms/scores": self.postings.scores,
            }
            if self.title_hubness is not None:
                arrays[HUBNESS] = self.title_hubness
        path.parent.mkdir(exist_ok=True)
        write_portable(path, header, arrays)

    def _store(self, arrays: Arrays, name: str, encoder: Any) -> dict[str, Any]:
        """Adds weights to `arrays`; returns each tower's class and config."""
        if not isinstance(encoder, HybridEncoder):
            return _store_encoder(
                arrays, name, encoder, [encoder], self.weights
            )
        return {
            part: _store_encoder(
                arrays, f"{name}/{part}", *tower_and_layers, self.weights
            )
            for part, tower_and_layers in encoder.parts.items()
        }


def check_portable(model: Any) -> None:
    """Checks that a model consists of two towers that `LocalModel` knows."""
    if not isinstance(model, TwoTower):
        raise InputError(
            f"found a {kind_of(model).noun}, and only two towers are portable:"
            " export it for a server, with --output"
        )
    for tower in model.towers:
        _check_encoder(tower)


def _is_portable(tower: Any) -> bool:
    name = type(tower).__name__
    return name in ENCODERS and getattr(encoders, name) is type(tower)


def _check_encoder(tower: TextEncoder) -> None:
    if not _is_portable(tower):
        raise InputError(
            f"found the encoder {type(tower).__name__}, and only"
            f" {', '.join(ENCODERS)} are portable: export it for a server, with"
            " --output"
        )


def _store_encoder(
    arrays: Arrays,
    path: str,
    tower: TextEncoder,
    layers: list[Any],
    table_type: str,
) -> dict[str, Any]:
    """Adds layers' weights to `arrays`; returns a tower's class and config."""
    _check_encoder(tower)
    for weight, values in _stored_weights(tower, layers, table_type):
        arrays[f"{path}/{weight}"] = values
    name = type(tower).__name__
    part = f"{name}/{path.partition('/')[2]}"
    return {
        "class": part if part in PARTS else name,
        "config": tower.get_config(),
    }


def _stored_weights(
    tower: TextEncoder, layers: Iterable[Any], table_type: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields (name, array) for all arrays that store the weights of layers."""
    embeddings = {id(layer.table): layer for layer in tower.embeddings}
    inner = {id(weight) for layer in tower.layers for weight in layer.weights}
    for weight in [weight for layer in layers for weight in layer.weights]:
        # If no inner layer has a weight, the path contains the encoder's name.
        name = weight.path if id(weight) in inner else weight.name
        values = weight.numpy()
        if layer := embeddings.get(id(weight)):
            rows, start = layer.changed_rows(), (0, 0.0)
            if isinstance(layer.initializer, HashedUniform):
                start = layer.initializer.seed, layer.initializer.limit
            # `PortableFile.table` expects one row or more.
            rows = rows if len(rows) else np.array([0])
            # int8 is too coarse for rows whose sum is a part of the vector.
            is_sum = layer is getattr(tower, "bag_embedding", None)
            dtype = "float16" if is_sum and table_type == "int8" else table_type
            yield from stored_table(name, values, rows, start, dtype).items()
        elif values.dtype.kind in "iu":
            # `weight` has `WordSketch` signs, or `WordRows` keys or codes.
            yield name, values
        else:
            yield name, np.asarray(values, np.float32)


def _stored_documents(
    rows: DocumentRows, stored: StoredVectors | None, texts: Sequence[str]
) -> Arrays:
    """Returns the arrays that store documents, with equal vectors only once."""
    titles = [*(rows.titles or rows.ids)]
    arrays = stored_texts("titles", titles)
    if texts and [*texts] != titles:
        arrays |= stored_texts("texts", texts)
    if stored is not None:
        arrays |= stored.arrays
        equal = stored.equal
        if len(equal.first) < len(rows.ids):
            vector_of = np.empty(len(rows.ids), np.int32)
            vector_of[equal.order] = equal.vector_of
            arrays["vector_of"] = vector_of
    if [*rows.ids] != titles:
        arrays |= stored_texts("ids", rows.ids)
    if any(rows.tags):
        tags = [",".join(checked_tags(row)) for row in rows.tags]
        arrays |= stored_texts("tags", tags)
    return arrays

"""Runs exported models in this process, without a server.

`SavedEncoder`, `SavedKeyVec`, `SavedRetriever` and `SavedScorer` take texts.
`SavedGraph` and `SavedSignature` run any SavedModel on arrays; the server uses
these two classes.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.saved_module import (
    SIGNATURE,
    saved_fingerprint,
    signature_defs,
)
from keras_lstm_dssm.model_folders import served_version
from keras_lstm_dssm.private_api import session_callable
from keras_lstm_dssm.text.many_texts import arrays_in_batches, score_in_batches
from lstm_dssm_client.signatures import (
    EXPLAINED,
    FILTERED,
    KEYS,
    KNOWN_TAGS,
    ExplainedHit,
    Hit,
    KeyParts,
    as_bytes,
    check_known,
    chunked_to_explain,
    chunked_with_count,
    explained_from_outputs,
    hits_from_outputs,
    key_parts_from_outputs,
    no_explanations,
    no_tags,
    pairs_as_bytes,
    query_as_bytes,
    tags_as_bytes,
    tags_from_outputs,
)

GraphFunction = Callable[..., list[np.ndarray]]
"""Takes an array for each input, and returns an array for each output. Inputs
are in the order of their names, and so are outputs."""

# With -1, operations run one after another in the calling thread. For 700 small
# operations, this takes half the time of a thread pool. Matrix products still
# use all cores.
_CONFIG = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=-1)


class SavedGraph:
    """Holds a SavedModel's graph and variables; threads may share an object."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.definitions = signature_defs(folder)
        # A session is twice as fast as `tf.saved_model.load` for short texts.
        self._session = tf.compat.v1.Session(graph=tf.Graph(), config=_CONFIG)
        try:
            _load_graph(self._session, Path(folder))
        except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
            raise InputError(
                f"{folder}: TensorFlow cannot load it: {error}"
            ) from error

    def function(self, definition: SignatureDef) -> GraphFunction:
        """Returns a function that runs a signature; threads may share it."""
        run = session_callable(
            self._session,
            [info.name for _, info in sorted(definition.inputs.items())],
            [info.name for _, info in sorted(definition.outputs.items())],
        )
        return lambda *inputs: [_array(values) for values in run(*inputs)]


class SavedSignature:
    """Runs a signature on arrays; threads may share the object."""

    def __init__(self, model: SavedGraph, name: str) -> None:
        self._model = model
        self.definition = model.definitions[name]
        self.inputs = sorted(self.definition.inputs)
        self.outputs = sorted(self.definition.outputs)
        self._preparing = threading.Lock()
        self._function: GraphFunction | None = None

    def __call__(
        self, **inputs: Sequence[bytes] | np.ndarray
    ) -> dict[str, np.ndarray]:
        """Returns all outputs by name; the first call prepares the graph."""
        arrays = (
            value if isinstance(value, np.ndarray) else np.array(value, object)
            for value in (inputs[name] for name in self.inputs)
        )
        if self._function is None:
            with self._preparing:  # only once, even for several threads
                if self._function is None:
                    self._function = self._model.function(self.definition)
        outputs = self._function(*arrays)
        return dict(zip(self.outputs, outputs, strict=True))


def _load_graph(session: tf.compat.v1.Session, folder: Path) -> None:
    with session.graph.as_default(), _without_deprecation():
        try:
            tf.compat.v1.saved_model.load(
                session, [tf.saved_model.SERVING], str(folder)
            )
        except ValueError as error:
            index = folder / "variables" / "variables.index"
            if index.exists():
                raise
            raise FileNotFoundError(f"{index}: not found") from error


def _array(values: np.ndarray | np.generic | bytes) -> np.ndarray:
    # A session returns a scalar as a Python object or a NumPy scalar.
    return np.asarray(values, object if isinstance(values, bytes) else None)


@contextmanager
def _without_deprecation() -> Iterator[None]:
    """Hides the warning that TensorFlow's loader is deprecated."""
    logger = tf.get_logger()

    def is_other(record: logging.LogRecord) -> bool:
        return "is deprecated" not in record.getMessage()

    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


class SavedEncoder:
    """Runs an exported encoder, without the Python class of the encoder.

    Args:
        path: The folder of a version, or the folder of a model. From a model's
            folder, the newest version that `models.config` serves is loaded.

    Attributes:
        fingerprint: Hash of everything that determines the vectors.

    Raises:
        InputError: The folder holds no SavedModel of an encoder.

    Example:
    >>> SavedEncoder("models/query_encoder").encode(["bolt"]).shape
    (1, 96)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._model, self._serve = _load(path, {"text"})
        self.fingerprint = saved_fingerprint(path)

    def encode(
        self,
        texts: Sequence[str | bytes],
        batch_size: int = 2048,
        progress: bool = False,
    ) -> np.ndarray:
        """Encodes n texts into unit vectors, float32 `[n, d]`.

        Batches have at most `batch_size` texts and half a megabyte.
        """
        return arrays_in_batches(
            lambda rows: self._serve(text=rows)["embedding"],
            texts,
            batch_size,
            progress,
        )


class SavedKeyVec(SavedEncoder):
    """Runs an exported KeyVec: vectors, key sentences and key words.

    A document is one string. `encode` is inherited from `SavedEncoder`.

    Args:
        path: See `SavedEncoder`.

    Raises:
        InputError: The folder holds no SavedModel of a KeyVec.

    Example:
    >>> keyvec = SavedKeyVec("models/keyvec")
    >>> keyvec.keys(["A list is sorted. See below."], n=1)
    [KeyParts(sentences=[('A list is sorted.', 0.7)], words=['sorting'])]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        if KEYS not in self._model.definitions:
            raise InputError(
                f"{path}: it has no signature {KEYS!r}; name the folder of an "
                "exported KeyVec, such as MODELS/keyvec"
            )
        self._keys = SavedSignature(self._model, KEYS)

    def keys(self, texts: Sequence[str | bytes], n: int = 5) -> list[KeyParts]:
        """Returns a `KeyParts` for each document; see `Client.keys`.

        Raises:
            InputError: n is below 1, or too large for int32.
        """
        parts: list[KeyParts] = []
        for inputs in chunked_with_count(texts, n, "n"):
            parts += key_parts_from_outputs(**self._keys(**inputs), n=n)
        return parts


class SavedRetriever:
    """Searches the documents of an exported retriever, in this process.

    Args:
        path: See `SavedEncoder`.

    Raises:
        InputError: The folder holds no SavedModel of a retriever.

    Example:
    >>> SavedRetriever("models/retriever").search(["angle bracket"], k=1)
    [[Hit(id='s1', score=0.83, title='Simpson 12-Gauge Angle')]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        model, self._serve = _load(path, {"text", "k"})
        self._filtered, self._tags, self._explained = (
            SavedSignature(model, name) if name in model.definitions else None
            for name in (FILTERED, KNOWN_TAGS, EXPLAINED)
        )

    def search(
        self, texts: Sequence[str | bytes], k: int = 5, tags: Iterable[str] = ()
    ) -> list[list[Hit]]:
        """Returns the k best documents of each query; see `Client.search`.

        Raises:
            InputError: k is below 1, or too large for int32; a tag is blank,
                has a comma, or belongs to no document; or the retriever was
                exported without tags.
        """
        hits: list[list[Hit]] = []
        filter_tags = tags_as_bytes(tags)
        serve = self._filtered if filter_tags else self._serve
        if serve is None:
            raise no_tags(str(self._path))
        for inputs in chunked_with_count(texts, k, tags=filter_tags):
            hits += hits_from_outputs(**serve(**inputs), k=k)
        self._check_tags(filter_tags, hits)
        return hits

    def _check_tags(
        self, tags: bytes, hits: Sequence[Sequence[Hit | ExplainedHit]]
    ) -> None:
        """Raises `InputError` if there are no hits because a tag is unknown."""
        if tags and hits and not any(hits):
            check_known(str(self._path), tags, self.tags())

    def tags(self) -> dict[str, int]:
        """Returns tag -> number of documents; see `Client.tags`."""
        if self._tags is None:
            raise no_tags(str(self._path))
        return tags_from_outputs(**self._tags(text=np.array([b""], object)))

    def explain(
        self, texts: Sequence[str | bytes], k: int = 5, tags: Iterable[str] = ()
    ) -> list[list[ExplainedHit]]:
        """Returns the k best documents, explained; see `Client.explain`.

        Raises:
            InputError: The retriever was exported without `--hybrid`; or see
                `search`.
        """
        if self._explained is None:
            raise no_explanations(str(self._path))
        hits: list[list[ExplainedHit]] = []
        filter_tags = tags_as_bytes(tags)
        for inputs in chunked_to_explain(texts, k, filter_tags):
            hits += explained_from_outputs(**self._explained(**inputs), k=k)
        self._check_tags(filter_tags, hits)
        return hits


class SavedScorer:
    """Scores pairs of texts with an exported pair scorer, in this process.

    Args:
        path: See `SavedEncoder`.

    Raises:
        InputError: The folder holds no SavedModel of a pair scorer.

    Example:
    >>> scorer = SavedScorer("models/scorer")
    >>> scorer.score("angle bracket", ["steel angle", "wood glue"])
    array([ 1.3, -0.2], dtype=float32)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        _, self._serve = _load(path, {"query", "document"})

    def score(
        self,
        query: str | bytes,
        documents: Iterable[str | bytes],
        batch_size: int = 512,
    ) -> np.ndarray:
        """Scores n documents for one query, float32 `[n]`.

        Raises:
            InputError: `query` is not one text, `documents` is not an iterable
                of texts, or `batch_size` is below 1.
        """
        text, texts = query_as_bytes(query), as_bytes(documents)
        return self.score_pairs([text] * len(texts), texts, batch_size)

    def score_pairs(
        self,
        queries: Iterable[str | bytes],
        documents: Iterable[str | bytes],
        batch_size: int = 256,
        progress: bool = False,
    ) -> np.ndarray:
        """Scores n pairs, query i with document i, float32 `[n]`.

        Raises:
            InputError: The numbers of queries and documents differ; or see
                `score`.
        """
        sides = pairs_as_bytes(queries, documents)

        def score(rows: np.ndarray) -> np.ndarray:
            query, document = ([side[row] for row in rows] for side in sides)
            return self._serve(query=query, document=document)["score"]

        lengths = [len(document) for document in sides[1]]
        return score_in_batches(score, lengths, batch_size, progress)


def _load(
    path: str | os.PathLike[str], inputs: set[str]
) -> tuple[SavedGraph, SavedSignature]:
    """Loads a SavedModel; checks the input names of its default signature."""
    folder = served_version(path) or Path(path)
    try:
        model = SavedGraph(folder)
        serve = SavedSignature(model, SIGNATURE)
    except (InputError, KeyError) as error:
        raise InputError(
            f"{path}: no SavedModel here that can be loaded; name a model's "
            "folder that lstm-dssm-export has written, such as "
            "MODELS/query_encoder"
        ) from error
    if set(serve.inputs) != inputs:
        raise InputError(
            f"{path}: its inputs are {serve.inputs}, expected "
            f"{sorted(inputs)}; name the folder of another model"
        )
    return model, serve

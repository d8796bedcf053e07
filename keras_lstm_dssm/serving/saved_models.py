"""Runs exported models in this process, from their SavedModels."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.encoder_details import saved_fingerprint
from keras_lstm_dssm.export.models_config import served_version
from keras_lstm_dssm.export.saved_module import SIGNATURE
from keras_lstm_dssm.serving.saved_graph import SavedGraph, SavedSignature
from keras_lstm_dssm.text import arrays_in_batches
from keras_lstm_dssm.text.text_pairs import score_in_batches
from lstm_dssm_client.chunks import chunked, rows_for
from lstm_dssm_client.results import (
    Hit,
    KeyParts,
    hits_from_outputs,
    key_parts_from_outputs,
)
from lstm_dssm_client.signatures import FILTERED, KEYS
from lstm_dssm_client.texts import (
    as_bytes,
    pairs_as_bytes,
    query_as_bytes,
    tags_as_bytes,
)


class SavedEncoder:
    """Runs an exported encoder, without the Python class of the encoder.

    For a large corpus, each worker of a system such as Ray Data loads one.

    Args:
        path: A version's folder, or a model's folder: then the newest version
            that `models.config` serves is loaded.

    Attributes:
        fingerprint: Hash of what determines the vectors, which tells whether
            parts of encoded titles are of this encoder.

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
        """Encodes texts into unit vectors.

        Args:
            texts: n texts.
            batch_size: Number of texts encoded at once, of half a megabyte
                at most. Larger batches are faster and need more memory.
            progress: Whether to show a progress bar.

        Returns:
            float32 `[n, d]`.
        """
        return arrays_in_batches(
            lambda rows: self._serve(text=rows)["embedding"],
            texts,
            batch_size,
            progress,
        )


class SavedKeyVec(SavedEncoder):
    """Runs an exported KeyVec: vectors, key sentences and key words.

    A document is one string. `encode` is that of `SavedEncoder`.

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
        """Returns the key sentences and key words of documents.

        Args:
            texts: The documents.
            n: Number of sentences, and of words, of each document; see
                `Client.keys`.

        Returns:
            A `KeyParts` for each document.

        Raises:
            InputError: n is below 1, or too large for int32.
        """
        parts: list[KeyParts] = []
        for rows in chunked(texts, rows_for(n, "n")):
            outputs = self._keys(text=rows, n=np.full(len(rows), n, np.int32))
            parts += key_parts_from_outputs(**outputs, n=n)
        return parts


class SavedRetriever:
    """Searches the documents of an exported retriever, in this process.

    Args:
        path: See `SavedEncoder`.

    Raises:
        InputError: The folder holds no SavedModel of a retriever.

    Example:
    >>> SavedRetriever("models/retriever").search(["angle bracket"], k=1)
    [[Hit(id='Simpson 12-Gauge Angle', score=0.83)]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        model, self._serve = _load(path, {"text", "k"})
        self._filtered = (
            SavedSignature(model, FILTERED)
            if FILTERED in model.definitions
            else None
        )

    def search(
        self,
        texts: Sequence[str | bytes],
        k: int = 5,
        tags: Iterable[str] = (),
    ) -> list[list[Hit]]:
        """Returns the k best documents of each query, best first.

        Args:
            texts: n queries.
            k: Number of documents for each query; see `Client.search`.
            tags: Only documents that have any of these tags; by default all.

        Returns:
            n lists of `Hit`.

        Raises:
            InputError: k is below 1, or too large for int32; a tag is blank
                or has a comma; or the retriever was exported without tags.
        """
        hits: list[list[Hit]] = []
        wanted = tags_as_bytes(tags)
        serve = self._filtered if wanted else self._serve
        if serve is None:
            raise InputError(
                f"{self._path}: it was exported without tags, and cannot"
                " filter by them: export it with lines id TAB title TAB tags"
            )
        for rows in chunked(texts, rows_for(k)):
            inputs = {"text": rows, "k": np.full(len(rows), k, np.int32)}
            if wanted:
                inputs["tags"] = np.full(len(rows), wanted, object)
            outputs = serve(**inputs)
            hits += hits_from_outputs(outputs["ids"], outputs["scores"], k)
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
        """Scores documents for one query.

        Args:
            query: The query's text.
            documents: n texts.
            batch_size: Number of documents scored at once.

        Returns:
            float32 `[n]`, in the order of the documents.

        Raises:
            InputError: `query` is not one text, `documents` are no texts, or
                `batch_size` is below 1.
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
        """Scores pairs, in batches of similar length.

        Args:
            queries: n queries.
            documents: n documents.
            batch_size: Number of pairs scored at once.
            progress: Whether to show a progress bar.

        Returns:
            float32 `[n]`.

        Raises:
            InputError: There are not as many documents as queries; or see
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
    """Loads a SavedModel, and checks the names of its inputs.

    Returns:
        The model and its signature `serving_default`.
    """
    folder = served_version(path) or Path(path)
    try:
        model = SavedGraph(folder)
        serve = SavedSignature(model, SIGNATURE)
    except (InputError, KeyError) as error:
        raise InputError(
            f"{path}: no SavedModel here that can be loaded; name a model's "
            "folder as lstm-dssm-export writes it, such as "
            "MODELS/query_encoder"
        ) from error
    if set(serve.inputs) != inputs:
        raise InputError(
            f"{path}: its inputs are {serve.inputs}, expected "
            f"{sorted(inputs)}; name the folder of another model"
        )
    return model, serve

"""`LocalModel`: the encoders and the titles of one file, without a server."""

import math
import os
from functools import cached_property
from http import HTTPStatus
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client.errors import InputError, serving_error
from lstm_dssm_client.local_encoder import ENCODERS, LocalEncoder, Table
from lstm_dssm_client.portable_file import PortableFile, reading
from lstm_dssm_client.signatures import (
    DEFAULT,
    FILTERED,
    Signature,
    TensorInfo,
    VersionStatus,
)
from lstm_dssm_client.text_client import (
    GetMetadata,
    GetStatus,
    Metadata,
    Predict,
    Request,
    TextClient,
)

QUERY, DOCUMENT, RETRIEVER = "query_encoder", "document_encoder", "retriever"
"""Names of the models, those of an export for a server."""

PADDING_COSINE = -2.0
"""Score in the columns beyond the k of a query; lower than any cosine."""

_SCORES = 1 << 24  # scores that are computed at once
_MOST = 1 << 24  # the largest number that describes an encoder


class _Weights:
    """The weights of one encoder; see `local_encoder.Weights`.

    Those that the document encoder shares with the query encoder are stored
    once.
    """

    def __init__(self, file: PortableFile, name: str) -> None:
        self._file = file
        self._name = name

    def array(self, name: str, *shape: int, dtype: Any = np.float32) -> Any:
        """Returns an array of this shape."""
        return self._file.array(self._owner(name), *shape, dtype=dtype)

    def table(self, name: str, rows: int, width: int) -> Table:
        """Returns the table of an embedding."""
        return self._file.table(self._owner(f"{name}/table"), rows, width)

    def _owner(self, name: str) -> str:
        own = f"{self._name}/{name}"
        return own if own in self._file else f"{QUERY}/{name}"


class _Documents:
    """The documents of a file, and an exact search of them."""

    def __init__(self, file: PortableFile, width: int) -> None:
        self.titles = file.texts("titles")
        count = len(self.titles)
        self.ids = file.texts("ids", count) if "ids" in file else self.titles
        vectors, scales = file.table("vectors", count, width)
        # Products of integers would take longer than all of a search.
        self._vectors = vectors.astype(np.float32, copy=False)
        if scales is not None:
            self._vectors *= scales[:, np.newaxis]
        self._id_array = np.array(self.ids, object)
        self.rows_of_tag: dict[bytes, list[int]] = {}
        for row, tags in enumerate(
            file.texts("tags", count) if "tags" in file else ()
        ):
            for tag in filter(None, tags.split(b",")):
                self.rows_of_tag.setdefault(tag, []).append(row)

    def search(
        self, queries: np.ndarray, k: np.ndarray, tags: list[bytes] | None
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a retriever, best first.

        See `RetrieverModule.serve` of `keras_lstm_dssm` for inputs and outputs.
        """
        count = len(self.titles)
        width = max(0, min(int(k.max(initial=0)), count))
        ids = np.full((len(queries), width), b"", object)
        scores = np.full(ids.shape, PADDING_COSINE, np.float32)
        step = max(1, _SCORES // count)
        for start in range(0, len(queries), step):
            block = self._vectors @ queries[start : start + step].T
            for row, cosines in enumerate(block.T, start):
                if tags is not None and tags[row].strip():
                    found = self._with_tags(tags[row])
                    best = found[_largest(cosines[found], k[row])]
                else:
                    best = _largest(np.ascontiguousarray(cosines), k[row])
                ids[row, : len(best)] = self._id_array[best]
                scores[row, : len(best)] = cosines[best]
        return {"ids": ids, "scores": scores}

    def _with_tags(self, tags: bytes) -> np.ndarray:
        rows = {
            row
            for tag in tags.split(b",")
            for row in self.rows_of_tag.get(tag.strip(), ())
        }
        return np.array(sorted(rows), np.int64)


def _largest(scores: np.ndarray, k: int) -> np.ndarray:
    """Returns where the k largest are, descending; of equal ones the first."""
    places = np.arange(len(scores))
    if 0 < k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")[: max(k, 0)]]


class _Reply(NamedTuple):
    """What was computed for a request; a `PredictReply`."""

    version: int
    values: dict[str, np.ndarray]

    def outputs(self, signature: Signature | None) -> dict[str, np.ndarray]:
        """Returns the outputs by name."""
        return self.values


class _Models:
    """Answers requests as a server of the same models; a `Transport`."""

    timeout = math.inf

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.target = os.fspath(path)
        with reading(self.target):
            file = PortableFile(path)
            self.version: int = file.header["version"]
            self.card: dict[str, Any] = file.header["card"]
            self._encoders = {
                name: _encoder(file, name) for name in (QUERY, DOCUMENT)
            }
            width = self._encoders[QUERY].dimension
            self.documents = (
                _Documents(file, width) if "titles" in file else None
            )
        self._signatures = self._all_signatures()

    def send(self, request: Request) -> Any:
        """Answers a request."""
        version = None if isinstance(request, GetStatus) else request.version
        signatures = self._signatures.get(request.model)
        if signatures is None or version not in (None, self.version):
            raise self._error(
                HTTPStatus.NOT_FOUND,
                request.model,
                f"found version {self.version} of {', '.join(self._signatures)}",
            )
        if isinstance(request, GetStatus):
            return {self.version: VersionStatus("AVAILABLE", "OK", "")}
        if isinstance(request, GetMetadata):
            return Metadata(self.version, signatures)
        return _Reply(self.version, self._predict(request, signatures))

    def close(self) -> None:
        """Does nothing: the file was closed when it was read."""

    def _predict(
        self, request: Predict, signatures: dict[str, Signature]
    ) -> dict[str, np.ndarray]:
        signature = signatures.get(request.signature)
        if signature is None and request.signature == FILTERED:
            raise InputError(
                f"{self.target}: it was exported without tags, and cannot"
                " filter by them: export it with lines id TAB title TAB tags"
            )
        rows = {len(values) for values in request.inputs.values()}
        if (
            signature is None
            or request.inputs.keys() != signature.inputs.keys()
            or not signature.outputs.keys() >= set(request.outputs)
            or len(rows) != 1
        ):
            raise self._error(
                HTTPStatus.BAD_REQUEST,
                request.model,
                f"expected {signatures}, of all inputs as many rows",
            )
        texts = request.inputs["text"].tolist()
        if request.model != RETRIEVER:
            outputs = {"embedding": self._encoders[request.model].encode(texts)}
        else:
            assert self.documents
            tags = request.inputs.get("tags")
            outputs = self.documents.search(
                self._encoders[QUERY].encode(texts),
                request.inputs["k"],
                None if tags is None else tags.tolist(),
            )
        names = request.outputs or outputs
        return {name: outputs[name] for name in names}

    def _all_signatures(self) -> dict[str, dict[str, Signature]]:
        text = {"text": TensorInfo("string", (None,))}
        found = {
            name: {
                DEFAULT: Signature(
                    text,
                    {
                        "embedding": TensorInfo(
                            "float32", (None, encoder.dimension)
                        )
                    },
                )
            }
            for name, encoder in self._encoders.items()
        }
        if self.documents:
            inputs = text | {"k": TensorInfo("int32", (None,))}
            outputs = {
                "ids": TensorInfo("string", (None, None)),
                "scores": TensorInfo("float32", (None, None)),
            }
            found[RETRIEVER] = {DEFAULT: Signature(inputs, outputs)}
            if self.documents.rows_of_tag:
                tagged = inputs | {"tags": TensorInfo("string", (None,))}
                found[RETRIEVER][FILTERED] = Signature(tagged, outputs)
        return found

    def _error(self, code: HTTPStatus, model: str, details: str) -> OSError:
        return serving_error(code, details, self.target, model)


def _encoder(file: PortableFile, name: str) -> LocalEncoder:
    """Makes an encoder; its numbers are checked before arrays are made."""
    described = file.header["encoders"][name]
    config = described["config"]
    for key, value in config.items():
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and not 0 <= number <= _MOST:
                raise ValueError(f"{key} is {value!r:.40}")
    encoder = ENCODERS[described["class"]](config, _Weights(file, name))
    encoder.encode([b"one text"])  # all else that may be wrong fails here
    return encoder


class LocalModel(TextClient):
    """Searches and encodes with one file in this process, as `Client` asks.

    It has the methods of `Client`, with the same arguments, results and errors.
    The models are `query_encoder`, `document_encoder` and, if the file has
    titles, `retriever`. It needs NumPy and `safetensors`, no TensorFlow.
    Threads may share it. In memory the titles' vectors are float32, also those
    that the file stores as int8.

    Args:
        path: File that `lstm-dssm-export --portable` has written.

    Attributes:
        version: Number of the models' version, which is the time of the export
            in seconds since 1970.
        card: What is recorded of the training: "date", "documents" and "runs".

    Raises:
        InputError: The file is missing or damaged, or of another version.

    Example:
    >>> from lstm_dssm_client import LocalModel
    >>> model = LocalModel("shop.safetensors")
    >>> model.search(["angle bracket"], k=1)
    [[Hit(id='Simpson 12-Gauge Angle', score=0.83)]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        models = _Models(path)
        super().__init__(models)
        self.version = models.version
        self.card = models.card
        self._documents = models.documents

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of each document, by its id."""
        if not self._documents:
            return {}
        pairs = zip(self._documents.ids, self._documents.titles, strict=True)
        return {
            key.decode(errors="replace"): title.decode(errors="replace")
            for key, title in pairs
        }

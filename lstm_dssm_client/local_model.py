"""`LocalModel` encodes and searches with one file, without a server."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Any

import numpy as np

from lstm_dssm_client.errors import serving_error
from lstm_dssm_client.hybrid import (
    TOWERS,
    WORDS,
    Hybrid,
    probability,
    read_weights,
)
from lstm_dssm_client.local_encoder import LocalEncoder
from lstm_dssm_client.portable_file import (
    DOCUMENT,
    QUERY,
    RETRIEVER,
    PortableFile,
    Weights,
    reading,
)
from lstm_dssm_client.signatures import (
    EXPLAINED_K,
    ExplainedHit,
    Hit,
    Version,
    VersionStatus,
    as_bytes,
    by_name,
    check_known,
    no_explanations,
    no_tags,
    rows_for,
    slices_of_size,
    tags_as_bytes,
)
from lstm_dssm_client.weighted_parts import Part, WeightedParts

_ROWS, _BYTES = 512, 1 << 19  # largest numbers of texts and bytes in a batch
_SCORES = 1 << 24  # maximum number of scores that are computed at once
_MAX_SIZE = 1 << 24  # largest number that an encoder's configuration may have


class LocalModel:
    """Searches and encodes in this process, with one file and no server.

    `encode`, `search`, `explain`, `tags` and `status` have the arguments and
    results of the methods of `HttpClient`. The models are `query_encoder`,
    `document_encoder` and, if the file has documents, `retriever`. A hybrid
    retriever that ranks by terms alone has no encoders. The class needs NumPy
    and `safetensors`, not TensorFlow. Threads may share a `LocalModel`. The
    documents' vectors are float32 in memory, even if the file stores int8.

    Args:
        path: A file that `lstm-dssm-export --portable` wrote; or the file
            `assets.extra/portable.safetensors` in the folder of a retriever's
            version. The second file has no `document_encoder`.

    Attributes:
        version: Time of the export, in seconds since 1970.
        card: Facts about the export, such as "date" and "documents", and about
            the training run.

    Raises:
        InputError: The file is missing or damaged, or has another format than
            this version reads.

    Example:
    >>> from lstm_dssm_client import LocalModel
    >>> model = LocalModel("shop.safetensors")
    >>> model.search(["angle bracket"], k=1)
    [[Hit(id='s1', score=0.83, title='Simpson 12-Gauge Angle')]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.target = os.fspath(path)
        with reading(path):
            file = PortableFile(path)
            self.version: int = file.header["version"]
            self.card: dict[str, Any] = file.header["card"]
            self._encoders = (
                _hybrid_encoders(file)
                if "hybrid" in file.header
                else {n: _encoder(file, n) for n in _encoder_names(file)}
            )
            self._documents = (
                _Documents(file, self._encoders.get(QUERY))
                if "titles" in file
                else None
            )

    @cached_property
    def titles(self) -> dict[str, str]:
        """The titles, by document id; empty if the file has no documents."""
        return self._by_id("titles")

    @cached_property
    def texts(self) -> dict[str, str]:
        """The texts that were encoded, by document id.

        If the file stores no texts, the values are the titles. If the file has
        no documents, the dictionary is empty.
        """
        return self._by_id("texts")

    def _by_id(self, name: str) -> dict[str, str]:
        if not self._documents:
            return {}
        values = map(_decoded, getattr(self._documents, name))
        return dict(zip(self._documents.ids, values, strict=True))

    def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = QUERY,
        version: Version = None,
    ) -> np.ndarray:
        """Encodes texts, float32 `[n, d]`; see `Client.encode`."""
        self._check(model, version, self._encoders)
        encoder = self._encoders[model]
        encoded = as_bytes(texts)
        vectors = np.empty((len(encoded), encoder.dimension), np.float32)
        for rows in slices_of_size([*map(len, encoded)], _ROWS, _BYTES):
            vectors[rows] = encoder.encode(encoded[rows])
        return vectors

    def search(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = RETRIEVER,
        version: Version = None,
        tags: Iterable[str] = (),
    ) -> list[list[Hit]]:
        """Returns the k best documents of each query; see `Client.search`."""
        rows_for(k)  # raises InputError if k is out of range
        documents = self._checked_documents(model, version)
        encoded = as_bytes(texts)
        return [
            [Hit(documents.ids[r], s, documents.title(r)) for r, s in best]
            for best in self._best(
                documents, encoded, self._query_vectors(encoded), k, tags
            )
        ]

    def _best(
        self,
        documents: "_Documents",
        texts: list[bytes],
        vectors: np.ndarray | None,
        k: int,
        tags: Iterable[str],
    ) -> list[list[tuple[int, float]]]:
        """Checks the tags; returns indices and scores of the best documents."""
        tag_text = tags_as_bytes(tags)
        if tag_text and not documents.rows_of_tag:
            raise no_tags(self.target)
        hits = [*documents.search(texts, vectors, k, tag_text)]
        if tag_text and hits and not any(hits):
            check_known(self.target, tag_text, self.tags())
        return hits

    def tags(
        self, model: str = RETRIEVER, version: Version = None
    ) -> dict[str, int]:
        """Returns the number of documents of each tag; see `Client.tags`."""
        rows_of_tag = self._checked_documents(model, version).rows_of_tag
        return {
            _decoded(t): len(rows) for t, rows in sorted(rows_of_tag.items())
        }

    def explain(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = RETRIEVER,
        version: Version = None,
        tags: Iterable[str] = (),
    ) -> list[list[ExplainedHit]]:
        """Returns the k best documents with reasons; see `Client.explain`."""
        rows_for(k)
        documents = self._checked_documents(model, version)
        if documents.hybrid is None:
            raise no_explanations(f"{model} of {self.target}")
        encoded = as_bytes(texts)
        vectors = self._query_vectors(encoded)
        k = min(k, EXPLAINED_K)
        return [
            documents.explained(
                encoded[row], best, None if vectors is None else vectors[row]
            )
            for row, best in enumerate(
                self._best(documents, encoded, vectors, k, tags)
            )
        ]

    def _query_vectors(self, texts: list[bytes]) -> np.ndarray | None:
        return self.encode(texts) if self._encoders else None

    def _checked_documents(self, model: str, version: Version) -> "_Documents":
        documents = self._documents
        self._check(model, version, [RETRIEVER] if documents else [])
        assert documents
        return documents

    def status(self, model: str) -> dict[int, VersionStatus]:
        """Returns the state of the only version; see `Client.status`."""
        self._check(model, None, self._models)
        return {self.version: VersionStatus("AVAILABLE", "OK", "")}

    def close(self) -> None:
        """Does nothing: the constructor has closed the file."""

    def __enter__(self) -> "LocalModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _models(self) -> list[str]:
        return [*self._encoders, *[RETRIEVER][: self._documents is not None]]

    def _check(
        self, model: str, version: Version, models: Iterable[str]
    ) -> None:
        """Raises `ServingError` for an unknown model or version."""
        if model not in models or version not in (None, self.version):
            raise serving_error(
                HTTPStatus.NOT_FOUND,
                f"found version {self.version} of {', '.join(self._models)}",
                self.target,
                model,
            )


class _Documents:
    """The documents of a file, with exact search."""

    def __init__(self, file: PortableFile, encoder: Any) -> None:
        self.titles = file.texts("titles")
        count = len(self.titles)
        self.texts, ids = (
            file.texts(name, count) if name in file else self.titles
            for name in ("texts", "ids")
        )
        self.ids = [*map(_decoded, ids)]
        self.hybrid = (
            Hybrid(file, count, encoder) if "hybrid" in file.header else None
        )
        # Equal vectors share a row, so that their scores are equal. In separate
        # rows, the last bits of their scores could differ.
        self._vectors: np.ndarray | None = None
        if encoder is not None:
            shared = "vector_of" in file
            vectors, scales = file.scaled(
                "vectors", None if shared else count, encoder.dimension
            )
            self._vector_of = np.arange(count)
            if shared:
                self._vector_of = file.array("vector_of", count, dtype=np.int32)
                rows, used = np.arange(len(vectors)), np.unique(self._vector_of)
                if len(rows) >= count or not np.array_equal(rows, used):
                    raise ValueError("vector_of does not fit the vectors")
            # Float32, because NumPy's integer matrix products are slow.
            self._vectors = (
                vectors if scales is None else vectors * scales[:, np.newaxis]
            )
        self.rows_of_tag: dict[bytes, list[int]] = {}
        tag_texts = file.texts("tags", count) if "tags" in file else ()
        for row, tag_text in enumerate(tag_texts):
            for tag in filter(None, tag_text.split(b",")):
                self.rows_of_tag.setdefault(tag, []).append(row)

    def title(self, row: int) -> str:
        return _decoded(self.titles[row])

    def search(
        self,
        texts: Sequence[bytes],
        queries: np.ndarray | None,  # unit vectors; None without an encoder
        k: int,
        tags: bytes,  # joined with commas; b"" admits all documents
    ) -> Iterator[list[tuple[int, float]]]:
        """Yields the indices and scores of each text's k best documents."""
        tagged = self._tagged(tags) if tags else None
        for scores in self._scores(texts, queries):
            rows = tagged
            if queries is None:  # leaves out documents without a query term
                if tagged is None:
                    rows = np.flatnonzero(scores > 0)
                else:
                    rows = tagged[scores[tagged] > 0]
            if rows is None:
                best = _largest(scores, k)
            else:
                best = rows[_largest(scores[rows], k)]
            best_scores = scores[best]
            if self.hybrid is not None:
                best_scores = probability(best_scores + self.hybrid.base)
            yield [*zip(best.tolist(), best_scores.tolist(), strict=True)]

    def _tagged(self, tags: bytes) -> np.ndarray:
        """Returns documents with one tag or more of each name in `tags`."""
        if not self.rows_of_tag.keys() >= {*tags.split(b",")}:
            return np.empty(0, np.int64)
        rows = [
            set().union(*map(self.rows_of_tag.__getitem__, group))
            for group in by_name(tags)
        ]
        return np.array(sorted(set.intersection(*rows)), np.int64)

    def _scores(
        self, texts: Sequence[bytes], queries: np.ndarray | None
    ) -> Iterator[np.ndarray]:
        if queries is None or self._vectors is None:
            assert self.hybrid
            yield from (self.hybrid.scores(text, None) for text in texts)
            return
        block_size = max(1, _SCORES // len(self.ids))
        for start in range(0, len(queries), block_size):
            rows = slice(start, start + block_size)
            block = (self._vectors @ queries[rows].T).T
            for text, cosines in zip(texts[rows], block, strict=True):
                if len(cosines) < len(self.ids):
                    cosines = cosines[self._vector_of]
                yield (
                    self.hybrid.scores(text, cosines)
                    if self.hybrid
                    else cosines
                )

    def explained(
        self,
        text: bytes,
        best: list[tuple[int, float]],
        query: np.ndarray | None,
    ) -> list[ExplainedHit]:
        """Explains the best documents of a hybrid retriever for a query."""
        assert self.hybrid
        rows = np.array([row for row, _ in best], np.int64)
        vectors = None
        if self._vectors is not None:
            vectors = self._vectors[self._vector_of[rows]]
        reasons = self.hybrid.reasons(text, rows, query, vectors)
        return [
            ExplainedHit(
                self.ids[row],
                score,
                *reason,
                self.title(row),
                score < self.hybrid.weak,
            )
            for (row, score), reason in zip(best, reasons, strict=True)
        ]


def _largest(scores: np.ndarray, k: int) -> np.ndarray:
    """Returns the indices of the k largest scores, by score and then index."""
    if k < len(scores):
        smallest = np.partition(scores, -k)[-k]
        indices = np.flatnonzero(scores >= smallest)
    else:
        indices = np.arange(len(scores))
    return indices[np.argsort(-scores[indices], kind="stable")[:k]]


def _decoded(text: bytes) -> str:
    return text.decode(errors="replace")


def _encoder_names(file: PortableFile) -> list[str]:
    return [QUERY, DOCUMENT][: 1 + (DOCUMENT in file.header["encoders"])]


def _hybrid_encoders(file: PortableFile) -> dict[str, WeightedParts]:
    """Makes a hybrid retriever's encoders; none if only terms have a weight."""
    weights = read_weights(file.header["hybrid"])
    used = [part for part in (TOWERS, WORDS) if weights[part]]
    encoders = {}
    for name in _encoder_names(file) if used else ():
        parts = []
        for part in used:
            encoder = _encoder(file, name, part)
            width = encoder.dimension
            parts.append(
                Part(part, weights[part], encoder.encode, width, encoder)
            )
        encoders[name] = WeightedParts(parts)
    return encoders


def _encoder(file: PortableFile, name: str, part: str = "") -> LocalEncoder:
    """Makes an encoder, after checking the numbers of its configuration."""
    record = file.header["encoders"][name]
    if part:
        name, record = f"{name}/{part}", record[part]
    config = record["config"]
    for key, value in config.items():
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and not 0 <= number <= _MAX_SIZE:
                raise ValueError(f"{key} is {value!r:.40}")
    weights = Weights(file, name, config["oov_buckets"])
    return LocalEncoder(record["class"], config, weights)

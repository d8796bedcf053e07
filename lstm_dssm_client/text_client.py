"""The methods of all clients, independent of the protocol.

`AsyncTextClient` divides texts into requests and reads the replies.
`TextClient` has the same methods without coroutines.
"""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from lstm_dssm_client.errors import InputError, ServingError, code_name
from lstm_dssm_client.signatures import (
    DEFAULT,
    EMBEDDING,
    EXPLAINED,
    EXPLANATION,
    FILTERED,
    KEY_PARTS,
    KEYS,
    KNOWN_TAGS,
    OPTIONAL,
    RANKING,
    SCORE,
    TAG_LIST,
    ExplainedHit,
    Hit,
    KeyParts,
    Outputs,
    Prediction,
    Signature,
    Version,
    VersionStatus,
    as_bytes,
    check_known,
    checked_outputs,
    chunked,
    chunked_pairs,
    chunked_to_explain,
    chunked_with_count,
    describe_misfit,
    explained_from_outputs,
    hits_from_outputs,
    key_parts_from_outputs,
    no_explanations,
    pairs_as_bytes,
    query_as_bytes,
    tags_as_bytes,
    tags_from_outputs,
)

_ATTEMPTS = 3  # attempts to compute all texts of a call by one version


class Predict(NamedTuple):
    """Request to run a signature, answered by a `PredictReply`."""

    model: str
    version: Version
    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: Sequence[str]  # names; empty for all outputs


class GetMetadata(NamedTuple):
    """Request for a model's signatures, answered by `Metadata`."""

    model: str
    version: Version


class GetStatus(NamedTuple):
    """Request for versions' states, answered by a dict of `VersionStatus`."""

    model: str


Request = Predict | GetMetadata | GetStatus


class PredictReply(Protocol):
    """Reply to a `Predict`, with outputs that are not decoded yet."""

    version: int | None
    """Number of the version, or None if the reply has no version."""

    def outputs(
        self, signature: Signature | None
    ) -> dict[str, np.ndarray] | None:
        """Returns the decoded outputs, by name.

        Returns None if the reply and `signature` have different outputs. Only
        replies over HTTP need the signature.
        """


class Metadata(NamedTuple):
    """The signatures of a version of a model."""

    version: int
    signatures: dict[str, Signature]


class AsyncTextClient:
    """Sends texts to a server's models, with the coroutine function `send`."""

    def __init__(
        self, send: Callable[[Request], Coroutine[Any, Any, Any]]
    ) -> None:
        self._send = send
        self._cache: dict[tuple[str, Version], Metadata] = {}

    async def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = "query_encoder",
        version: Version = None,
    ) -> np.ndarray:
        """Encodes all texts with one version of the model.

        Args:
            texts: n texts.
            model: The encoder's name on the server.
            version: Number or label of the encoder's version, by default the
                newest version.

        Returns:
            float32 `[n, d]`, rows of unit length.

        Raises:
            InputError: The model is no encoder; or several versions answer in
                turn, for example behind a load balancer during a roll-out.
        """
        chunks = [{"text": rows} for rows in chunked(texts)]
        if not chunks:
            width = await self._width(model, version)
            return np.zeros([0, width], np.float32)
        return await self._same_version(model, chunks, EMBEDDING, version)

    async def search(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = "retriever",
        version: Version = None,
        tags: Iterable[str] = (),
    ) -> list[list[Hit]]:
        """Returns the k best documents of each query, best first.

        Args:
            texts: n queries.
            k: Number of documents for each query, by default 5. The server
                returns fewer if k exceeds the number of documents, or `max_k`
                of the export (by default 1,000).
            model: The retriever's name on the server.
            version: Number or label of the retriever's version, by default the
                newest version.
            tags: Searches only documents with these tags, by default all
                documents. A document must have every listed tag that has no
                colon. Of the listed tags `name:value` with the same name, a
                document must have at least one. The retriever must have been
                exported with tags.

        Returns:
            n lists of `Hit`.

        Raises:
            InputError: k is not a positive int32; a tag is blank or has a
                comma; no document is found, and a tag is unknown; or the model
                is no retriever.
            ServingError: `tags` are given, and the retriever has no tags.
        """
        hits: list[list[Hit]] = []
        tag_text = tags_as_bytes(tags)
        signature = FILTERED if tag_text else ""
        for inputs in chunked_with_count(texts, k, tags=tag_text):
            outputs = await self._outputs(
                model, inputs, RANKING, version, signature
            )
            hits += hits_from_outputs(**outputs, k=k)
        await self._check_tags(model, version, tag_text, hits)
        return hits

    async def tags(
        self, model: str = "retriever", version: Version = None
    ) -> dict[str, int]:
        """Returns the tags of a retriever: tag -> number of documents.

        Args:
            model: The name of a retriever that was exported with tags.
            version: See `search`.

        Raises:
            ServingError: The retriever has no tags (FAILED_PRECONDITION).

        Example:
            >>> client.tags()
            {'category:Action': 310, 'category:Racing': 112}
        """
        one_row = {"text": np.array([b""], object)}
        outputs = await self._outputs(
            model, one_row, TAG_LIST, version, KNOWN_TAGS
        )
        return tags_from_outputs(**outputs)

    async def explain(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = "retriever",
        version: Version = None,
        tags: Iterable[str] = (),
    ) -> list[list[ExplainedHit]]:
        """Returns the k best documents of each query, with explanations.

        See `search` for the arguments. `model` is the name of a retriever that
        `lstm-dssm-export --hybrid` wrote. A k above 100 counts as 100.

        Returns:
            n lists of `ExplainedHit`, with the same documents as `search`.

        Raises:
            InputError: See `search`; or the model is no hybrid retriever.

        Example:
            >>> ((hit,),) = client.explain(["angle bracket"], k=1)
            >>> hit.parts, hit.words["bm25"]
            ({'towers': 0.41, 'words': 0.22, 'bm25': 0.2}, {'angle': 0.2})
        """
        hits: list[list[ExplainedHit]] = []
        tag_text = tags_as_bytes(tags)
        for inputs in chunked_to_explain(texts, k, tag_text):
            cached = self._cache.get((model, version))
            if cached is None or EXPLAINED not in cached.signatures:
                # A new version of the model may have the signature.
                if EXPLAINED not in await self.signatures(model, version):
                    raise no_explanations(model)
            outputs = await self._outputs(
                model, inputs, EXPLANATION, version, EXPLAINED
            )
            hits += explained_from_outputs(**outputs, k=k)
        await self._check_tags(model, version, tag_text, hits)
        return hits

    async def _check_tags(
        self,
        model: str,
        version: Version,
        tags: bytes,
        hits: Sequence[Sequence[Any]],
    ) -> None:
        """Raises `InputError` if there are no hits because a tag is unknown."""
        if tags and hits and not any(hits):
            known = await self.tags(model, version)
            check_known(f"model {model}", tags, known)

    async def score(
        self,
        query: str | bytes,
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """Returns the scores of documents for one query.

        Args:
            query: The query's text.
            documents: n texts, such as the titles that `search` returns.
            model: The scorer's name on the server.
            version: Number or label of the scorer's version, by default the
                newest version.

        Returns:
            float32 `[n]`, in the order of the documents. One version of the
            scorer computes all scores. Only the order of scores has a meaning.

        Raises:
            InputError: `query` is not one text, `documents` is no list of
                texts, the model is no scorer, or several versions answer in
                turn.

        Example:
            >>> client.score("angle bracket", ["steel angle", "wood glue"])
            array([ 1.3, -0.2], dtype=float32)
        """
        text, texts = query_as_bytes(query), as_bytes(documents)
        return await self.score_pairs(
            [text] * len(texts), texts, model, version
        )

    async def score_pairs(
        self,
        queries: Iterable[str | bytes],
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """Returns the scores of n pairs of a query and a document.

        See `score` for `model`, `version` and the scores, float32 `[n]`.

        Raises:
            InputError: The numbers of queries and documents differ. See `score`
                for other reasons.
        """
        chunks = list(chunked_pairs(*pairs_as_bytes(queries, documents)))
        if not chunks:
            return np.zeros(0, np.float32)
        return await self._same_version(model, chunks, SCORE, version)

    async def keys(
        self,
        texts: Iterable[str | bytes],
        n: int = 5,
        model: str = "keyvec",
        version: Version = None,
    ) -> list[KeyParts]:
        """Returns the key sentences and the key words of documents.

        Args:
            texts: Documents, each as one string.
            n: Number of key sentences, and number of key words, to return for
                each document. Default 5; the server returns at most 250. A
                short document has fewer sentences.
            model: The name of the KeyVec on the server.
            version: Number or label of the KeyVec's version, by default the
                newest version.

        Returns:
            A `KeyParts` for each document.

        Raises:
            InputError: n is not a positive int32, or the model is no KeyVec.

        Example:
            >>> (parts,) = client.keys(["A list is sorted. See below."], n=1)
            >>> parts.sentences, parts.words
            ([('A list is sorted.', 0.7)], ['sorting'])
        """
        parts: list[KeyParts] = []
        for inputs in chunked_with_count(texts, n, "n"):
            outputs = await self._outputs(
                model, inputs, KEY_PARTS, version, KEYS
            )
            parts += key_parts_from_outputs(**outputs, n=n)
        return parts

    async def predict(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Prediction:
        """Runs any signature of any model, in one request.

        Args:
            model: The model's name on the server.
            inputs: Name of an input -> array with the signature's dtype and
                rank, and at least one row. An array of strings has the dtype
                object and contains bytes.
            outputs: Names of the outputs to return, by default all.
            version: Number or label of the version, by default the newest
                version.
            signature: The signature's name, by default `serving_default`.

        Returns:
            The outputs, and the version that computed them.

        Raises:
            InputError: An input has no rows, or the wrong dtype or rank.
        """
        name = signature or DEFAULT
        arrays = {key: np.asarray(values) for key, values in inputs.items()}
        for key, values in arrays.items():
            if values.ndim and not len(values):  # a scalar has no length
                raise InputError(
                    f"input {key!r} has no rows; expected one or more"
                )
        # The inputs are checked here. If the server batches requests, a wrong
        # request makes the other requests of the batch fail, too.
        cached = self._cache.get((model, version))
        if not cached or describe_misfit(arrays, cached.signatures.get(name)):
            # A new version may have other inputs.
            cached = await self._metadata(model, version)
            misfit = describe_misfit(arrays, cached.signatures.get(name))
            if misfit:
                raise InputError(f"model {model}: {misfit}")
        reply: PredictReply = await self._send(
            Predict(model, version, name, arrays, list(outputs))
        )
        by_name = reply.outputs(cached.signatures.get(name))
        if by_name is None:  # a version with another signature has answered
            cached = await self._metadata(model, version)
            by_name = reply.outputs(cached.signatures.get(name))
        elif reply.version not in (None, cached.version):
            self._cache.pop((model, version), None)
        if by_name is None:
            raise InputError(
                f"model {model}: its reply has other outputs than its signature"
                f" {name}; try again"
            )
        return Prediction(model, reply.version, name, by_name)

    async def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """Returns the inputs and outputs of a model, by signature name."""
        return (await self._metadata(model, version)).signatures

    async def status(self, model: str) -> dict[int, VersionStatus]:
        """Returns the states of a model's versions, the newest first."""
        return await self._send(GetStatus(model))

    async def _metadata(self, model: str, version: Version) -> Metadata:
        """Requests a model's signatures and updates the cache."""
        if isinstance(version, int) and not 0 <= version < 2**63:
            raise InputError(
                f"version is {version}; expected a number from 0, below 2**63,"
                " or a label"
            )
        metadata: Metadata = await self._send(GetMetadata(model, version))
        self._cache[model, version] = metadata
        self._cache[model, metadata.version] = metadata
        return metadata

    async def _width(self, model: str, version: Version) -> int:
        signatures = await self.signatures(model, version)
        outputs = signatures[DEFAULT].outputs if DEFAULT in signatures else {}
        shape = outputs["embedding"].shape if "embedding" in outputs else None
        if shape is None or len(shape) != 2 or shape[1] is None:
            raise InputError(
                f"model {model}: its signature {DEFAULT} has no output "
                "embedding [batch, width]; give an encoder that "
                "lstm-dssm-export wrote"
            )
        return shape[1]

    async def _same_version(
        self,
        model: str,
        chunks: Sequence[dict[str, np.ndarray]],
        outputs: Outputs,
        version: Version,
    ) -> np.ndarray:
        """Computes one output for all chunks with one version of the model."""
        if len(chunks) == 1 or isinstance(version, int):
            return await self._joined(model, chunks, outputs, version)
        # Vectors or scores of two versions cannot be compared.
        numbers: set[int] = set()
        for _ in range(_ATTEMPTS):
            number = (await self._metadata(model, version)).version
            numbers.add(number)
            try:
                return await self._joined(model, chunks, outputs, number)
            except ServingError as error:  # the server may unload a version
                if code_name(error.code) != "NOT_FOUND":
                    raise
                not_found = error
        raise InputError(
            f"model {model}: versions {', '.join(map(str, sorted(numbers)))}"
            f" answered in turn, in each of {_ATTEMPTS} attempts; choose one"
            " with version=NUMBER"
        ) from not_found

    async def _joined(
        self,
        model: str,
        chunks: Sequence[dict[str, np.ndarray]],
        outputs: Outputs,
        version: Version,
    ) -> np.ndarray:
        parts: list[np.ndarray] = []
        for inputs in chunks:
            arrays = await self._outputs(model, inputs, outputs, version)
            parts += arrays.values()
        return np.concatenate(parts)

    async def _outputs(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Outputs,
        version: Version,
        signature: str = "",
    ) -> dict[str, np.ndarray]:
        """Runs a signature, and checks and returns its outputs."""
        # A server rejects a request for an output that the model lacks. If one
        # of the outputs is optional, all outputs of the model are requested.
        names = () if OPTIONAL & outputs.keys() else outputs
        prediction = await self.predict(
            model, inputs, names, version, signature
        )
        rows = len(next(iter(inputs.values())))
        return checked_outputs(prediction, outputs, rows)


class Transport(Protocol):
    """Sends requests to one server; threads may share a transport."""

    target: str
    timeout: float

    def send(self, request: Request) -> Any:
        """Returns a `PredictReply`, a `Metadata` or the states of versions."""

    def close(self) -> None:
        """Closes the connections."""


Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


def run_at_once(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """Returns the result of a coroutine that never waits for an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the coroutine waits for an event loop")


def _blocking(
    method: Callable[
        Concatenate[AsyncTextClient, Arguments], Coroutine[Any, Any, Answer]
    ],
) -> Callable[Concatenate["TextClient", Arguments], Answer]:
    """Converts a coroutine method to a method of `TextClient`, which blocks."""

    @functools.wraps(method)
    def call(
        client: "TextClient", *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        return run_at_once(method(client._texts, *args, **kwargs))

    return call


Self = TypeVar("Self", bound="TextClient")


class TextClient:
    """Sends texts to a server's models; threads may share a client."""

    def __init__(self, transport: Transport) -> None:
        async def send(request: Request) -> Any:
            return transport.send(request)

        self._transport = transport
        self._texts = AsyncTextClient(send)
        self.target = transport.target
        self.timeout = transport.timeout

    def close(self) -> None:
        """Closes the connections; `with` closes them at the block's end."""
        self._transport.close()

    encode = _blocking(AsyncTextClient.encode)
    search = _blocking(AsyncTextClient.search)
    tags = _blocking(AsyncTextClient.tags)
    explain = _blocking(AsyncTextClient.explain)
    score = _blocking(AsyncTextClient.score)
    score_pairs = _blocking(AsyncTextClient.score_pairs)
    keys = _blocking(AsyncTextClient.keys)
    predict = _blocking(AsyncTextClient.predict)
    signatures = _blocking(AsyncTextClient.signatures)
    status = _blocking(AsyncTextClient.status)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

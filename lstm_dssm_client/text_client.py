"""TextClient: the methods of all clients that wait for their replies.

Makes the requests of a client and reads the replies, without transport.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.signatures import (
    DEFAULT,
    EMBEDDING,
    FILTERED,
    IDS,
    KEY_PARTS,
    KEYS,
    SCORE,
    SCORES,
    Hit,
    KeyParts,
    Output,
    Prediction,
    Signature,
    Version,
    VersionStatus,
    checked_output,
    describe_misfit,
    hits_from_outputs,
    key_parts_from_outputs,
)
from lstm_dssm_client.texts import (
    as_bytes,
    chunked,
    chunked_pairs,
    pairs_as_bytes,
    query_as_bytes,
    rows_for,
    tags_as_bytes,
)

ATTEMPTS = 3
"""Number of times that all texts are sent if the version changes."""

Answer = TypeVar("Answer")

Calls = Generator[Any, Any, Answer]


class Known(NamedTuple):
    """The signatures of a model, and the version that has them."""

    version: int
    signatures: dict[str, Signature]


def checked_version(version: int) -> int:
    """Checks that a version number fits into a request, and returns it.

    Raises:
        InputError: It is out of range.
    """
    if not 0 <= version < 2**63:
        raise InputError(
            f"version is {version}; expected a number of 63 bits, or a label"
        )
    return version


class TextCalls:
    """Makes the calls of one client, and caches the signatures of models.

    A server that batches computes the requests of several clients together.
    A request without rows, or with a wrong dtype or rank, can then fail the
    others, or end the server. So inputs are compared with the model's
    signature before they are sent.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, Version], Known] = {}

    def predict(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Calls[Prediction]:
        """Runs one request; see `TextClient.predict`."""
        raise NotImplementedError

    def signatures(self, model: str, version: Version) -> Calls[Any]:
        """Reads a model's signatures and keeps them in `_known`."""
        raise NotImplementedError

    def status(self, model: str) -> Calls[dict[int, VersionStatus]]:
        """Reads the states of a model's versions."""
        raise NotImplementedError

    def current(
        self, model: str, version: Version
    ) -> Calls[dict[str, Signature]]:
        """Reads a model's signatures, whether they are known or not."""
        yield from self.signatures(model, version)
        return self._known[model, version].signatures

    def check_fit(
        self,
        model: str,
        arrays: Mapping[str, np.ndarray],
        version: Version,
        signature: str,
    ) -> Calls[None]:
        """Checks inputs against the model's signature.

        A new version may have other inputs: inputs that do not fit the cached
        signature are compared with the current one.

        Raises:
            InputError: They do not fit.
        """
        key = signature or DEFAULT
        known = self._known.get((model, version))
        if known and not describe_misfit(arrays, known.signatures.get(key)):
            return
        current = yield from self.current(model, version)
        misfit = describe_misfit(arrays, current.get(key))
        if misfit:
            raise InputError(f"model {model}: {misfit}")

    def encode(
        self, texts: Iterable[str | bytes], model: str, version: Version
    ) -> Calls[np.ndarray]:
        """Encodes texts, chunk by chunk; see `TextClient.encode`."""
        chunks = list(chunked(texts))
        if not chunks:
            width = yield from self._width(model, version)
            return np.zeros([0, width], np.float32)
        return (
            yield from self._of_one_version(
                model, [{"text": rows} for rows in chunks], EMBEDDING, version
            )
        )

    def score(
        self, query: str | bytes, documents: Any, model: str, version: Version
    ) -> Calls[np.ndarray]:
        """Scores the documents of one query; see `TextClient.score`."""
        text, texts = query_as_bytes(query), as_bytes(documents)
        return (
            yield from self.score_pairs(
                [text] * len(texts), texts, model, version
            )
        )

    def score_pairs(
        self, queries: Any, documents: Any, model: str, version: Version
    ) -> Calls[np.ndarray]:
        """Scores pairs, chunk by chunk; see `TextClient.score_pairs`."""
        chunks = list(chunked_pairs(*pairs_as_bytes(queries, documents)))
        if not chunks:
            return np.zeros(0, np.float32)
        return (yield from self._of_one_version(model, chunks, SCORE, version))

    def _of_one_version(
        self,
        model: str,
        chunks: Sequence[dict[str, np.ndarray]],
        output: Output,
        version: Version,
    ) -> Calls[np.ndarray]:
        """Returns an output for all chunks, one or more, of one version.

        Vectors or scores of two versions cannot be compared: if another
        version begins to answer, all chunks are sent again.
        """
        for _ in range(ATTEMPTS):
            parts: dict[int | None, list[np.ndarray]] = {}
            for inputs in chunks:
                prediction = yield from self.predict(
                    model, inputs, [output.name], version
                )
                rows = len(next(iter(inputs.values())))
                parts.setdefault(prediction.version, []).append(
                    checked_output(prediction, output, rows)
                )
                if len(parts) > 1:
                    break
            else:
                (parts_of_version,) = parts.values()
                return np.concatenate(parts_of_version)
        raise InputError(
            f"model {model}: versions {', '.join(sorted(map(str, parts)))} "
            f"answered in turn, in each of {ATTEMPTS} attempts; choose one "
            "with version=NUMBER"
        )

    def search(
        self,
        texts: Iterable[str | bytes],
        k: int,
        model: str,
        version: Version,
        tags: Iterable[str] = (),
    ) -> Calls[list[list[Hit]]]:
        """Retrieves documents, chunk by chunk; see `TextClient.search`."""
        hits: list[list[Hit]] = []
        wanted = tags_as_bytes(tags)
        for rows in chunked(texts, rows_for(k)):
            inputs = {"text": rows, "k": np.full(len(rows), k, np.int32)}
            if wanted:
                inputs["tags"] = np.array([wanted] * len(rows), object)
            prediction = yield from self.predict(
                model,
                inputs,
                ["ids", "scores"],
                version,
                FILTERED if wanted else "",
            )
            ids = checked_output(prediction, IDS, len(rows))
            scores = checked_output(prediction, SCORES, len(rows))
            hits += hits_from_outputs(ids, scores, k)
        return hits

    def keys(
        self, texts: Iterable[str | bytes], n: int, model: str, version: Version
    ) -> Calls[list[KeyParts]]:
        """Finds key sentences and words by chunks; see `TextClient.keys`."""
        found: list[KeyParts] = []
        for rows in chunked(texts, rows_for(n, "n")):
            inputs = {"text": rows, "n": np.full(len(rows), n, np.int32)}
            prediction = yield from self.predict(
                model, inputs, [out.name for out in KEY_PARTS], version, KEYS
            )
            outputs = {
                output.name: checked_output(prediction, output, len(rows))
                for output in KEY_PARTS
            }
            found += key_parts_from_outputs(**outputs, n=n)
        return found

    def _width(self, model: str, version: Version) -> Calls[int]:
        """Returns the width of an encoder's vectors, from its signature."""
        by_name = yield from self.current(model, version)
        outputs = by_name[DEFAULT].outputs if DEFAULT in by_name else {}
        shape = outputs["embedding"].shape if "embedding" in outputs else None
        if shape is None or len(shape) != 2 or shape[1] is None:
            raise InputError(
                f"model {model}: its signature {DEFAULT} has no output "
                "embedding [batch, width]; name an encoder that "
                "lstm-dssm-export wrote"
            )
        return shape[1]


Self = TypeVar("Self", bound="TextClient")


class TextClient:
    """Sends texts to a server's models; threads may share a client.

    Inputs are checked against the model's signature before they are sent: on
    a server that batches, one request without rows, or of a wrong dtype or
    rank, would fail the requests of others.
    """

    _calls: TextCalls

    def _run(self, calls: Calls[Answer]) -> Answer:
        """Sends the requests of a generator, one after another."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the connection; leaving the `with` block closes it, too."""
        raise NotImplementedError

    def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = "query_encoder",
        version: Version = None,
    ) -> np.ndarray:
        """Returns the vectors of texts, all of one version.

        If another version begins to answer between two requests, all texts
        are sent again. For no texts, d comes from the model's signature.

        Args:
            texts: n texts.
            model: The encoder's name on the server.
            version: The encoder's version or its label, by default the
                newest.

        Returns:
            float32 `[n, d]`, rows of unit length.

        Raises:
            InputError: The model is no encoder, or several versions answer in
                turn, as behind a load balancer during a roll-out.
        """
        return self._run(self._calls.encode(texts, model, version))

    def search(
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
                returns fewer if k exceeds the number of documents, or the
                `max_k` with which the retriever was exported, by default
                1,000.
            model: The retriever's name on the server.
            version: The retriever's version or its label, by default the
                newest.
            tags: Only documents that have any of these tags, as in a plain
                search over these documents alone; by default all documents.
                The retriever must have been exported with tags.

        Returns:
            n lists of `Hit`.

        Raises:
            InputError: k is below 1 or too large for int32, a tag is blank
                or has a comma, or the model is no retriever.
        """
        return self._run(self._calls.search(texts, k, model, version, tags))

    def score(
        self,
        query: str | bytes,
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """Returns the scores of documents for one query.

        Args:
            query: The query's text.
            documents: n texts, such as the documents that `search` has found.
            model: The scorer's name on the server.
            version: The scorer's version or its label, by default the newest.

        Returns:
            float32 `[n]`, in the order of the documents, all of one version;
            see `encode`. Only the order of the scores has a meaning.

        Raises:
            InputError: `query` is not one text, `documents` are no texts, the
                model is no scorer, or several versions answer in turn.

        Example:
            >>> client.score("angle bracket", ["steel angle", "wood glue"])
            array([ 1.3, -0.2], dtype=float32)
        """
        return self._run(self._calls.score(query, documents, model, version))

    def score_pairs(
        self,
        queries: Iterable[str | bytes],
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """Returns the scores of pairs of a query and a document.

        Args:
            queries: n queries.
            documents: n documents.
            model: See `score`.
            version: See `score`.

        Returns:
            float32 `[n]`; see `score`.

        Raises:
            InputError: There are not as many documents as queries; or see
                `score`.
        """
        return self._run(
            self._calls.score_pairs(queries, documents, model, version)
        )

    def keys(
        self,
        texts: Iterable[str | bytes],
        n: int = 5,
        model: str = "keyvec",
        version: Version = None,
    ) -> list[KeyParts]:
        """Returns the key sentences and the key words of documents.

        Args:
            texts: Any number of documents, each one string.
            n: Number of sentences, and of words, of each document, by default
                5. A short document has fewer sentences, and the server
                returns at most 250.
            model: The name of the KeyVec on the server.
            version: Its version or its label, by default the newest.

        Returns:
            A `KeyParts` for each document, most probable sentences and words
            first.

        Raises:
            InputError: n is below 1 or too large for int32, or the model is
                no KeyVec.

        Example:
            >>> (parts,) = client.keys(["A list is sorted. See below."], n=1)
            >>> parts.sentences, parts.words
            ([('A list is sorted.', 0.7)], ['sorting'])
        """
        return self._run(self._calls.keys(texts, n, model, version))

    def predict(
        self,
        model: str,
        inputs: dict[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Prediction:
        """Runs any signature of any model, in one request.

        Args:
            model: The model's name on the server.
            inputs: Arrays by the inputs' names, of the signature's dtypes and
                ranks and with at least one row; strings as an object array of
                bytes.
            outputs: Names of the outputs to return, by default all.
            version: The version or its label, by default the newest.
            signature: The signature's name, by default `serving_default`.

        Returns:
            The outputs, and the version that computed them.

        Raises:
            InputError: An input has no rows, or another dtype or rank than
                the model's.
        """
        return self._run(
            self._calls.predict(model, inputs, outputs, version, signature)
        )

    def status(self, model: str) -> dict[int, VersionStatus]:
        """Returns the state of each version of a model, newest first."""
        return self._run(self._calls.status(model))

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""TextClient: the methods of all clients that wait for their replies."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from lstm_dssm_client.calls import Answer, Calls, TextCalls
from lstm_dssm_client.results import (
    Hit,
    KeyParts,
    Prediction,
    Version,
    VersionStatus,
)

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

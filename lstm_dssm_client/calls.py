"""Makes the requests of a client and reads the replies, without transport.

Each method of `TextCalls` is a generator: it yields a request, is sent the
reply, and returns the result after its last reply. Clients over gRPC and HTTP
differ in what `predict` and `signatures` yield, and in how they send it.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lstm_dssm_client.chunks import chunked, chunked_pairs, rows_for
from lstm_dssm_client.errors import InputError
from lstm_dssm_client.results import (
    Hit,
    KeyParts,
    Prediction,
    Version,
    VersionStatus,
    hits_from_outputs,
    key_parts_from_outputs,
)
from lstm_dssm_client.signatures import (
    DEFAULT,
    EMBEDDING,
    FILTERED,
    IDS,
    KEY_PARTS,
    KEYS,
    SCORE,
    SCORES,
    Output,
    Signature,
    checked_output,
    describe_misfit,
)
from lstm_dssm_client.texts import (
    as_bytes,
    pairs_as_bytes,
    query_as_bytes,
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

"""What the page at `/` asks of the server: models, results, clicks."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.serving.http.click_tokens import ClickTokens
from keras_lstm_dssm.serving.http.click_writer import ClickWriter
from keras_lstm_dssm.serving.http.json_request import JsonError
from keras_lstm_dssm.serving.http.word_matches import (
    LEAST_COSINE,
    LEAST_SHARED,
    letter_similarity,
    marked_parts,
    nearest_words,
    query_words_of,
    strengths,
    words_of,
)
from keras_lstm_dssm.serving.server.bounds import Bounds
from keras_lstm_dssm.serving.server.model_registry import ModelRegistry
from keras_lstm_dssm.serving.server.signature_call import (
    SignatureCall,
    StatusError,
    invalid_argument,
)

MAX_RESULTS = 50
"""Maximum number of results that the page shows."""

MAX_LETTERS = 1000
"""Maximum length of a query on the page; its words are compared in Python."""

_OF_WORD = 5
"""Number of titles that are found for each word of a query alone."""

_INPUTS = {"text": "string", "k": "int32"}
_QUERY_ENCODERS = ("query_encoder", "keyvec")
_DOCUMENT_ENCODERS = ("document_encoder", "keyvec")


class SearchPage:
    """Searches retrievers for the page; threads may share it.

    Args:
        models: The registry of the models that are served.
        bounds: The largest request that is computed.
        titles: Titles by the ids that retrievers return; an id without one
            is a title itself.
        clicks: The click log to which followed results are written, if any.

    Example:
        >>> page = SearchPage(ModelRegistry("MODELS"))
        >>> page.search({"model": "retriever", "text": "bolt", "k": 1})
        {'model': 'retriever', 'version': 1, 'hits': [...], 'words': [...]}
    """

    def __init__(
        self,
        models: ModelRegistry,
        bounds: Bounds | None = None,
        titles: Mapping[str, str] | None = None,
        clicks: ClickWriter | None = None,
    ) -> None:
        self._models = models
        self._bounds = Bounds() if bounds is None else bounds
        self._titles = titles or {}
        self._clicks = clicks
        self._tokens = ClickTokens()

    def models(self) -> dict[str, Any]:
        """Returns the models that can be searched, with their versions.

        Returns:
            `models`, a list of `name` and `versions` (newest first), and
            `clicks`, whether followed results are written.
        """
        found = []
        for name in self._models.names():
            versions = [
                version
                for version in reversed(self._models.versions(name))
                if self._is_searchable(name, version)
            ]
            if versions:
                found.append({"name": name, "versions": versions})
        return {"models": found, "clicks": self._clicks is not None}

    def _is_searchable(self, name: str, version: int) -> bool:
        call = self._call(name, version)
        return call is not None and call.input_dtypes == _INPUTS

    def search(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Searches one model.

        Args:
            request: `text`, the query; `model`; `k`, the number of results;
                and `version`, by default the newest.

        Returns:
            `model`, `version`, `similarity` (`encoder` or `letters`: how
            words were compared), `words` (see `nearest_words`), and `hits`: a
            list of `id`, `title` (see `marked_parts`), `score`, and `click`,
            a token, if clicks are written.

        Raises:
            JsonError: The request has wrong values.
            StatusError: There is no such model.
        """
        text, model = _string(request, "text"), _string(request, "model")
        if len(text) > MAX_LETTERS:
            raise JsonError(f"'text' has more than {MAX_LETTERS:,} letters")
        k = _whole_number(request, "k", 1, MAX_RESULTS)
        spec = ModelSpec(name=model)
        if request.get("version") is not None:
            spec.version.value = _whole_number(request, "version", 0, 2**63 - 1)
        servable = self._models.find(spec)
        call = servable.signature("")
        if call is None or call.input_dtypes != _INPUTS:
            raise invalid_argument(f"{model} is no retriever")
        asked = query_words_of(text)
        # A second stage compares the letters of words itself.
        two_stages = "titles" in call.output_names
        # Titles near each word alone have words that the results lack.
        more = [] if two_stages else asked
        outputs = self._run(call, [text, *more], [k] + [_OF_WORD] * len(more))
        rows = [self._hits(outputs, row) for row in range(1 + len(more))]
        ids, scores, titles = rows[0]
        words = words_of(title for row in rows for title in row.titles)
        vectors = None
        if not two_stages:
            vectors = self._vectors(servable.version, asked, words)
        if vectors is None:
            least, similarity = LEAST_SHARED, letter_similarity(asked, words)
        else:
            least, similarity = LEAST_COSINE, vectors[0] @ vectors[1].T
        strength = strengths(words, similarity, least)
        hits: list[dict[str, Any]] = [
            {"id": id_, "title": marked_parts(title, strength), "score": score}
            for id_, title, score in zip(ids, titles, scores, strict=True)
        ]
        if self._clicks is not None:
            search = self._tokens.new_search()
            for hit, title in zip(hits, titles, strict=True):
                hit["click"] = self._tokens.issue(search, text, title)
        return {
            "model": servable.name,
            "version": servable.version,
            "similarity": "letters" if vectors is None else "encoder",
            "words": nearest_words(asked, words, similarity, least),
            "hits": hits,
        }

    def _run(
        self, call: SignatureCall, texts: Sequence[str], k: Sequence[int]
    ) -> dict[str, np.ndarray]:
        inputs = {"text": _array(texts), "k": np.array(k, np.int32)}
        self._bounds.check_arrays(inputs)
        return call.run_arrays(inputs)

    def _hits(self, outputs: Mapping[str, np.ndarray], row: int) -> "_Hits":
        """Returns the results of one query from a retriever's outputs."""
        ids = [id_ for id_ in _texts(outputs["ids"][row]) if id_]
        # JSON of browsers has no NaN, which a broken model may return.
        scores = np.nan_to_num(outputs["scores"][row][: len(ids)]).tolist()
        if "titles" in outputs:
            titles = _texts(outputs["titles"][row][: len(ids)])
        else:
            titles = [self._titles.get(id_, id_) for id_ in ids]
        return _Hits(ids, scores, titles)

    def _vectors(
        self, version: int, asked: Sequence[str], words: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Encodes words by the encoders of the same training as a retriever.

        Returns:
            The vectors of the query's and of the titles' words; None if the
            encoders are not served.
        """
        query_vectors = self._encode(_QUERY_ENCODERS, version, asked)
        vectors = self._encode(_DOCUMENT_ENCODERS, version, words)
        if query_vectors is None or vectors is None:
            return None
        same = query_vectors.shape[1:] == vectors.shape[1:]
        return (query_vectors, vectors) if same else None

    def _encode(
        self, names: Sequence[str], version: int, texts: Sequence[str]
    ) -> np.ndarray | None:
        for name in names:
            call = self._call(name, version)
            if texts and call and call.input_dtypes == {"text": "string"}:
                return call.run_arrays({"text": _array(texts)}).get("embedding")
        return None

    def _call(self, name: str, version: int) -> SignatureCall | None:
        """Returns the default signature of a version that is served."""
        spec = ModelSpec(name=name)
        spec.version.value = version
        try:
            return self._models.find(spec).signature("")
        except StatusError:
            return None

    def click(self, request: Mapping[str, Any]) -> bool:
        """Writes a followed result to the click log.

        Args:
            request: `click`, the token of the result.

        Returns:
            Whether it was written: not if it was before.

        Raises:
            JsonError: There is no token in the request.
            TokenError: The token is not one of this server, or is too old.
            StatusError: The server writes no clicks.
            OSError: The disk is full, for example.
        """
        token = _string(request, "click")
        if self._clicks is None:
            raise invalid_argument("this server writes no clicks")
        pair = self._tokens.redeem(token)
        return pair is not None and self._clicks.write(pair)


class _Hits(NamedTuple):
    """The documents that one query found, ordered from the highest score."""

    ids: list[str]
    scores: list[float]
    titles: list[str]


def _array(texts: Sequence[str]) -> np.ndarray:
    return np.array([text.encode(errors="replace") for text in texts], object)


def _texts(values: np.ndarray) -> list[str]:
    return [value.decode(errors="replace") for value in values]


def _string(request: Mapping[str, Any], key: str) -> str:
    value = request.get(key)
    if not isinstance(value, str):
        raise JsonError(f"{key!r} must be a string")
    return value


def _whole_number(
    request: Mapping[str, Any], key: str, least: int, most: int
) -> int:
    value = request.get(key)
    if type(value) is not int or not least <= value <= most:
        raise JsonError(f"{key!r} must be a whole number, {least} to {most}")
    return value

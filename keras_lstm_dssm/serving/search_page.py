"""What the page at `/` asks of the server: models, results, clicks.

Which words of the results are near to the words of a query.
The page's files and its requests, as routes of the HTTP server.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.serving.clicks import ClickWriter, TokenError
from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.rest_api import HTTP_CODES
from keras_lstm_dssm.serving.rest_json import JsonError, parse_object
from keras_lstm_dssm.serving.servable import (
    SignatureCall,
    StatusError,
    invalid_argument,
)

_WORDS = re.compile(r"\w{1,64}")
_MOST_QUERY_WORDS = 12
_MOST_TITLE_WORDS = 200
_NEAREST = 3
LEAST_COSINE = 0.3
LEAST_SHARED = 0.4
"""Words with lower cosines, or fewer trigrams in common, are not near."""


def words_of(texts: Iterable[str], most: int = _MOST_TITLE_WORDS) -> list[str]:
    """Returns the distinct words of texts in lower case, in order.

    Args:
        texts: The texts.
        most: Maximum number of words.

    Example:
    >>> words_of(["CSV writer", "csv file"])
    ['csv', 'writer', 'file']
    """
    words: dict[str, None] = {}
    for text in texts:
        words.update(dict.fromkeys(_WORDS.findall(text.lower())))
        if len(words) >= most:
            break
    return list(words)[:most]


def query_words_of(text: str) -> list[str]:
    """Returns the distinct words of a query, 12 at most."""
    return words_of([text], _MOST_QUERY_WORDS)


def trigrams(word: str) -> list[str]:
    """Returns the letter trigrams of a word.

    Example:
    >>> trigrams("aray")
    ['#ar', 'ara', 'ray', 'ay#']
    """
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]


def letter_similarity(
    query_words: Sequence[str], title_words: Sequence[str]
) -> np.ndarray:
    """Returns the Dice coefficients of the words' trigrams.

    Args:
        query_words: n words.
        title_words: m words.

    Returns:
        float64 `[n, m]`, from 0 to 1.
    """
    title_counts = [Counter(trigrams(word)) for word in title_words]
    result = np.zeros((len(query_words), len(title_words)))
    for row, word in enumerate(query_words):
        counts = Counter(trigrams(word))
        for column, other in enumerate(title_counts):
            shared = (counts & other).total()
            result[row, column] = 2 * shared / (counts.total() + other.total())
    return result


def nearest_words(
    query_words: Sequence[str],
    title_words: Sequence[str],
    similarity: np.ndarray,
    least: float,
) -> list[dict[str, Any]]:
    """Returns the words of titles that are nearest to each word of a query.

    Args:
        query_words: n words.
        title_words: m words.
        similarity: `[n, m]`.
        least: The similarity from which on words are near.

    Returns:
        For each word of the query that is near to one `word`, `exact`
        (whether a title has it), and `nearest`, a list of `word`,
        `similarity` and `shared`, the trigrams that both have.
    """
    lines = [
        {
            "word": word,
            "exact": word in title_words,
            "nearest": [
                {
                    "word": title_words[column],
                    "similarity": round(float(row[column]), 3),
                    "shared": [
                        trigram
                        for trigram in trigrams(word)
                        if trigram in trigrams(title_words[column])
                    ],
                }
                for column in np.argsort(-row, kind="stable")[:_NEAREST]
                if row[column] >= least
            ],
        }
        for word, row in zip(query_words, similarity, strict=True)
    ]
    return [line for line in lines if line["nearest"]]


def strengths(
    title_words: Sequence[str], similarity: np.ndarray, least: float
) -> dict[str, float]:
    """Returns how near each word of the titles is to its nearest query word.

    Args:
        title_words: m words.
        similarity: `[n, m]`.
        least: The similarity from which on words are near.

    Returns:
        Word to similarity, of words that are near.
    """
    if not similarity.size:
        return {}
    best = similarity.max(axis=0)
    return {
        word: float(value)
        for word, value in zip(title_words, best, strict=True)
        if value >= least
    }


def marked_parts(
    title: str, strength: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Divides a title into words that match the query, and the text between.

    Args:
        title: The title.
        strength: Word in lower case -> similarity, from `strengths`.

    Returns:
        `text` and `strength` (0 for none) of parts that give the title when
        joined.

    Example:
    >>> marked_parts("CSV writer", {"csv": 0.9})
    [{'text': 'CSV', 'strength': 0.9}, {'text': ' writer', 'strength': 0}]
    """
    parts: list[dict[str, Any]] = []
    end = 0
    for match in _WORDS.finditer(title):
        value = strength.get(match[0].lower(), 0)
        if value:
            if match.start() > end:
                parts.append(
                    {"text": title[end : match.start()], "strength": 0}
                )
            parts.append({"text": match[0], "strength": round(value, 3)})
            end = match.end()
    if end < len(title):
        parts.append({"text": title[end:], "strength": 0})
    return parts


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
            for hit, title in zip(hits, titles, strict=True):
                hit["click"] = self._clicks.issue(text, title)
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
        return self._clicks.write(token)


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


_LOG = logging.getLogger(__name__)

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Path -> name of the file in the folder `page`, and its type."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of all replies: nothing is loaded from, or sent to, other hosts."""


def page_routes(page: SearchPage, threads: Executor) -> list[BaseRoute]:
    """Returns the routes of the page.

    `GET /` and the files that it names; `GET /page/models`, `POST
    /page/search` and `POST /page/click`, which answer with JSON.

    Args:
        page: What answers the requests.
        threads: The threads in which models run.
    """

    async def run(call: Callable[[], Any]) -> Response:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, _reply, call)

    async def models(_: Request) -> Response:
        return await run(page.models)

    async def search(request: Request) -> Response:
        return await posted(request, page.search)

    async def click(request: Request) -> Response:
        return await posted(request, lambda sent: {"written": page.click(sent)})

    async def posted(
        request: Request, method: Callable[[Mapping[str, Any]], Any]
    ) -> Response:
        # Other sites cannot send this type without asking the server first.
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/json":
            return _error(415, "expected the content-type application/json")
        body = await request.body()
        return await run(lambda: method(parse_object(body)))

    return [
        *(_file_route(path, *file) for path, file in _FILES.items()),
        Route("/page/models", models),
        Route("/page/search", search, methods=["POST"]),
        Route("/page/click", click, methods=["POST"]),
    ]


def _file_route(path: str, name: str, kind: str) -> Route:
    contents = files(__package__).joinpath("page", name).read_bytes()

    async def send(_: Request) -> Response:
        return Response(contents, headers={**HEADERS, "content-type": kind})

    return Route(path, send)


def _reply(call: Callable[[], Any]) -> Response:
    try:
        return JSONResponse(call(), headers=HEADERS)
    except (JsonError, TokenError) as error:
        return _error(400, str(error))
    except StatusError as error:
        return _error(HTTP_CODES[error.code.name], error.details)
    except OSError as error:
        _LOG.error("clicks cannot be written: %s", error)
        return _error(507, "the click could not be written")


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status, HEADERS)

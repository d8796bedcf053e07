"""The search page at `/`: results with reasons, similar words, and clicks.

`SearchPage` answers the requests of the page's script. `page_routes` returns
the routes of these requests, and of the files in the folder `page`.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import STOP_WORDS
from keras_lstm_dssm.model_cards import export_facts
from keras_lstm_dssm.serving.clicks import ClickWriter, TokenError
from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.rest_api import HTTP_CODES, code_and_message
from keras_lstm_dssm.serving.rest_json import (
    parse_object,
    string_of,
    text_array,
    whole_number_of,
)
from keras_lstm_dssm.serving.servable import (
    InvalidError,
    Servable,
    SignatureCall,
    StatusError,
)
from lstm_dssm_client.signatures import (
    EXPLAINED,
    FILTERED,
    KNOWN_TAGS,
    ExplainedHit,
    Hit,
    check_known,
    explained_from_outputs,
    facets,
    tags_as_bytes,
    tags_from_outputs,
)
from lstm_dssm_client.words import split_words

MIN_COSINE = 0.3
MIN_SHARED = 0.4
"""Words are similar if the cosine of their vectors is at least `MIN_COSINE`, or
if the Dice coefficient of their letter trigrams is at least `MIN_SHARED`.
`word_similarity` chooses one of the two measures."""

_MAX_WORD_LETTERS = 64
_MAX_QUERY_WORDS = 12
_MAX_TITLE_WORDS = 200
_NEAREST = 3  # maximum number of nearest words of a query word
_MOST_WORDS = 5  # maximum number of words in a reason


def words_of(
    texts: Iterable[str], maximum: int = _MAX_TITLE_WORDS
) -> list[str]:
    """Returns the first `maximum` distinct normalised words of texts."""
    words: dict[str, None] = {}
    for text in texts:
        words.update(dict.fromkeys(_words_of(text)))
        if len(words) >= maximum:
            break
    return list(words)[:maximum]


def _words_of(text: str) -> list[str]:
    words = split_words(text, "alphanumeric")
    return [word[:_MAX_WORD_LETTERS] for word in words]


def trigrams(word: str) -> list[str]:
    """Returns the letter trigrams of a word: "cap" -> #ca, cap, ap#."""
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]


def letter_similarity(
    query_words: Sequence[str], title_words: Sequence[str]
) -> np.ndarray:
    """Returns Dice coefficients, float64 `[query words, title words]`."""
    title_counts = [Counter(trigrams(word)) for word in title_words]
    result = np.zeros((len(query_words), len(title_words)))
    for row, word in enumerate(query_words):
        counts = Counter(trigrams(word))
        for column, other in enumerate(title_counts):
            shared = (counts & other).total()
            result[row, column] = 2 * shared / (counts.total() + other.total())
    return result


def word_similarity(
    query_words: Sequence[str],
    title_words: Sequence[str],
    cosines: np.ndarray | None = None,
) -> np.ndarray:
    """Returns similarities from 0 to 1, float64 `[query words, title words]`.

    Misspelled query words are compared with title words by letters, and other
    query words by `cosines`. Without `cosines`, all are compared by letters.
    """
    letters = letter_similarity(query_words, title_words)
    letters[letters < MIN_SHARED] = 0
    if cosines is None:
        return letters
    equal = letters == 1
    # A query word counts as misspelled if no title has the word, but a title
    # has a word with similar letters.
    misspelled = letters.any(axis=1) & ~equal.any(axis=1)
    near = np.where(cosines < MIN_COSINE, 0, np.minimum(cosines, 1))
    return np.where(misspelled[:, np.newaxis], letters, np.maximum(near, equal))


def nearest_words(
    query_words: Sequence[str],
    title_words: Sequence[str],
    similarity: np.ndarray,  # `[query words, title words]`
) -> dict[str, list[str]]:
    """Maps each query word that is in no title to the nearest title words."""
    known = {*title_words}
    return {
        word: [
            title_words[column]
            for column in np.argsort(-row, kind="stable")[:_NEAREST]
            if row[column]
        ]
        for word, row in zip(query_words, similarity, strict=True)
        if word not in known
    }


def word_similarities(
    title_words: Sequence[str], similarity: np.ndarray
) -> dict[str, float]:
    """Maps similar title words to the largest similarity with a query word."""
    largest = similarity.max(axis=0, initial=0)
    return {
        word: float(value)
        for word, value in zip(title_words, largest, strict=True)
        if value
    }


_PART_LABELS = {
    "bm25": "words of the query",
    "words": "words of a similar meaning",
    "towers": "learned from clicks",
    "numbers": "numbers of the query",
}
"""Part of a hybrid retriever's score -> label of the part on the page."""


def reasons(hit: ExplainedHit) -> list[str]:
    """Returns a line for each positive part of a score, the largest first."""
    parts = {name: share for name, share in hit.parts.items() if share > 0}
    lines = []
    for name in sorted(parts, key=lambda name: -parts[name]):
        shares = hit.words.get(name, {})
        words = [
            word
            for word in sorted(shares, key=lambda word: -shares[word])
            if shares[word] > 0 and word not in STOP_WORDS
        ]
        share = 100 * parts[name] / sum(parts.values())
        listed = f": {', '.join(words[:_MOST_WORDS])}" * bool(words)
        lines.append(f"{share:.0f} % {_PART_LABELS[name]}{listed}")
    return lines


def highlighted(
    title: str, similarities: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Divides a title into words that match the query, and other text.

    Each item has a `text`, and a `strength` from 0 (other text) to 1.
    """
    parts: list[dict[str, Any]] = []
    end = 0
    for start, stop, words in _matching_spans(title, similarities):
        value = max(similarities.get(word, 0) for word in words)
        if value:
            parts.append({"text": title[end:start], "strength": 0})
            text = title[start:stop]
            parts.append({"text": text, "strength": round(value, 3)})
            end = stop
    parts.append({"text": title[end:], "strength": 0})
    return [part for part in parts if part["text"]]


_PART = re.compile("[^ ]+")


def _matching_spans(
    title: str, similarities: Mapping[str, float]
) -> Iterator[tuple[int, int, list[str]]]:
    """Yields the start, the end and the words of each span that may match.

    A span has one word, unless its characters cannot be divided into words.
    """
    for match in _PART.finditer(title):
        start, end = match.span()
        words = _words_of(match[0])
        if similarities.keys().isdisjoint(words):
            continue
        while words and end - start <= _MAX_WORD_LETTERS:
            # The first word ends at `middle`, where the other words start.
            # "½" has the words 1 and 2, but no middle, so its span has both.
            stop, first = end, words
            for middle in range(start + 1, end):
                if _words_of(title[middle:end]) == words[1:]:
                    if _words_of(title[start:middle]) == words[:1]:
                        stop, first = middle, words[:1]
                    break
            while _words_of(title[start + 1 : stop]) == first:
                start += 1
            yield start, stop, first
            start, words = stop, words[len(first) :]
        if words:
            yield start, end, words


MAX_RESULTS = 50
"""Maximum number of results on the page, after clicks on "More results"."""

MAX_TAG_VALUES = 50
"""The page offers no filter for a tag name with this many values or more."""

MAX_LETTERS = 1000
"""Maximum length of a query on the page, in letters."""

_WORD_RESULTS = 5
"""Number of results of a search for a single word of the query."""

_EXAMPLES = 3
_EXAMPLE_WORDS = 3

_INPUTS = {"text": "string", "k": "int32"}
_QUERY_ENCODERS = ("query_encoder", "keyvec")
_DOCUMENT_ENCODERS = ("document_encoder", "keyvec")


class SearchPage:
    """Searches retrievers and logs clicks; threads may share the object."""

    def __init__(
        self,
        models: ModelRegistry,
        bounds: Bounds = Bounds(),
        clicks: ClickWriter | None = None,
    ) -> None:
        self._models = models
        self._bounds = bounds
        self._clicks = clicks
        self._cards: dict[tuple[str, int], dict[str, Any]] = {}

    def models(self) -> dict[str, Any]:
        """Describes the served retrievers, and whether clicks are logged."""
        listed = []
        for name in self._models.names():
            retrievers = {
                version: servable
                for version, servable in self._models.served(name).items()
                if servable.default(_INPUTS)
            }
            if retrievers:
                newest = max(retrievers)
                listed.append(
                    {
                        "name": name,
                        "versions": sorted(retrievers, reverse=True),
                        "card": self._card(name, newest),
                        **self._offers(retrievers[newest]),
                    }
                )
        served = {(m["name"], v) for m in listed for v in m["versions"]}
        for retired in {*self._cards} - served:
            self._cards.pop(retired, None)
        return {"models": listed, "clicks": self._clicks is not None}

    def _card(self, name: str, version: int) -> dict[str, Any]:
        try:
            facts = export_facts(self._models.models_dir, name, version)
        except (InputError, OSError) as error:
            _LOG.warning("the page shows no date of the export: %s", error)
            return {}
        # Exporting a new version overwrites the stored facts while the old
        # version is still served, so the old facts are kept in memory.
        if facts:
            self._cards[name, version] = facts
        return self._cards.get((name, version), {})

    def _offers(self, servable: Servable) -> dict[str, Any]:
        try:
            tags = facets([*self._known_tags(servable)], MAX_TAG_VALUES)
            return {"examples": self._examples(servable), "tags": tags}
        except StatusError:  # a search will report the error
            return {"examples": [], "tags": {}}

    def _known_tags(self, servable: Servable) -> dict[str, int]:
        call = servable.signature(KNOWN_TAGS)
        if call is None:
            return {}
        return tags_from_outputs(**call.run_arrays({"text": text_array([""])}))

    def _examples(self, servable: Servable) -> list[dict[str, Any]]:
        """Makes queries of titles' first words; misspells the last query."""
        call = servable.default(_INPUTS)
        assert call is not None
        hits = self._hits(self._run(call, [""], [MAX_RESULTS]), 0)
        step = max(1, len(hits) // _EXAMPLES)
        titles = [hit.title for hit in hits[::step][:_EXAMPLES]]
        starts = (" ".join(words_of([t], _EXAMPLE_WORDS)) for t in titles)
        texts = [*dict.fromkeys(filter(None, starts))]
        examples = [{"text": text, "misspelled": False} for text in texts]
        if texts:
            word = max(texts[-1].split(), key=len)
            wrong = word[:1] + word[2:3] + word[1:2] + word[3:]
            text = texts[-1].replace(word, wrong, 1)
            examples[-1] = {"text": text, "misspelled": wrong != word}
        return examples

    def search(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Searches one model for `text`; returns the hits, with reasons."""
        text, model = string_of(request, "text"), string_of(request, "model")
        if len(text) > MAX_LETTERS:
            raise InvalidError(f"'text' has more than {MAX_LETTERS:,} letters")
        k = whole_number_of(request, "k", 1, MAX_RESULTS)
        spec = ModelSpec(name=model)
        if request.get("version") is not None:
            spec.version.value = whole_number_of(
                request, "version", 0, 2**63 - 1
            )
        servable = self._models.find(spec)
        call = servable.default(_INPUTS)
        if call is None:
            raise InvalidError(f"{model} is no retriever")
        every_word = words_of([text], _MAX_QUERY_WORDS)
        query_words = [w for w in every_word if w not in STOP_WORDS]
        # Each query word is also searched for alone, to find similar words.
        queries = [text, *query_words]
        counts = [k] + [_WORD_RESULTS] * (len(queries) - 1)
        tags = tags_as_bytes(request.get("tags") or [])
        if tags and servable.signature(KNOWN_TAGS) is None:
            raise InvalidError(f"{model} has no tags")
        call = (
            servable.signature(EXPLAINED)
            or (tags and servable.signature(FILTERED))
            or call
        )
        outputs = self._run(call, queries, counts, tags)
        rows = [self._hits(outputs, row) for row in range(len(queries))]
        if tags and not any(rows):
            check_known(model, tags, self._known_tags(servable))
        words = words_of(hit.title for row in rows for hit in row)
        cosines = None
        # The page sends `letters` if it shows two models side by side, because
        # one of the models may have no encoders.
        if not request.get("letters"):
            cosines = self._cosines(servable.version, query_words, words)
        similarity = word_similarity(query_words, words, cosines)
        similarities = word_similarities(words, similarity)
        near = nearest_words(query_words, words, similarity)
        results = rows[0]
        served = {"model": servable.name, "version": servable.version}
        weak = outputs["weak"][0].tolist() if "weak" in outputs else []
        columns: dict[str, list[Any]] = {
            "weak": [*map(bool, weak)],
            "click": self._log_search(text, results, served),
        }
        why = _explained(outputs, k)
        hits = [
            {
                "id": hit.id,
                "title": highlighted(hit.title, similarities),
                "score": hit.score,
                "why": [*why.get(hit.id, []), *_near_lines(hit.title, near)],
                **{
                    name: column[n]
                    for name, column in columns.items()
                    if column
                },
            }
            for n, hit in enumerate(results)
        ]
        more = len(results) == k < MAX_RESULTS
        return {**served, "words": near, "hits": hits, "more": more}

    def _log_search(
        self, text: str, hits: list[Hit], served: Mapping[str, Any]
    ) -> list[str]:
        """Logs a search; returns its results' tokens, `[]` without a log."""
        if self._clicks is None:
            return []
        ids, titles = [hit.id for hit in hits], [hit.title for hit in hits]
        try:
            return self._clicks.show(text, ids, titles, served)
        except OSError as error:
            _LOG.error("searches cannot be written: %s", error)
            return []

    def _run(
        self,
        call: SignatureCall,
        texts: Sequence[str],
        k: Sequence[int],
        tags: bytes = b"",
    ) -> dict[str, np.ndarray]:
        inputs = {"text": text_array(texts), "k": np.array(k, np.int32)}
        if "tags" in call.input_dtypes:
            inputs["tags"] = np.full(len(texts), tags, object)
        self._bounds.check_arrays(inputs)
        return call.run_arrays(inputs)

    def _hits(self, outputs: Mapping[str, np.ndarray], row: int) -> list[Hit]:
        """Returns the hits of one query from the outputs of a retriever."""
        ids = [id_ for id_ in _texts(outputs["ids"][row]) if id_]
        # A broken model may return NaN, which browsers cannot parse.
        scores = np.nan_to_num(outputs["scores"][row]).tolist()
        titles = _texts(outputs.get("titles", outputs["ids"])[row])
        # Padding after the hits has no ids, so `map` stops before it.
        return [*map(Hit, ids, scores, titles)]

    def _cosines(
        self, version: int, query_words: Sequence[str], words: Sequence[str]
    ) -> np.ndarray | None:
        """Returns the cosines of vectors of words, `[query words, words]`.

        Returns None if vectors are missing, or have different widths.
        """
        query_vectors = self._encode(_QUERY_ENCODERS, version, query_words)
        vectors = self._encode(_DOCUMENT_ENCODERS, version, words)
        if query_vectors is None or vectors is None:
            return None
        same = query_vectors.shape[1:] == vectors.shape[1:]
        return query_vectors @ vectors.T if same else None

    def _encode(
        self, names: Sequence[str], version: int, texts: Sequence[str]
    ) -> np.ndarray | None:
        for name in names:
            servable = self._models.served(name).get(version)
            call = servable and servable.default({"text": "string"})
            if texts and call:
                inputs = {"text": text_array(texts)}
                return call.run_arrays(inputs).get("embedding")
        return None

    def click(self, request: Mapping[str, Any]) -> bool:
        """Logs a click once; returns whether this call logged the click."""
        token = string_of(request, "click")
        if self._clicks is None:
            raise InvalidError("this server writes no clicks")
        try:
            return self._clicks.write(token)  # may raise `OSError`
        except TokenError as error:
            raise InvalidError(str(error)) from error


def _explained(
    outputs: Mapping[str, np.ndarray], k: int
) -> dict[str, list[str]]:
    """Maps ids of the first query's hits to `reasons`; {} without reasons."""
    if not {"parts", "words", "weak"} <= outputs.keys():
        return {}
    names = ("ids", "scores", "titles", "parts", "words", "weak")
    first = {name: outputs[name][:1] for name in names if name in outputs}
    (hits,) = explained_from_outputs(**first, k=k)
    return {hit.id: reasons(hit) for hit in hits}


def _near_lines(title: str, near: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yields a line for each query word that is similar to a title word."""
    words = words_of([title])
    for word, nearest in near.items():
        if known := [other for other in nearest if other in words]:
            yield f"“{word}” is near “{known[0]}”"


def _texts(values: np.ndarray) -> list[str]:
    return [value.decode(errors="replace") for value in values]


_LOG = logging.getLogger(__name__)

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Path -> name of a file in the folder `page`, and its content type."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of all replies. They let the page load nothing from other hosts."""


def page_routes(page: SearchPage, threads: Executor) -> list[BaseRoute]:
    """Returns the routes of the page; models run in `threads`."""

    async def run(call: Callable[[], Any]) -> Response:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, _reply, call)

    async def models(_: Request) -> Response:
        return await run(page.models)

    def posted(path: str, method: Callable[[Mapping[str, Any]], Any]) -> Route:
        async def answer(request: Request) -> Response:
            # Browsers send JSON from the page of another site only with this
            # server's permission (CORS). Other content types are rejected.
            kind = request.headers.get("content-type", "").partition(";")[0]
            if kind.strip().lower() != "application/json":
                return _error(415, "expected the content-type application/json")
            body = await request.body()
            return await run(lambda: method(parse_object(body)))

        return Route(path, answer, methods=["POST"])

    return [
        *(_file_route(path, *file) for path, file in _FILES.items()),
        Route("/page/models", models),
        posted("/page/search", page.search),
        posted("/page/click", lambda sent: {"written": page.click(sent)}),
    ]


def _file_route(path: str, name: str, kind: str) -> Route:
    contents = files(__package__).joinpath("page", name).read_bytes()

    async def send(_: Request) -> Response:
        return Response(contents, headers={**HEADERS, "content-type": kind})

    return Route(path, send)


def _reply(call: Callable[[], Any]) -> Response:
    try:
        return JSONResponse(call(), headers=HEADERS)
    except InputError as error:
        return _error(400, str(error))
    except OSError as error:
        _LOG.error("clicks cannot be written: %s", error)
        return _error(507, "the click could not be written")
    except Exception as error:  # no error may stop the server
        code, message = code_and_message(error, "the page")
        return _error(HTTP_CODES[code], message)


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status, HEADERS)

"""Answers requests in the protocols of OpenAI, Cohere and Jina.

`ROUTES` maps each path to a `Route`. `RestApi` calls `Route.answer`, a function
from the JSON of a request to the JSON of the reply. docs/clients.md lists the
differences from the three services.
"""

import json
import re
import uuid
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import grpc
import numpy as np
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.rest_json import (
    excerpt,
    string_of,
    text_array,
    whole_number_of,
)
from keras_lstm_dssm.serving.servable import InvalidError, Servable, StatusError
from lstm_dssm_client.signatures import distinct_values, slices_of_size
from lstm_dssm_client.words import split_words

Request = Mapping[str, Any]

MAX_TEXTS = 2048
"""Maximum number of texts of a request, unless `Bounds.max_rows` is larger."""

_CHUNK_CHARS = 1 << 19

TOWERS = "towers"
"""Model name for both encoders. In a request to encode, `input_type` or `task`
selects the encoder."""

_TOWERS = ("query_encoder", "document_encoder")
_SIDE_FIELDS = ("input_type", "task")
_SIDE = re.compile(r"(?:\w+[._])?(?:(query)|document|passage)")
"""Matches values of `_SIDE_FIELDS`, such as query, search_query (Cohere) or
retrieval.passage (Jina). The first group matches only for queries."""

_PAIR = {"query": "string", "document": "string"}
_RERANKERS = ("scorer", "query_encoder", "keyvec")
"""Rerank requests without `model` use the first served model of this list."""


def list_models(models: ModelRegistry, bounds: Bounds, _: Request) -> Any:
    """Lists the served models: `GET /v1/models` of OpenAI."""
    data = [model_object(models, name) for name in _served(models)]
    return {"object": "list", "data": data}


def model_object(models: ModelRegistry, name: str) -> dict[str, Any]:
    """Describes a served model in OpenAI's form."""
    model = spec_of(models, name).name
    return {
        "id": name,
        "object": "model",
        "created": models.created(_TOWERS[0] if model == TOWERS else model),
        "owned_by": "keras_lstm_dssm",
    }


def _served(models: ModelRegistry) -> list[str]:
    """Returns served models, and `TOWERS` if the encoders share a version."""
    names = [name for name in models.names() if models.versions(name)]
    versions = [set(models.versions(name)) for name in _TOWERS]
    return names + [TOWERS] * bool(set.intersection(*versions))


def spec_of(models: ModelRegistry, name: str) -> ModelSpec:
    """Parses `NAME` or `NAME@VERSION`."""
    model, _, version = name.rpartition("@")
    spec = ModelSpec(name=name)
    if re.fullmatch("[0-9]{1,18}", version) and name not in models.names():
        spec.name, spec.version.value = model, int(version)
    return spec


def find_models(models: ModelRegistry, name: str) -> list[Servable]:
    """Returns one model; for `TOWERS`, both encoders of the same version."""
    spec = spec_of(models, name)
    try:
        if spec.name != TOWERS:
            return [models.find(spec)]
        version = spec.version.value if spec.HasField("version") else None
        return models.find_together(_TOWERS, version)
    except StatusError as error:
        served = ", ".join(_served(models)) or "none"
        raise StatusError(
            error.code, f"{error.details}; served models: {served}"
        ) from error


def _find_encoder(models: ModelRegistry, request: Request) -> Servable:
    """Finds the encoder that a request names by `model` and `_SIDE_FIELDS`."""
    servables = find_models(models, string_of(request, "model"))
    sides: dict[int, str] = {}
    for field in _SIDE_FIELDS:
        if match := _SIDE.fullmatch(str(request.get(field))):
            sides[0 if match[1] else 1] = f"{field!r} is {match[0]!r}"
    if len(sides) > 1:
        raise InvalidError(
            f"{' and '.join(sides.values())}, a contradiction: send one"
        )
    side, named = next(iter(sides.items()), (None, ""))
    if servables[1:]:
        if side is None:
            raise InvalidError(
                f"{TOWERS} are {' and '.join(_TOWERS)}: send one of these as "
                "'model', or also send 'input_type' (search_query or "
                "search_document) or 'task' (retrieval.query or "
                "retrieval.passage)"
            )
        return servables[side]
    if side is not None and servables[0].name == _TOWERS[1 - side]:
        raise InvalidError(
            f"{named}, but 'model' does not encode such texts: send "
            f"{_TOWERS[side]} or {TOWERS}"
        )
    return servables[0]


def embeddings(models: ModelRegistry, bounds: Bounds, request: Request) -> Any:
    """Encodes texts: `POST /v1/embeddings` of OpenAI and of Jina."""
    value = request.get("input")
    value = [value] if isinstance(value, str) else value
    texts = _texts("input", value, bounds)
    form = request.get("encoding_format") or "float"
    if form not in [*_FORMS]:  # a list, because `form` may be unhashable
        raise InvalidError(
            f"'encoding_format' is {excerpt(form)}: expected float or base64"
        )
    servable = _find_encoder(models, request)
    vectors = _encode(models, servable, bounds, texts)
    _check_width(servable, vectors, request, "dimensions")
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(_FORMS[form](vectors))
        ],
        "model": _name(servable),
        "usage": _usage(texts),
    }


def embed(
    version: int, models: ModelRegistry, bounds: Bounds, request: Request
) -> Any:
    """Encodes texts: `POST /v1/embed` and `/v2/embed` of Cohere."""
    model = str(request.get("model"))
    # LlamaIndex can send only the names of Cohere's models. Therefore a
    # name `embed-...` that is not served stands for both encoders.
    if model.startswith("embed-") and model not in models.names():
        request = {**request, "model": TOWERS}
    texts = _texts("texts", request.get("texts"), bounds)
    forms = request.get("embedding_types") or ["float"]
    if not isinstance(forms, list) or not all(f in [*_FORMS] for f in forms):
        raise InvalidError(
            f"'embedding_types' is {excerpt(forms)}: expected a list of float "
            "or base64"
        )
    servable = _find_encoder(models, request)
    vectors = _encode(models, servable, bounds, texts)
    _check_width(servable, vectors, request, "output_dimension")
    by_type = version == 2 or request.get("embedding_types") is not None
    return {
        "id": str(uuid.uuid4()),
        "response_type": f"embeddings_{'by_type' if by_type else 'floats'}",
        "embeddings": (
            {f: _FORMS[f](vectors) for f in forms} if by_type else vectors
        ),
        "texts": texts,
        "model": _name(servable),
        "meta": {
            "api_version": {"version": str(version)},
            "billed_units": {"input_tokens": _usage(texts)["total_tokens"]},
        },
    }


def _in_base64(vectors: np.ndarray) -> list[str]:
    return [b64encode(row.tobytes()).decode() for row in vectors.astype("<f4")]


_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "float": lambda vectors: vectors,
    "base64": _in_base64,
}


def _name(servable: Servable) -> str:
    return f"{servable.name}@{servable.version}"


def _check_width(
    servable: Servable, vectors: np.ndarray, request: Request, key: str
) -> None:
    width = vectors.shape[1]
    if request.get(key) not in (None, width):
        raise InvalidError(
            f"{key!r} is {excerpt(request[key])}: vectors of {servable.name} "
            f"have {width} numbers, and cannot be shortened"
        )


def rerank(
    version: int, models: ModelRegistry, bounds: Bounds, request: Request
) -> Any:
    """Ranks documents for a query: `POST /v1/rerank` and `/v2/rerank`."""
    query, values = string_of(request, "query"), request.get("documents")
    if isinstance(values, list):
        values = [
            value.get("text", value) if isinstance(value, dict) else value
            for value in values
        ]
    documents = _texts("documents", values, bounds)
    count = len(documents)
    if request.get("top_n") is not None:
        count = whole_number_of(request, "top_n", 1, 2**31 - 1)
    returns_documents = request.get("return_documents")
    if returns_documents not in (None, True, False):
        raise InvalidError("'return_documents' must be true or false")
    # Version 1 is also Jina's protocol, which returns documents by default.
    if returns_documents is None:
        returns_documents = version == 1
    name = request.get("model")
    if name is None:
        name = next((n for n in _RERANKERS if models.versions(n)), None)
    name = string_of({"model": name}, "model")
    servable, scores = _scores(models, bounds, name, query, documents)
    results = []
    for index in np.argsort(-scores, kind="stable")[:count].tolist():
        result = {"index": index, "relevance_score": scores[index]}
        if returns_documents:
            result["document"] = {"text": documents[index]}
        results.append(result)
    return {
        "id": str(uuid.uuid4()),
        "model": _name(servable),
        "results": results,
        "usage": _usage([query, *documents]),
        "meta": {"api_version": {"version": str(version)}},
    }


def _scores(
    models: ModelRegistry,
    bounds: Bounds,
    name: str,
    query: str,
    documents: Sequence[str],
) -> tuple[Servable, np.ndarray]:
    """Returns the model and the scores, `[n]`; encoders give cosines."""
    spec = spec_of(models, name)
    if spec.name in _TOWERS:  # the name of either encoder means both
        name = TOWERS + name.removeprefix(spec.name)
    servable, *others = find_models(models, name)
    if servable.default(_PAIR):
        queries = [query] * len(documents)
        pairs = {"query": queries, "document": documents}
        return servable, _run(servable, bounds, "score", **pairs)
    (vector,) = _encode(models, servable, bounds, [query])
    document_side = others[0] if others else servable
    return servable, _encode(models, document_side, bounds, documents) @ vector


def _encode(
    models: ModelRegistry,
    servable: Servable,
    bounds: Bounds,
    texts: Sequence[str],
) -> np.ndarray:
    """Returns vectors of texts, float32 `[n, d]`."""
    if not _is_encoder(servable):
        names = [
            name
            for name in _served(models)
            if _is_encoder(find_models(models, name)[0])
        ]
        raise InvalidError(
            f"{servable.name} is no encoder of texts; served encoders: "
            f"{', '.join(names) or 'none'}"
        )
    return _run(servable, bounds, "embedding", text=texts)


def _is_encoder(servable: Servable) -> bool:
    call = servable.default({"text": "string"})
    return call is not None and "embedding" in call.outputs


def _run(
    servable: Servable, bounds: Bounds, output: str, **columns: Sequence[str]
) -> np.ndarray:
    """Runs a model on texts; returns the value of `output` for each row."""
    rows = list(zip(*columns.values(), strict=True))
    # Equal rows must have equal results, but a row's position in a batch may
    # change the last digits of its result. So each distinct row runs only once.
    first, row_of = distinct_values(rows)
    sizes = [sum(map(len, rows[index])) for index in first]
    inputs = {name: text_array(texts)[first] for name, texts in columns.items()}
    chunks = [
        {name: array[rows] for name, array in inputs.items()}
        for rows in slices_of_size(sizes, bounds.max_rows, _CHUNK_CHARS)
    ]
    for chunk in chunks:
        bounds.check_arrays(chunk)
    call = servable.signature("")
    assert call is not None
    values = np.concatenate(
        [call.run_arrays(chunk)[output] for chunk in chunks]
    )
    if not np.isfinite(values).all():  # JSON has no NaN or infinity
        raise StatusError(
            grpc.StatusCode.DATA_LOSS,
            f"{servable.name} returned NaN or infinity",
        )
    return values[row_of]


def _texts(key: str, values: Any, bounds: Bounds) -> list[str]:
    """Returns the texts of a request; raises an error if they are wrong."""
    if not isinstance(values, list) or not values:
        text = "a text, or " if key == "input" else ""
        raise InvalidError(f"{key!r} must be {text}a list of at least one text")
    limit = max(MAX_TEXTS, bounds.max_rows)
    if len(values) > limit:
        raise InvalidError(
            f"{key!r} has {len(values):,} texts, expected at most {limit:,}: "
            "send them in several requests"
        )
    for index, text in enumerate(values):
        if not isinstance(text, str):
            raise InvalidError(
                f"{key}[{index}] is {excerpt(text)}: expected a text; token "
                "ids and images are not supported"
            )
    return values


def _usage(texts: Sequence[str]) -> dict[str, int]:
    """Reports the number of words as the number of tokens."""
    words = sum(len(split_words(text, "space")) for text in texts)
    return {"prompt_tokens": words, "total_tokens": words}


def _openai_error(status: int, message: str) -> Any:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "param": None, "code": None}
    return {"error": error}


def _cohere_error(status: int, message: str) -> Any:
    return {"message": message}


class Route(NamedTuple):
    """Says how requests for a path are answered."""

    protocol: str  # name in `Bounds.protocols`
    method: str  # HTTP method
    label: str  # name of these requests in metrics
    answer: Callable[[ModelRegistry, Bounds, Request], Any]
    error: Callable[[int, str], Any]


ROUTES = {
    "/v1/models": Route(
        "openai", "GET", "ListModels", list_models, _openai_error
    ),
    "/v1/embeddings": Route(
        "openai", "POST", "Embeddings", embeddings, _openai_error
    ),
    **{
        f"/v{version}/{name}": Route(
            name, "POST", name.title(), partial(answer, version), _cohere_error
        )
        for version in (1, 2)
        for name, answer in (("embed", embed), ("rerank", rerank))
    },
}


def error_body(path: str, status: int, message: str) -> bytes:
    """Returns an error as JSON, in the form of the path's protocol."""
    route = ROUTES.get(path)
    error = route.error(status, message) if route else {"error": message}
    if not path.startswith("/v1/models/"):
        error["detail"] = message
    return json.dumps(error).encode()

"""Requests in the forms of OpenAI's, Cohere's and Jina's services.

`ROUTES` has each path with the function that makes the JSON of a reply from
that of a request. `RestApi` calls it, so that slots, limits, tokens, deadlines
and metrics are those of all requests. docs/local_server.md lists what differs
from those services.
"""

import json
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
from keras_lstm_dssm.serving.servable import (
    InvalidError,
    Servable,
    StatusError,
)
from lstm_dssm_client.signatures import distinct_values
from lstm_dssm_client.words import split_words

Request = Mapping[str, Any]

_PAIR = {"query": "string", "document": "string"}
_TOWERS = ("query_encoder", "document_encoder")
_RERANKERS = ("scorer", "query_encoder", "keyvec")
"""Models that answer a request without `model`, the first that is served."""


def list_models(models: ModelRegistry, bounds: Bounds, _: Request) -> Any:
    """Lists the models that are served, `GET /v1/models` of OpenAI.

    `created` is the time at which the newest version was written.
    """
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": models.created(name),
                "owned_by": "keras_lstm_dssm",
            }
            for name in models.names()
            if models.versions(name)
        ],
    }


def _find(models: ModelRegistry, name: str) -> Servable:
    """Returns a model; without it, the error names those that there are."""
    try:
        return models.find(ModelSpec(name=name))
    except StatusError as error:
        served = [each for each in models.names() if models.versions(each)]
        raise StatusError(
            error.code,
            f"{error.details}; there are {', '.join(served) or 'no models'}",
        ) from error


def embeddings(models: ModelRegistry, bounds: Bounds, request: Request) -> Any:
    """Encodes texts, `POST /v1/embeddings` of OpenAI."""
    name, sent = string_of(request, "model"), request.get("input")
    texts = _texts("input", [sent] if isinstance(sent, str) else sent, bounds)
    form = request.get("encoding_format") or "float"
    if form not in ("float", "base64"):
        raise InvalidError(
            f"'encoding_format' is {excerpt(form)}: expected float or base64"
        )
    servable = _find(models, name)
    vectors = _encode(servable, bounds, texts)
    width = vectors.shape[1]
    if request.get("dimensions") not in (None, width):
        raise InvalidError(
            f"'dimensions' is {excerpt(request['dimensions'])}: {name} has "
            f"{width}, and cannot be shortened"
        )
    rows: Any = vectors
    if form == "base64":
        little = vectors.astype("<f4")
        rows = [b64encode(row.tobytes()).decode() for row in little]
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(rows)
        ],
        "model": name,
        "usage": _usage(texts),
    }


def rerank(
    version: int, models: ModelRegistry, bounds: Bounds, request: Request
) -> Any:
    """Ranks documents for a query, `POST /v1/rerank` and `/v2/rerank`.

    Version 1 is Jina's form and Cohere's older one, in which documents may be
    objects with `text`, and are returned unless `return_documents` is false.
    """
    query, sent = string_of(request, "query"), request.get("documents")
    if isinstance(sent, list):
        sent = [
            each.get("text") if isinstance(each, dict) else each
            for each in sent[: bounds.max_rows + 1]
        ]
    documents = _texts("documents", sent, bounds)
    count = len(documents)
    if request.get("top_n") is not None:
        count = whole_number_of(request, "top_n", 1, 2**31 - 1)
    returned = request.get("return_documents")
    if returned not in (None, True, False):
        raise InvalidError("'return_documents' must be true or false")
    if request.get("model") is None:
        served = [name for name in _RERANKERS if models.versions(name)]
        name = served[0] if served else string_of(request, "model")
    else:
        name = string_of(request, "model")
    scores = _scores(models, bounds, name, query, documents)
    results = []
    for index in np.argsort(-scores, kind="stable")[:count].tolist():
        result = {"index": index, "relevance_score": scores[index]}
        if version == 1 if returned is None else returned:
            result["document"] = {"text": documents[index]}
        results.append(result)
    return {
        "id": str(uuid.uuid4()),
        "model": name,
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
) -> np.ndarray:
    """Returns the scores of a pair scorer, or cosines of encoders, `[n]`.

    Equal documents are scored once, so that their scores are equal.
    """
    first, row_of = distinct_values(documents)
    documents = [documents[i] for i in first]
    servable = _find(models, name)
    call = servable.signature("")
    if call is not None and call.input_dtypes == _PAIR:
        queries = text_array([query] * len(documents))
        inputs = {"query": queries, "document": text_array(documents)}
        bounds.check_arrays(inputs)
        return _finite(name, call.run_arrays(inputs)["score"])[row_of]
    if name not in _TOWERS:
        query_side = document_side = servable
    else:
        query_side, document_side = models.find_together(_TOWERS)
    (vector,) = _encode(query_side, bounds, [query])
    return (_encode(document_side, bounds, documents) @ vector)[row_of]


def _encode(
    servable: Servable, bounds: Bounds, texts: Sequence[str]
) -> np.ndarray:
    """Returns vectors of texts, float32 `[n, d]`."""
    call = servable.signature("")
    if (
        call is None
        or call.input_dtypes != {"text": "string"}
        or "embedding" not in call.outputs
    ):
        raise InvalidError(
            f"{servable.name} is no encoder of texts; GET /v1/models lists "
            "the models"
        )
    inputs = {"text": text_array(texts)}
    bounds.check_arrays(inputs)
    return _finite(servable.name, call.run_arrays(inputs)["embedding"])


def _texts(key: str, sent: Any, bounds: Bounds) -> list[str]:
    """Returns the texts of a request, of which there is at least one."""
    if not isinstance(sent, list) or not sent:
        raise InvalidError(
            f"{key!r} must be a text, or a list that is not empty"
        )
    bounds.check_rows(len(sent))
    for index, text in enumerate(sent):
        if not isinstance(text, str):
            raise InvalidError(
                f"{key}[{index}] is {excerpt(text)}: expected a text; ids of "
                "tokens are not supported"
            )
    return sent


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():  # JSON has no form of them
        raise StatusError(
            grpc.StatusCode.DATA_LOSS, f"{name} returned NaN or infinity"
        )
    return values


def _usage(texts: Sequence[str]) -> dict[str, int]:
    """Counts words: the encoders read them, and have no other tokens."""
    words = sum(len(split_words(text, "space")) for text in texts)
    return {"prompt_tokens": words, "total_tokens": words}


def _openai_error(status: int, message: str) -> Any:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "param": None, "code": None}
    return {"error": error}


def _cohere_error(status: int, message: str) -> Any:
    return {"message": message, "detail": message}  # `detail` is Jina's


class Route(NamedTuple):
    """How a path is answered.

    `protocol` is its name in `Bounds.protocols`, `method` that of HTTP, `label`
    the method in metrics.
    """

    protocol: str
    method: str
    label: str
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
        f"/v{version}/rerank": Route(
            "rerank", "POST", "Rerank", partial(rerank, version), _cohere_error
        )
        for version in (1, 2)
    },
}


def error_body(path: str, status: int, message: str) -> bytes:
    """Returns an error in the form of the path's protocol, or TF Serving's."""
    route = ROUTES.get(path)
    error = route.error(status, message) if route else {"error": message}
    return json.dumps(error).encode()

"""OpenAI's and Cohere's own clients, unchanged, and requests that are wrong.

Further clients are in tests/clients_by_hand.
"""

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import cohere
import numpy as np
import openai
import pytest

from keras_lstm_dssm import serving
from keras_lstm_dssm.serving.metrics import RequestMetrics
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.protocols import ROUTES
from keras_lstm_dssm.serving.rest_api import RestApi
from keras_lstm_dssm.serving.servable import SignatureCall
from tests.serving.tiny_models import encode, save_encoder

TEXTS = ["steel angle", "a", "bolt é"]


@pytest.fixture
def openai_client(server) -> Iterator[openai.OpenAI]:
    url = f"{server.http_address}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


def test_openai_lists_the_models(openai_client):
    listed = openai_client.models.list().data
    assert [each.id for each in listed] == [
        "hybrid", "numbers", "query_encoder", "retriever", "scorer",
    ]  # fmt: skip
    for each in listed:  # the models were written before this test, today
        assert 0 <= time.time() - each.created < 24 * 3600
    assert {each.object for each in listed} == {"model"}
    for name in ("scorer", "query_encoder@2"):
        found = openai_client.models.retrieve(name)
        assert (found.id, found.object) == (name, "model")
        assert found.created in {each.created for each in listed}
    with pytest.raises(openai.NotFoundError):
        openai_client.models.retrieve("query_encoder@9")


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_openai_embeddings(openai_client, client, form):
    """Without a form the client asks for base64, and decodes it."""
    vectors = client.encode(TEXTS)
    more = {"encoding_format": form} if form else {}
    reply = openai_client.embeddings.create(
        model="query_encoder", input=TEXTS, dimensions=2, **more
    )
    assert (reply.model, [each.index for each in reply.data]) == (
        "query_encoder@2", [0, 1, 2]
    )  # fmt: skip
    rows: list[Any] = [each.embedding for each in reply.data]
    if form == "base64":
        rows = [np.frombuffer(b64decode(row), "<f4") for row in rows]
    np.testing.assert_array_equal(np.array(rows, np.float32), vectors)
    # "steel angle", "a", "bolt é"
    assert reply.usage.prompt_tokens == reply.usage.total_tokens == 5
    alone = openai_client.embeddings.create(model="query_encoder", input="a")
    np.testing.assert_array_equal(
        np.array([alone.data[0].embedding], np.float32), vectors[1:2]
    )


def test_tokens_and_the_end_of_slots(numbers, tmp_path, monkeypatch):
    """What is refused before the models has the form of the protocol, too."""
    (tmp_path / "tokens").touch(0o600)
    (tmp_path / "tokens").write_text("a-token-of-thirty-two-characters\n")
    security = serving.Security(tokens=serving.TokenFile(tmp_path / "tokens"))
    with (
        serving.PredictionServer(
            numbers, port=0, http_port=0, security=security
        ) as server,
        openai.OpenAI(
            base_url=f"{server.http_address}/v1",
            api_key="a-token-of-thirty-two-characters",
            max_retries=0,
        ) as client,
        cohere.ClientV2(
            base_url=server.http_address, api_key="another"
        ) as wrong,
    ):
        assert [each.id for each in client.models.list()] == ["numbers"]
        other = client.with_options(api_key="another")
        with pytest.raises(openai.AuthenticationError) as refused:
            other.embeddings.create(model="numbers", input="a")
        assert refused.value.type == "invalid_request_error"
        with pytest.raises(openai.APIStatusError, match="larger than") as large:
            client.embeddings.create(model="numbers", input="a" * (17 << 20))
        assert large.value.status_code == 413
        monkeypatch.setattr(server._http_slots, "_max_requests", 0)
        with pytest.raises(openai.RateLimitError, match="at the same time"):
            client.models.list()
        with pytest.raises(cohere.UnauthorizedError) as unauthorized:
            wrong.rerank(model="numbers", query="a", documents=["b"])
        message = unauthorized.value.body["message"]
        assert message.startswith("the request has no valid token")


def test_cohere_reranks_by_a_pair_scorer(server):
    """The tiny scorer gives 2 * (bytes of the query) - (bytes of the text)."""
    address = {"base_url": server.http_address, "api_key": "none"}
    with (
        cohere.Client(**address) as client,
        cohere.ClientV2(**address) as newer,
    ):
        every = client.rerank(
            query="bolt", documents=["abc", {"text": "a"}, "ab"]
        )
        plain = client.rerank(
            query="bolt", documents=["a", "b"], return_documents=False
        )
        best = newer.rerank(
            model="scorer", query="bolt", documents=["abc", "a", "ab"], top_n=2
        )
        with pytest.raises(cohere.NotFoundError, match=r"Latest\(foo\)"):
            newer.rerank(model="foo", query="bolt", documents=["a"])
    assert [
        (each.index, each.relevance_score, each.document.text)
        for each in every.results
    ] == [(1, 7, "a"), (2, 6, "ab"), (0, 5, "abc")]
    assert every.id and every.model == "scorer@1"
    assert every.meta and every.meta.api_version.version == "1"
    # Of equal scores the first document comes first.
    assert [(r.index, r.document) for r in plain.results] == [
        (0, None), (1, None)
    ]  # fmt: skip
    assert [(r.index, r.relevance_score) for r in best.results] == [
        (1, 7), (2, 6)
    ]  # fmt: skip
    assert not hasattr(best.results[0], "document")


@pytest.fixture(scope="module")
def towers(tmp_path_factory) -> RestApi:
    """Version 2 of both towers, and a version 3 of one that came before it."""
    tmp_path = tmp_path_factory.mktemp("towers")
    for offset in (1.0, 2.0, 30.0):
        save_encoder(tmp_path / "query_encoder", offset)
        if offset < 3:
            save_encoder(tmp_path / "document_encoder", 10 * offset)
    (tmp_path / "keyvec").symlink_to(tmp_path / "query_encoder")
    models = ModelRegistry(tmp_path, versions=3)
    return RestApi(models, metrics=RequestMetrics(models))


def reranked(api: RestApi, **request: Any) -> list[tuple[int, float]]:
    body = {"query": "ab", "documents": ["abcdef", "a b c"], **request}
    reply = json.loads(
        api.answer("POST", "/v2/rerank", json.dumps(body).encode()).body
    )
    return [(r["index"], r["relevance_score"]) for r in reply["results"]]


@pytest.mark.parametrize(("model", "offsets"), [
    (None, (2.0, 20.0)),
    ("document_encoder", (2.0, 20.0)),
    ("keyvec", (30.0, 30.0)),
])  # fmt: skip
def test_cosines_of_encoders_of_one_version(towers, model, offsets):
    """The newest that both towers have; another encoder reads both sides."""
    query = encode(["ab"], offsets[0])["embedding"].numpy()
    documents = encode(["abcdef", "a b c"], offsets[1])["embedding"].numpy()
    scores = documents @ query[0]
    expected = [(int(i), pytest.approx(scores[i])) for i in np.argsort(-scores)]
    assert reranked(towers, model=model) == expected
    # The encoder of the query is counted, also if the request names none.
    counted = "keyvec" if model == "keyvec" else "query_encoder"
    counted = f'method="Rerank",model="{counted}"'
    assert towers._metrics and counted.encode() in towers._metrics.text()


SIDES = [
    {"input_type": "search_query"}, {"input_type": "search_document"},
    {"task": "retrieval.query"}, {"task": "retrieval.passage"},
]  # fmt: skip


def embedded(api: RestApi, path: str, **request: Any) -> tuple[Any, str]:
    """Returns the vectors or the error of a request, and the model."""
    reply = api.answer("POST", path, json.dumps(request).encode())
    body = json.loads(reply.body)
    model = body.get("model", "")
    assert reply.version == model.partition("@")[2]
    if "data" in body:
        return [each["embedding"] for each in body["data"]], model
    return body.get("embeddings", body.get("detail")), model


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("version", "chosen"), [("", 2), ("@1", 1)])
def test_the_side_of_a_request_chooses_the_encoder(
    towers, side, version, chosen
):
    """The newest version that both have, unless the name asks for another."""
    texts = ["ab", "a b c"]
    number = int(side in SIDES[1::2])
    offset = float(10**number * chosen)
    expected = pytest.approx(encode(texts, offset)["embedding"].numpy())
    name = f"{('query', 'document')[number]}_encoder@{chosen}"
    request = {"model": f"towers{version}", **side}
    openai_form = embedded(towers, "/v1/embeddings", input=texts, **request)
    assert (np.array(openai_form[0]), openai_form[1]) == (expected, name)
    older = embedded(towers, "/v1/embed", texts=texts, **request)
    assert (np.array(older[0]), older[1]) == (expected, name)
    newer = embedded(towers, "/v2/embed", texts=texts, **request)
    assert (np.array(newer[0]["float"]), newer[1]) == (expected, name)


def test_towers_without_a_side(towers):
    both = "towers are query_encoder and document_encoder: send one of these"
    for side in ({}, {"task": "classification"}, {"input_type": ["query"]}):
        request = {"model": "towers", "input": "a", "texts": ["a"], **side}
        for path in ("/v1/embeddings", "/v1/embed", "/v2/embed"):
            assert embedded(towers, path, **request)[0].startswith(both)
    side = {"input_type": "search_query", "task": "retrieval.passage"}
    for model in ("towers", "query_encoder"):
        found = embedded(
            towers, "/v1/embeddings", model=model, input="a", **side
        )
        assert found[0] == (
            "'input_type' is 'search_query' and 'task' is 'retrieval.passage',"
            " a contradiction: send one"
        )
    listed = json.loads(towers.answer("GET", "/v1/models").body)["data"]
    assert listed[-1]["id"] == "towers"
    found = towers.answer("GET", "/v1/models/towers")
    assert json.loads(found.body) == listed[-1]
    assert towers.answer("GET", "/v1/models/towers@9").status == 404


def test_cohere_embeds(tmp_path, tiny_models):
    for name in ("query_encoder", "document_encoder"):
        (tmp_path / name).symlink_to(tiny_models / "query_encoder")
    with serving.PredictionServer(tmp_path, port=0, http_port=0) as server:
        address = {"base_url": server.http_address, "api_key": "none"}
        expected = encode(TEXTS, 2.0)["embedding"].numpy()
        request = {"model": "towers", "texts": TEXTS}
        side = {"input_type": "search_query"}
        with (
            cohere.Client(**address) as client,
            cohere.ClientV2(**address) as newer,
        ):
            floats = client.embed(**request, **side)
            by_type = newer.embed(
                **request, **side, embedding_types=["float", "base64"]
            )
            with pytest.raises(cohere.BadRequestError, match="document_enco"):
                client.embed(**request)
        np.testing.assert_allclose(floats.embeddings, expected, atol=1e-7)
        vectors = by_type.embeddings
        np.testing.assert_allclose(vectors.float_, expected, atol=1e-7)
        rows = [np.frombuffer(b64decode(r), "<f4") for r in vectors.base64]
        np.testing.assert_allclose(rows, expected, atol=1e-7)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v2/rerank"])
def test_many_texts_are_computed_in_parts(towers, monkeypatch, path):
    """As many as clients send by default, in the bounds of one computation."""
    sizes = []
    run = SignatureCall.run_arrays

    def counted(call: SignatureCall, inputs: Any) -> Any:
        sizes.append(len(inputs["text"]))
        return run(call, inputs)

    monkeypatch.setattr(SignatureCall, "run_arrays", counted)
    texts = ["a" * (1 + i) + " b" * (i % 7) for i in range(1100)]
    texts += texts[:900]
    if path == "/v1/embeddings":
        vectors, _ = embedded(towers, path, model="query_encoder", input=texts)
        assert sizes == [512, 512, 76]
        assert vectors[:900] == vectors[1100:]
        expected = encode(texts, 30.0)["embedding"].numpy()
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
    else:
        assert len(reranked(towers, documents=texts)) == 2000
        assert sizes == [1, 512, 512, 76]


@pytest.mark.parametrize("count", [2, 11, 40])
def test_equal_documents_have_one_score(towers, count):
    """Documents with other vectors stand between equal vectors."""
    documents = ["abcdef", "a b c"] * count
    found = reranked(towers, documents=documents)
    assert len({score for _, score in found}) == 2
    even, odd = range(0, 2 * count, 2), range(1, 2 * count, 2)
    assert [index for index, _ in found] in ([*even, *odd], [*odd, *even])


EMBED = '"model": "query_encoder", "input": ["a"]'
RANK = '"query": "a", "documents": ["b"]'


@pytest.mark.parametrize(("path", "body", "status", "message"), [
    ("embeddings", "", 400, "The document is empty"),
    ("embeddings", "[]", 400, "Is not object"),
    ("embeddings", '{"model": "foo", "input": "a"}', 404,
     "Latest(foo); served models: hybrid, numbers, query_encoder, retriever, "
     "sco"),
    ("embeddings", '{"input": "a"}', 400, "'model' must be a string"),
    ("embeddings", '{"model": "query_encoder"}', 400,
     "'input' must be a text, or a list of at least one text"),
    ("embeddings", '{"model": "query_encoder", "input": []}', 400,
     "'input' must be a text, or a list of at least one text"),
    ("embeddings", '{"model": "query_encoder", "input": ["a", [7]]}', 400,
     "input[1] is [\n    7\n]: expected a text; token ids and i"),
    ("embeddings", f'{{{EMBED}, "encoding_format": "hex"}}', 400,
     "'encoding_format' is \"hex\": expected float or base64"),
    ("embeddings", f'{{{EMBED}, "dimensions": 1}}', 400,
     "'dimensions' is 1: vectors of query_encoder have 2 numbers, and cann"),
    ("embeddings", f'{{{EMBED}, "encoding_format": ["float"]}}', 400,
     "expected float or base64"),
    ("embeddings", f'{{{EMBED}, "task": "retrieval.passage"}}', 400,
     "'task' is 'retrieval.passage', but 'model' does not encode such texts:"),
    ("embeddings", '{"model": "query_encoder@9", "input": "a"}', 404,
     "Specific(query_encoder, 9); served models: hybrid"),
    ("embeddings", '{"model": "towers", "input": "a"}', 404,
     "query_encoder and document_encoder have no version in common; served mo"),
    ("embeddings", '{"model": "scorer", "input": "a"}', 400,
     "scorer is no encoder of texts; served encoders: query_encoder"),
    ("embeddings", json.dumps({"model": "query_encoder",
                               "input": [""] * 2049}), 400,
     "'input' has 2,049 texts, expected at most 2,048: send them in several"),
    ("embeddings", json.dumps({"model": "query_encoder",
                               "input": "a" * (1 << 20 | 1)}), 400,
     "input text has a text of 1,048,577 bytes"),
    ("rerank", '{"documents": ["a"]}', 400, "'query' must be a string"),
    ("rerank", '{"query": "a", "documents": "b"}', 400,
     "'documents' must be a list of at least one text"),
    ("rerank", '{"query": "a", "documents": [{"title": "b"}]}', 400,
     'documents[0] is {\n    "title": "b"\n}: expected a text'),
    ("rerank", json.dumps({"query": "a", "documents": ["b"] * 2049}), 400,
     "'documents' has 2,049 texts"),
    ("embed", '{"model": "query_encoder"}', 400, "'texts' must be a list of"),
    ("embed", '{"model": "query_encoder", "texts": ["a"],'
     ' "embedding_types": ["int8"]}', 400, "expected a list of float or base"),
    ("embed", '{"model": "query_encoder", "texts": ["a"],'
     ' "output_dimension": 3}', 400, "'output_dimension' is 3: vectors of"),
    ("rerank", f'{{{RANK}, "top_n": 0}}', 400, "'top_n' must be a whole"),
    ("rerank", f'{{{RANK}, "return_documents": "no"}}', 400,
     "'return_documents' must be true or false"),
    ("rerank", f'{{{RANK}, "model": 3}}', 400, "'model' must be a string"),
    ("rerank", f'{{{RANK}, "model": "retriever"}}', 400,
     "retriever is no encoder of texts"),
    ("rerank", f'{{{RANK}, "model": "x"}}', 404, "Latest(x)"),
    # The tiny models have no document_encoder.
    ("rerank", f'{{{RANK}, "model": "query_encoder"}}', 404,
     "query_encoder and document_encoder have no version in common"),
])  # fmt: skip
def test_wrong_requests(send, path, body, status, message):
    for version in (1,) if path == "embeddings" else (1, 2):
        code, reply = send("POST", f"/v{version}/{path}", body)
        detail = reply.pop("detail")  # Jina's clients read it
        if path == "embeddings":
            assert reply.keys() == {"error"}
            reply = reply["error"]
            assert reply["type"] == "invalid_request_error"
        assert code == status
        assert message in reply["message"] == detail


@pytest.mark.parametrize("path", ROUTES)
def test_the_other_method(send, path):
    method = "GET" if ROUTES[path].method == "POST" else "POST"
    code, reply = send(method, path)
    assert code == 400
    assert "Malformed request" in str(reply) or "Missing model" in str(reply)


def test_numbers_that_are_not_finite(server, monkeypatch):
    """JSON has none; a client would fail at them, or rank by them."""
    api = RestApi(server.models)
    nan = {name: np.full((1, 2), np.nan) for name in ("embedding", "score")}
    monkeypatch.setattr(SignatureCall, "run_arrays", lambda *_: nan)
    for path, body in (("/v1/embeddings", EMBED), ("/v2/rerank", RANK)):
        reply = api.answer("POST", path, f"{{{body}}}".encode())
        assert reply.status == 500
        assert b"returned NaN or infinity" in reply.body


def test_protocols_that_are_off(numbers):
    models = ModelRegistry(numbers)
    api = RestApi(models, serving.Bounds(protocols=("rerank",)))
    listed = api.answer("GET", "/v1/models")
    assert b"Missing model name in request." in listed.body
    embed = api.answer("POST", "/v1/embeddings", f"{{{EMBED}}}".encode())
    assert embed.status == 400
    assert b"Malformed request: POST /v1/embeddings" in embed.body
    rerank = f'{{{RANK}, "model": "numbers"}}'.encode()
    assert b"is no encoder" in api.answer("POST", "/v1/rerank", rerank).body
    status = api.answer("GET", "/v1/models/numbers")
    assert json.loads(status.body).keys() == {"model_version_status"}
    api = RestApi(models, serving.Bounds(protocols=()))
    assert b"Malformed" in api.answer("POST", "/v1/rerank", rerank).body

"""TF Serving's REST API: the same strings, codes and messages."""

import json
import time

import pytest
import tensorflow as tf

from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.serving.rest_api import HTTP_CODES, RestApi
from tests.serving.tiny_models import save_encoder

PREDICT = "/v1/models/retriever:predict"
BOLT = '{"inputs": {"text": ["bolt"], "k": [1]}}'
FOUND = {"outputs": {"ids": [["bolt"]], "scores": [[pytest.approx(1)]]}}


def test_predict_by_row_version_label_and_signature(send):
    assert send("POST", PREDICT, BOLT) == (200, FOUND)
    row = '{"instances": [{"text": "bolt", "k": 1}]}'
    assert send("POST", PREDICT, row) == (
        200,
        {"predictions": [{"ids": ["bolt"], "scores": [pytest.approx(1)]}]},
    )
    double = '{"signature_name": "double", "instances": [0.1, 2]}'
    numbers = "/v1/models/numbers"
    assert send("POST", f"{numbers}:predict", double) == (
        200,
        {"predictions": [0.2, 4.0]},
    )
    # Version 1 has other vectors than version 2.
    encoder = "/v1/models/query_encoder"
    one = send("POST", f"{encoder}/versions/1:predict", '{"inputs": ["abc"]}')
    newest = send("POST", f"{encoder}:predict", '{"inputs": ["abc"]}')
    assert (
        one[1]["outputs"][0][0]
        < newest[1]["outputs"][0][0]
        == (pytest.approx(2**-0.5))
    )
    # Case, percent-encoding and a query in the path are as in TF Serving.
    assert send("POST", "/v1/MODELS/%72etriever:predict?x=1", BOLT)[0] == 200


def test_labels(tmp_path):
    save_encoder(tmp_path / "query_encoder", offset=1.0)
    save_encoder(tmp_path / "query_encoder", offset=2.0)
    (tmp_path / "models.config").write_text(
        'model_config_list { config { name: "query_encoder" '
        'base_path: "/" model_platform: "tensorflow" '
        "model_version_policy { all {} } "
        'version_labels { key: "old" value: 1 } } }'
    )
    with PredictionServer(tmp_path, port=0, poll_seconds=0) as server:
        api = RestApi(server.models)
        path = "/v1/models/query_encoder/labels/{}:predict"
        body = b'{"instances": ["a b"]}'
        reply = api.answer("POST", path.format("old"), body)
        assert json.loads(reply.body) == {
            "predictions": [[pytest.approx(2**-0.5)] * 2]
        }
        wrong = api.answer("POST", path.format("new"), body)
        assert wrong.status == 400
        assert b"Unrecognized servable version label: new" in wrong.body
        status = api.answer("GET", "/v1/models/query_encoder/labels/old")
        assert status.status == 200


def test_status_and_metadata(send):
    available = {
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    assert send("GET", "/v1/models/query_encoder") == (
        200,
        {
            "model_version_status": [
                {"version": "2", **available},
                {"version": "1", **available},
            ]
        },
    )
    assert send("GET", "/v1/models/query_encoder/versions/1") == (
        200,
        {"model_version_status": [{"version": "1", **available}]},
    )
    status, metadata = send("GET", "/v1/models/query_encoder/metadata")
    assert status == 200
    assert metadata["model_spec"] == {
        "name": "query_encoder", "signature_name": "", "version": "2",
    }  # fmt: skip
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"]["text"] == {
        "dtype": "DT_STRING",
        "name": "serving_default_text:0",
        "tensor_shape": {
            "dim": [{"name": "", "size": "-1"}],
            "unknown_rank": False,
        },
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/v1/models/foo:predict", BOLT, 404,
         "Servable not found for request: Latest(foo)"),
        ("GET", "/v1/models/foo", "", 404,
         "Could not find any versions of model foo"),
        ("GET", "/v1/foo", "", 400, "Malformed request: GET /v1/foo"),
        ("GET", "/v1/MODELS", "", 400, "Missing model name in request."),
        ("POST", "/v1/models/retriever", BOLT, 400, "Malformed request: POST"),
        ("GET", PREDICT, "", 400, f"Malformed request: GET {PREDICT}"),
        ("PUT", PREDICT, BOLT, 400, "Malformed request: PUT"),
        ("DELETE", "/v1/models/retriever", "", 400, "Malformed request: DELE"),
        ("POST", "/v1/models/foo/versions/a:predict", BOLT, 400, "Malformed"),
        ("POST", f"/v1/models/foo/versions/{2**64 - 1}:predict", BOLT, 400,
         f"Failed to convert version: {2**64 - 1} to numeric."),
        ("GET", f"/v1/models/foo/versions/{'9' * 5000}", "", 400,
         "Failed to convert version: 999"),
        ("GET", f"/v1/models/foo/versions/{'0' * 5000}7", "", 404,
         "Could not find version 7 of model foo"),
        ("POST", "/v1/models/foo:classify", "{}", 501, "classify"),
        ("POST", PREDICT, "bolt", 400, "JSON Parse error: Invalid value."),
        ("POST", PREDICT, '{"inputs": {"text": ["a"], "k": [1.5]}}', 400,
         "JSON Value: 1.5 Type: Number is not of expected type: int32"),
        ("POST", PREDICT, '{"inputs": {"text": ["a"], "k": 1}}', 400,
         "input k must have shape (None,), got ()"),
        ("POST", "/v1/models/numbers:predict", '{"instances": [101]}', 400,
         "assertion failed"),
        ("POST", PREDICT, BOLT[:-1] + ', "signature_name": "x"}', 400,
         'Serving signature name: "x" not found in signature def'),
        ("POST", PREDICT,
         BOLT[:-1] + ', "signature_name": "__saved_model_init_op"}', 400,
         "Failed to get input map for signature: __saved_model_init_op"),
        ("GET", "/other", "", 404, "Not Found"),
    ],
)  # fmt: skip
def test_errors(send, method, path, body, status, message):
    code, reply = send(method, path, body)
    assert (code, list(reply)) == (status, ["error"])
    assert message in reply["error"]


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("query_encoder", '{{"instances": [{}]}}'),
        ("query_encoder", '{{"inputs": [{}]}}'),
        ("query_encoder", '{{"inputs": {{"text": [{}]}}}}'),
        ("retriever", '{{"inputs": {{"text": ["a"], "k": [{}]}}}}'),
    ],
)
def test_too_many_rows_are_refused_before_they_are_converted(
    server, model, form
):
    """16 MB of empty texts; all of them once became arrays first."""
    count = (16 << 20) // 4
    body = form.format('"", ' * (count - 1) + '""').encode()
    api = RestApi(server.models)
    start = time.perf_counter()
    reply = api.answer("POST", f"/v1/models/{model}:predict", body)
    seconds = time.perf_counter() - start
    assert reply.status == 400
    assert f"Task size {count} is larger than maximum" in reply.body.decode()
    assert seconds < 1


def test_every_code_of_grpc_has_one_of_http():
    import grpc

    assert HTTP_CODES.keys() == {code.name for code in grpc.StatusCode}


def test_an_error_of_the_server_itself(server, monkeypatch, caplog):
    models = server.models
    monkeypatch.setattr(models, "find", lambda _: tf.no_such_thing)
    reply = RestApi(models).answer("POST", PREDICT, BOLT.encode())
    assert reply == (500, b'{"error": "internal error"}')
    assert "no_such_thing" in caplog.text

"""TF Serving's REST API: the same strings, codes and messages."""

import json
import time

import grpc
import pytest
import tensorflow as tf

from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.rest_api import HTTP_CODES, RestApi
from tests.serving.tiny_models import save_encoder

PREDICT = "/v1/models/retriever:predict"
BOLT = '{"inputs": {"text": ["bolt"], "k": [1]}}'
ONE, HALF = pytest.approx(1), pytest.approx(2**-0.5)
FOUND = {"outputs": {"ids": [["bolt"]], "scores": [[ONE]]}}


@pytest.mark.parametrize(("path", "body", "expected"), [
    ("models/retriever", BOLT, FOUND),
    # Case, percent-encoding and a query in the path are as in TF Serving.
    ("MODELS/%72etriever:predict?x=1", BOLT, FOUND),
    ("models/retriever", '{"instances": [{"text": "bolt", "k": 1}]}',
     {"predictions": [{"ids": ["bolt"], "scores": [ONE]}]}),
    ("models/numbers", '{"signature_name": "double", "instances": [0.1, 2]}',
     {"predictions": [0.2, 4.0]}),
    # The vectors are [words + version, bytes], less their length.
    ("models/query_encoder", '{"inputs": ["a b"]}',
     {"outputs": [[pytest.approx(0.8), pytest.approx(0.6)]]}),
    ("models/query_encoder/versions/1", '{"inputs": ["a b"]}',
     {"outputs": [[HALF, HALF]]}),
])  # fmt: skip
def test_predict(send, path, body, expected):
    path = f"/v1/{path}" if ":" in path else f"/v1/{path}:predict"
    assert send("POST", path, body) == (200, expected)


def test_labels(tmp_path):
    for offset in (1.0, 2.0):
        save_encoder(tmp_path / "query_encoder", offset)
    (tmp_path / "models.config").write_text(
        'model_config_list { config { name: "query_encoder" '
        'base_path: "/" model_platform: "tensorflow" '
        "model_version_policy { all {} } "
        'version_labels { key: "old" value: 1 } } }'
    )
    api = RestApi(ModelRegistry(tmp_path))
    path, body = "/v1/models/query_encoder/labels", b'{"instances": ["a b"]}'
    reply = api.answer("POST", f"{path}/old:predict", body)
    assert json.loads(reply.body) == {"predictions": [[HALF, HALF]]}
    assert reply.version == "1"
    wrong = api.answer("POST", f"{path}/new:predict", body)
    assert wrong.status == 400
    assert b"Unrecognized servable version label: new" in wrong.body
    assert api.answer("GET", f"{path}/old").status == 200


def test_status_and_metadata(send):
    path = "/v1/models/query_encoder"
    status = {"error_code": "OK", "error_message": ""}
    versions = [
        {"version": version, "state": "AVAILABLE", "status": status}
        for version in "21"
    ]
    code, reply = send("GET", path)
    assert (code, reply["model_version_status"]) == (200, versions)
    of_one = {"model_version_status": versions[1:]}
    assert send("GET", f"{path}/versions/1") == (200, of_one)
    code, metadata = send("GET", f"{path}/metadata")
    spec = {"name": "query_encoder", "signature_name": "", "version": "2"}
    assert (code, metadata["model_spec"]) == (200, spec)
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    shape = {"dim": [{"name": "", "size": "-1"}], "unknown_rank": False}
    assert signatures["serving_default"]["inputs"]["text"] == {
        "dtype": "DT_STRING", "name": "serving_default_text:0",
        "tensor_shape": shape,
    }  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), [
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
    ("POST", PREDICT, BOLT[:-1] + ', "signature_name": 1}', 400,
     "'signature_name' key must be a string value"),
    ("POST", PREDICT,
     BOLT[:-1] + ', "signature_name": "__saved_model_init_op"}', 400,
     "Failed to get input map for signature: __saved_model_init_op"),
    ("GET", "/other", "", 404, "Not Found"),
])  # fmt: skip
def test_errors(send, method, path, body, status, message):
    code, reply = send(method, path, body)
    assert code == status
    assert message in reply["error"]
    is_tf_serving = path.startswith("/v1/models/")
    assert list(reply) == ["error", "detail"][: 1 if is_tf_serving else 2]


@pytest.mark.parametrize(("model", "form"), [
    ("query_encoder", '{{"instances": [{}]}}'),
    ("query_encoder", '{{"inputs": [{}]}}'),
    ("query_encoder", '{{"inputs": {{"text": [{}]}}}}'),
    ("retriever", '{{"inputs": {{"text": ["a"], "k": [{}]}}}}'),
])  # fmt: skip
def test_too_many_rows_are_refused_before_they_are_converted(
    server, model, form
):
    """16 MB of empty texts; all of them once became arrays first."""
    count = (16 << 20) // 4
    body = form.format('"", ' * (count - 1) + '""').encode()
    api = RestApi(server.models)
    start = time.thread_time()  # does not count the work of others
    reply = api.answer("POST", f"/v1/models/{model}:predict", body)
    assert time.thread_time() - start < 1
    assert reply.status == 400
    assert f"Task size {count} is larger than maximum" in reply.body.decode()


def test_every_code_of_grpc_has_one_of_http():
    assert HTTP_CODES.keys() == {code.name for code in grpc.StatusCode}


def test_an_error_of_the_server_itself(server, monkeypatch, caplog):
    models = server.models
    monkeypatch.setattr(models, "find", lambda _: tf.no_such_thing)
    reply = RestApi(models).answer("POST", PREDICT, BOLT.encode())
    assert reply == (500, b'{"error": "internal error"}', "")
    assert "no_such_thing" in caplog.text

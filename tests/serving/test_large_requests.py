"""The largest requests of clients, in a bounded memory; and long jobs."""

import gzip
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest
import tensorflow as tf

from keras_lstm_dssm.serving import PredictionServer
from tests.serving.tiny_models import encode, save_encoder, save_function

PEAK = Path("/proc/self/clear_refs")
LETTERS = 15 << 20
"""Letters of a request, nearly the 16 MiB that are allowed once unpacked."""


def peak_mb() -> float:
    """Returns the most memory that this process has had since a reset."""
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status)
    return int(kilobytes) / 1024


def wide(text: tf.Tensor) -> dict[str, tf.Tensor]:
    """Takes 12 bytes of memory for each letter."""
    letters = tf.strings.unicode_decode(text, "UTF-8").to_tensor()
    squares = tf.square(tf.cast(letters, tf.float32))
    return {"embedding": tf.reduce_mean(squares, axis=1, keepdims=True)}


@pytest.fixture(scope="module")
def wide_server(tmp_path_factory) -> Iterator[PredictionServer]:
    models = tmp_path_factory.mktemp("wide")
    for name in ("query_encoder", "document_encoder"):
        save_function(models / name / "1", wide, text="string")
    with PredictionServer(models, port=0, http_port=0) as server:
        yield server


@pytest.mark.skipif(not PEAK.exists(), reason="Linux tells the peak")
@pytest.mark.parametrize(("path", "key", "count"), [
    ("/v1/embeddings", "input", 2048), ("/v2/rerank", "documents", 1000),
])  # fmt: skip
def test_a_packed_request_of_the_largest_size(wide_server, path, key, count):
    """Its texts are computed in parts: at once they take 140 to 160 MB."""

    def answered(letters: int) -> list:
        texts = [f"{row:5}" + "a" * letters for row in range(count)]
        asked = {"model": "query_encoder", "query": "a", key: texts}
        request = urllib.request.Request(
            f"{wide_server.http_address}{path}",
            gzip.compress(json.dumps(asked).encode()),
            {"content-type": "application/json", "content-encoding": "gzip"},
        )
        with urllib.request.urlopen(request) as reply:
            found = json.load(reply)
        return found.get("data") or found["results"]

    assert len(answered(1)) == count  # prepares the graphs
    PEAK.write_text("5")
    before = peak_mb()
    assert len(answered(LETTERS // count - 9)) == count
    assert peak_mb() - before < 110


@pytest.mark.parametrize("kept", [1, 2])
def test_a_job_keeps_the_version_that_it_began_with(tmp_path, kept):
    """Or ends with an error, if the server keeps one version only."""
    texts = ["ab cd", "bolt"]
    save_encoder(tmp_path / "query_encoder", 1.0)
    with (
        PredictionServer(
            tmp_path, port=0, http_port=0, poll_seconds=0, versions=kept
        ) as server,
        openai.OpenAI(
            base_url=f"{server.http_address}/v1", api_key="none", max_retries=0
        ) as client,
    ):
        name = "query_encoder"
        for request in range(4):
            if request == 2:
                save_encoder(tmp_path / "query_encoder", 2.0)
                server.poll()
                if kept == 1:
                    with pytest.raises(
                        openai.NotFoundError, match="encoder, 1"
                    ):
                        client.embeddings.create(model=name, input=texts)
                    break
            reply = client.embeddings.create(model=name, input=texts)
            name = reply.model
            assert name == "query_encoder@1"
            found = np.array([each.embedding for each in reply.data])
            expected = encode(texts, 1.0)["embedding"].numpy()
            np.testing.assert_allclose(found, expected, atol=1e-6)
        newest = client.embeddings.create(model="query_encoder", input=texts)
        assert newest.model == "query_encoder@2"

"""What a request may cost, and what a loaded model does, in memory."""

import json
import resource
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.export import (
    Documents,
    export_models,
    export_portable,
)
from keras_lstm_dssm.export.bulk.documents import DocumentRows
from keras_lstm_dssm.export.graphs import request_limits
from keras_lstm_dssm.export.graphs.request_limits import refusal
from keras_lstm_dssm.export.graphs.retriever import (
    DocumentTags,
    RetrieverModule,
)
from keras_lstm_dssm.export.graphs.saved_module import predict_signatures
from keras_lstm_dssm.export.publish.server_files import FIRST_MB, memory_bytes
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.settings.hybrid import HybridSettings
from lstm_dssm_client import Client, LocalModel, ServingError, signatures
from tests.export.agreement import CppError, loaded, run_in_cpp
from tests.export.graphs import kinds

UNEQUAL = "Batching Run() input tensors must have equal 0th-dimension size"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A hybrid retriever of 1,500 titles that share two words."""
    models = tmp_path_factory.mktemp("hybrid") / "models"
    titles = [f"hex bolt {number}" for number in range(1500)]
    documents = Documents([str(row) for row in range(1500)], titles)
    export_models(kinds.hybrid_model(), models, documents, hybrid=kinds.HYBRID)
    return models


@pytest.mark.parametrize(("kind", "names"), [
    ("scorer", ["serving_default"]),
    ("keyvec", ["keys"]),
    ("retriever", ["filtered", "serving_default"]),
    ("", ["explained", "serving_default"]),
])  # fmt: skip
def test_unequal_rows_are_refused_with_the_line_of_tf_serving(
    kind, names, exported, folder
):
    """With batching TF Serving refuses them by itself."""
    version = (
        exported(kind).cases[0].version if kind else folder / "retriever/1"
    )
    values = {"k": [1, 1], "n": [1, 1], "tags": ["", ""]}
    several = {
        name: signature
        for name, signature in predict_signatures(version).items()
        if len(signature.inputs) > 1
    }
    assert sorted(several) == names
    for name, signature in several.items():
        for short in signature.inputs:
            inputs = {
                alias: tf.constant(values.get(alias, ["bolt", "hex"]))
                for alias in signature.inputs
            }
            inputs[short] = inputs[short][:1]
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                loaded(version).signatures[name](**inputs)
            assert refusal(caught.value.message) == UNEQUAL


def explained(text: list[str], k: list[int]) -> PredictRequest:
    return kinds.request("explained", text=text, k=k, tags=[""] * len(text))


def test_cpp_refuses_with_the_same_code_and_line(folder):
    """The code is 3, INVALID_ARGUMENT."""
    words = " ".join(["bolt"] * 100)
    for refused, line in (
        (explained(["a", "b", "c"], [1, 1]), UNEQUAL),
        (
            explained([words] * 96, [1000] * 96),
            "found 4790400 as the sum of k times the bytes of each text,"
            " expected at most 4194304: send fewer rows, shorter texts, or a"
            " smaller k",
        ),
        (
            kinds.request(text=["a"] * 1049, k=[1000] * 1049),
            "found 1049 rows with k = 1000, which are 1049000 results, expected"
            " at most 1048576: send fewer rows, or a smaller k",
        ),
    ):
        with pytest.raises(CppError) as caught:
            run_in_cpp({folder / "retriever/1": [refused]})
        prefix = f"TF_SessionRun: code 3: assertion failed: [{line}]"
        assert str(caught.value).startswith(prefix)


def test_a_reply_with_too_many_bytes_is_refused():
    """Of ids and titles of 1, 2, ... bytes, the longest come first."""
    ids = ["a" * size for size in (1, 3, 2)]
    rows = DocumentRows(ids, np.eye(3, dtype=np.float32), (), ["", "xy", "z"])
    module = object.__new__(RetrieverModule)
    tf.Module.__init__(module)
    module._set_vectors(rows, "float32", max_k=2)
    assert module.longest.numpy().tolist() == [0, 5, 8]
    texts = tf.constant(["a", "b"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_limits, "MAX_REPLY_BYTES", 10)
        module._admitted(texts, tf.constant([1, 1]), 2)
        module._admitted(texts[:1], tf.constant([9]), 2)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            module._admitted(texts, tf.constant([1, 2]), 2)
    assert (
        "found 2 rows with k = 2, whose ids and titles may have 16 bytes,"
        " expected at most 10: send fewer rows, or a smaller k"
    ) in caught.value.message


def test_servers_refuse_with_the_line_alone(folder):
    """Over gRPC and REST; the client divides what would be refused."""
    text = " ".join(["bolt"] * 100)
    line = (
        "found 4790400 as the sum of k times the bytes of each text,"
        " expected at most 4194304: send fewer rows, shorter texts, or a"
        " smaller k"
    )
    inputs = {"text": [text] * 96, "k": [1000] * 96, "tags": [""] * 96}
    with (
        PredictionServer(folder, port=0, http_port=0) as server,
        Client(server.address, timeout=60) as client,
    ):
        arrays = {
            "text": np.array([text.encode()] * 96, object),
            "k": np.full(96, 1000, np.int32),
            "tags": np.full(96, b"", object),
        }
        with pytest.raises(ServingError) as caught:
            client.predict("retriever", arrays, signature="explained")
        assert caught.value.code == grpc.StatusCode.INVALID_ARGUMENT
        assert caught.value.details == line
        for sent, expected in (
            (inputs, line),
            ({"text": ["a", "b"], "k": [1], "tags": [""]}, UNEQUAL),
        ):  # fmt: skip
            body = {"signature_name": "explained", "inputs": sent}
            request = urllib.request.Request(
                f"http://{server.http_address.removeprefix('http://')}"
                "/v1/models/retriever:predict",
                json.dumps(body).encode(),
            )
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.code == 400
            assert json.load(refused.value) == {"error": expected}
        hits = client.explain([text] * 96, k=1000)
    assert [len(of_query) for of_query in hits] == [100] * 96
    assert hits[95][0].words["bm25"].keys() == {"bolt"}


def test_a_client_sends_few_long_texts_to_be_explained():
    """Half of what the graph allows, as batches are padded."""
    texts = ["a" * 100, "b" * 4000, "c" * 30_000, *["d" * 10] * 600]
    parts = [*signatures.chunked_to_explain(texts, 1000, b"")]
    # 262 rows of 1,000 hits are the most that a reply of any search has.
    sizes = [len(part["text"]) for part in parts]
    assert sizes == [2, 1, 262 - 3, 262, 603 - 2 * 262]
    assert {*parts[0]["k"].tolist()} == {1000}
    assert [*map(len, (part["tags"] for part in parts))] == sizes
    parts = [*signatures.chunked_to_explain(texts, 5, b"")]
    assert [len(part["text"]) for part in parts] == [512, 91]


def test_a_file_for_one_process_explains_as_many_as_a_server(tmp_path):
    titles = [f"bolt {number}" for number in range(130)]
    path = tmp_path / "shop.safetensors"
    documents = Documents(titles, titles)
    export_portable(None, path, documents, hybrid=HybridSettings(0, 0, 1))
    model = LocalModel(path)
    assert len(model.search(["bolt"], k=120)[0]) == 120
    assert len(model.explain(["bolt"], k=120)[0]) == 100


RUN = """
import json, resource, sys
import numpy as np
import tensorflow_text
from keras_lstm_dssm.serving.saved_models import SavedGraph, SavedSignature
signature = SavedSignature(SavedGraph(sys.argv[1]), sys.argv[2])
rows, k, words = map(int, sys.argv[3:])
none = {name: np.full(rows, b"", object) for name in signature.inputs[1:-1]}
one = {"text": np.array([b"bolt"], object), "k": np.array([1], np.int32)}
signature(**one, **{name: values[:1] for name, values in none.items()})
# Pages that this process shares with the one that it was forked from count.
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
text = " ".join(f"bolt w{word}" for word in range(words // 2)).encode()
found = signature(
    text=np.array([text] * rows, object), k=np.full(rows, k, np.int32), **none
)
print(found["ids"].shape[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(("signature", "rows", "width"), [
    ("explained", 70, 100), ("serving_default", 256, 1000)
])  # fmt: skip
def test_peak_memory_of_a_large_request(
    signature, rows, width, folder, fresh_process
):
    """Before, they took 0.7 GB, for ten times as many hits, and 0.6 GB."""
    found, kilobytes = fresh_process(
        RUN, folder / "retriever/1", signature, rows, 1000, 128
    )
    assert int(found) == width
    assert int(kilobytes) < 200_000


def test_many_tags_in_a_query_take_no_memory_each():
    """They were compared with all tags: 10^9 comparisons here."""
    tags = DocumentTags([[f"tag:{number}"] for number in range(5000)])
    before = peak_kilobytes()
    asked = ",".join(["tag:7", " tag:4999 "] * 100_000)
    mask = tags.mask(tf.constant([asked, "x", ""]))
    found = mask(tf.constant(0), tf.constant(5000)).numpy()
    assert np.flatnonzero(found[0]).tolist() == [7, 4999]
    assert not found[1].any() and found[2].all()
    assert peak_kilobytes() - before < 200_000


def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


GROWTH = """
import ctypes, gc, os, sys
from pathlib import Path
import tensorflow_text
from keras_lstm_dssm.serving.servable import Servable
def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
kept = []
for folder in map(Path, sys.argv[1:]):
    before = resident()
    kept.append(Servable(folder.parent.name, 1, folder))
    kept[-1].warm_up(folder)
    print(resident() - before)
"""


def test_memory_in_the_readme_is_that_of_a_process(
    folder, exported: Callable[[str], kinds.Exported], fresh_process
):
    """To 0.5 and 1.5 times of it; the first model takes `FIRST_MB` more."""
    versions = [
        folder / "retriever/1",
        exported("scorer").cases[-1].version,
        folder / "document_encoder/1",
    ]
    grown = [int(line) for line in fresh_process(GROWTH, *versions)]
    expected = [memory_bytes(version) for version in versions]
    expected[0] += FIRST_MB * 1_000_000
    ratios = [g / e for g, e in zip(grown, expected, strict=True)]
    assert 0.5 < min(ratios) and max(ratios) < 1.5, ratios

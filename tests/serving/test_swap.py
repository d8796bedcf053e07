"""New versions under a stream of requests: none fails, none is mixed up."""

import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.export.publish.versions import publish
from keras_lstm_dssm.serving import Client, PredictionServer
from keras_lstm_dssm.serving.model_registry import ModelRegistry, ModelVersions
from keras_lstm_dssm.serving.rest_api import RestApi
from keras_lstm_dssm.serving.servable import Servable
from tests.serving.tiny_models import encode, save_encoder
from tests.serving.waiting import wait_until


@pytest.fixture
def models(tiny_models: Path, tmp_path) -> Path:
    return shutil.copytree(
        tiny_models / "query_encoder",
        tmp_path / "query_encoder",
        ignore=shutil.ignore_patterns("2"),
    ).parent


def test_swaps_under_a_stream_of_requests(tiny_models, models):
    # Odd versions add 1, even ones 2: a vector shows which version computed it.
    even, odd = (tiny_models / "query_encoder" / n for n in ("2", "1"))
    want = {0: np.array([4.0, 5.0]), 1: np.array([3.0, 5.0])}
    stop = threading.Event()
    seen: dict[int, list[int]] = {caller: [] for caller in range(4)}
    faults: list[object] = []

    def call(client: Client, caller: int) -> None:
        text = np.array([b"ab cd"], object)
        while not stop.is_set():
            try:
                prediction = client.predict("query_encoder", {"text": text})
            except Exception as error:
                faults.append(error)
                return
            (vector,) = prediction.outputs["embedding"]
            expected = want[prediction.version % 2]
            if not np.allclose(vector, expected / np.linalg.norm(expected)):
                faults.append((prediction.version, vector))
            seen[caller].append(prediction.version)

    with (
        ThreadPoolExecutor(4) as pool,
        PredictionServer(models, port=0, poll_seconds=0.02) as server,
        Client(server.address, timeout=10) as client,
    ):
        callers = pool.map(partial(call, client), seen)
        wait_until(lambda: all(1 in got for got in seen.values()) or faults)
        for version in (2, 3, 4):
            source = odd if version % 2 else even
            publish(models / "query_encoder", partial(shutil.copytree, source))
            wait_until(lambda v=version: all(v in got for got in seen.values()))
        stop.set()
        assert [*callers] == [None] * 4

        def states() -> list[str]:
            return [s.state for s in client.status("query_encoder").values()]

        wait_until(lambda: states() == ["AVAILABLE", "END", "END", "END"])
    assert faults == []
    for versions in seen.values():
        assert set(versions) == {1, 2, 3, 4}
        assert versions == sorted(versions)


OFFSETS = {"query_encoder": (1.0, 8.0), "document_encoder": (5.0, 2.0)}
"""Model -> constants by which the encoders of two trainings differ."""
RERANK = {"query": "ab cd", "documents": ["a b c d e", "abcdefgh", "ab"]}


def expected_scores(run: int) -> np.ndarray:
    """Computes the cosines of one training, without a server."""
    texts = [RERANK["query"]], RERANK["documents"]
    query, documents = (
        encode(tf.constant(text), offsets[run])["embedding"].numpy()
        for text, offsets in zip(texts, OFFSETS.values(), strict=True)
    )
    return documents @ query[0]


def test_both_encoders_change_together(tmp_path, monkeypatch):
    """While a model loads slowly, each request has one training's vectors.

    The models are an export's: `models.config` names the versions of all.
    """

    def slowly(servable: Servable, folder: Path) -> int:
        time.sleep(0.15)
        return 0

    def publish_run(run: int, version: int) -> None:
        entries = ""
        for name, offsets in OFFSETS.items():
            save_encoder(tmp_path / name, offsets[run])
            entries += (
                f'config {{ name: "{name}" model_version_policy '
                f"{{ specific {{ versions: {version} }} }} }}"
            )
        config = f"model_config_list {{ {entries} }}"
        (tmp_path / "new").write_text(config)
        (tmp_path / "new").rename(tmp_path / "models.config")

    publish_run(0, 1)
    registry = ModelRegistry(tmp_path)
    api = RestApi(registry)
    body = json.dumps(RERANK).encode()
    wanted = [expected_scores(run) for run in (0, 1)]
    assert np.abs(wanted[0] - wanted[1]).min() > 0.01
    stop, seen, faults = threading.Event(), [], []

    def call() -> None:
        while not stop.is_set():
            reply = api.answer("POST", "/v1/rerank", body)
            found = json.loads(reply.body)
            if reply.status != 200:
                faults.append(found)
                return
            scores = np.zeros(3)
            for result in found["results"]:
                scores[result["index"]] = result["relevance_score"]
            near = [np.abs(scores - want).max() < 1e-5 for want in wanted]
            if sum(near) != 1:
                faults.append(scores)
            seen.append(near.index(True))

    monkeypatch.setattr(Servable, "warm_up", slowly)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(call) for _ in range(2)]
        for swap in range(1, 4):
            publish_run(swap % 2, swap + 1)
            registry.refresh()
            count = len(seen)
            wait_until(lambda n=count: len(seen) > n + 4 or faults)
        stop.set()
        assert [call.result() for call in calls] == [None, None]
    assert faults == []
    changes = sum(a != b for a, b in pairwise(seen))
    assert 3 <= changes <= 9 and seen[-1] == 1  # two threads write the list
    for name in OFFSETS:
        assert registry.versions(name) == [4]


def test_new_versions_wait_for_those_of_all_models(tmp_path, monkeypatch):
    for name in OFFSETS:
        save_encoder(tmp_path / name, 1.0)
    registry = ModelRegistry(tmp_path)
    states = []

    def note_states(*folders: Path) -> None:
        # Servers of other tests may load models at the same time.
        if any(tmp_path in folder.parents for folder in folders):
            states.append([registry.versions(name) for name in OFFSETS])

    def watch(servable: Servable, folder: Path) -> int:
        note_states(folder)
        return 0

    for name in OFFSETS:
        save_encoder(tmp_path / name, 2.0)
    monkeypatch.setattr(Servable, "warm_up", watch)
    unload = ModelVersions.unload

    def unloading(model: ModelVersions, expected: dict[int, Path]) -> bool:
        note_states(*expected.values())
        return unload(model, expected)

    monkeypatch.setattr(ModelVersions, "unload", unloading)
    registry.refresh()
    old, both = [[1], [1]], [[1, 2], [1, 2]]
    assert states == [old, old, both, both]
    assert [registry.versions(name) for name in OFFSETS] == [[2], [2]]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("keras_lstm_dssm") and record.levelno >= 30
    ]


def test_a_broken_version_is_told_while_the_old_one_serves(models, caplog):
    with (
        PredictionServer(models, port=0, poll_seconds=0.02) as server,
        Client(server.address, timeout=10) as client,
    ):
        (models / "query_encoder" / "2").mkdir()
        wait_until(lambda: 2 in client.status("query_encoder"))
        wait_until(lambda: client.status("query_encoder")[2].state == "END")
        status = client.status("query_encoder")
        assert status[1] == ("AVAILABLE", "OK", "")
        assert status[2].code == "NOT_FOUND"
        assert "query_encoder/2/saved_model.pb" in status[2].message
        assert client.encode(["ab cd"]).shape == (1, 2)
        time.sleep(0.1)  # some polls
    assert warnings(caplog) == [
        f"{status[2].message}; other versions are still served"
    ]


def test_polling_goes_on_after_a_defect_and_a_wrong_config(
    models, caplog, monkeypatch
):
    """Each is told once."""

    def fail() -> None:
        raise RuntimeError("an unexpected error")

    with PredictionServer(models, port=0, poll_seconds=0.02) as server:
        with monkeypatch.context() as patch:
            patch.setattr(server.models, "refresh", fail)
            wait_until(lambda: warnings(caplog))
            time.sleep(0.1)
        (defect,) = warnings(caplog)
        assert defect == "an unexpected error; serving as before"
        assert any(r.exc_info for r in caplog.records)  # with its trace-back
        caplog.clear()
        # Renamed into its place: a poll could see a file that is half-written.
        (models / "wrong").write_text("no config")
        (models / "wrong").rename(models / "models.config")
        wait_until(lambda: warnings(caplog))
        time.sleep(0.1)
        (warning,) = warnings(caplog)
        assert "models.config:1:" in warning
        assert warning.endswith("; serving as before")
        assert server.models.versions("query_encoder") == [1]
        (models / "models.config").unlink()
        shutil.copytree(
            models / "query_encoder" / "1", models / "query_encoder" / "2"
        )
        wait_until(lambda: server.models.versions("query_encoder") == [2])

"""Versions that load, that break and that are dropped, by their states."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow_serving.apis.get_model_status_pb2 import ModelVersionStatus
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_lstm_dssm.serving.model_registry import ServedModel
from keras_lstm_dssm.serving.servable import Servable
from tests.serving.wire import predict_request

State = ModelVersionStatus.State.Name


@pytest.fixture
def versions(tiny_models: Path, tmp_path: Path) -> dict[int, Path]:
    return {
        version: shutil.copytree(
            tiny_models / "query_encoder" / str(version),
            tmp_path / "encoder" / str(version),
        )
        for version in (1, 2)
    }


def test_only_versions_as_they_were_exported_are_verified(
    versions: dict[int, Path],
) -> None:
    damaged = versions[2] / "variables" / "variables.index"
    intact = damaged.read_bytes()
    damaged.write_bytes(intact + b"x")
    model = ServedModel("encoder", verify=True)
    model.update(versions)
    assert names(model) == {2: "END", 1: "AVAILABLE"}
    state = model.states()[2]
    assert state.code == 15  # DATA_LOSS
    assert "variables.index: found another content than MANIF" in state.message
    damaged.write_bytes(intact)
    model.update(versions)
    assert names(model) == {2: "AVAILABLE", 1: "AVAILABLE"}


def names(model: ServedModel) -> dict[int, str]:
    return {v: State(s.state) for v, s in model.states().items()}


WARM_UP = "assets.extra/tf_serving_warmup_requests"


def warm_up_with(folder: Path, *records: bytes) -> None:
    (folder / WARM_UP).parent.mkdir()
    with tf.io.TFRecordWriter(str(folder / WARM_UP)) as file:
        for record in records:
            file.write(record)


def log_of(**inputs: object) -> bytes:
    made = PredictionLog()
    made.predict_log.request.CopyFrom(predict_request("any name", **inputs))
    return made.SerializeToString()


def test_a_version_in_use_is_unloaded_after_its_last_request(
    versions: dict[int, Path],
) -> None:
    model = ServedModel("encoder")
    assert not model.update({1: versions[1]})
    running = model.available.versions[1]
    assert model.update({2: versions[2]})
    assert list(model.available.versions) == [2]
    assert names(model) == {2: "AVAILABLE", 1: "UNLOADING"}
    assert running.predict(predict_request("encoder", text=["a"])).outputs
    del running
    assert names(model) == {2: "AVAILABLE", 1: "END"}
    assert not model.errors()


def test_a_number_published_anew_while_the_old_one_runs(
    versions: dict[int, Path],
) -> None:
    model = ServedModel("encoder")
    model.update({1: versions[1]})
    running = model.available.versions[1]
    model.update({2: versions[2]})
    model.update({1: versions[1]})
    del running
    assert names(model) == {2: "END", 1: "AVAILABLE"}


def test_the_states_on_the_way(
    versions: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    warm_up = Servable.warm_up

    def watch(servable: Servable, folder: Path) -> int:
        seen.append((names(model), list(model.available.versions)))
        return warm_up(servable, folder)

    monkeypatch.setattr(Servable, "warm_up", watch)
    model = ServedModel("encoder")
    model.update(versions)
    assert seen == [
        ({2: "LOADING", 1: "START"}, []),
        ({2: "AVAILABLE", 1: "LOADING"}, [2]),
    ]


def test_warm_up_replays_every_request(versions: dict[int, Path]) -> None:
    warm_up_with(
        versions[1],
        log_of(text=["a"]),
        log_of(text=["a", "b"]),
        b"",  # of no kind: TF Serving passes over it, too
    )
    servable = Servable("encoder", 1, versions[1])
    assert servable.warm_up(versions[1]) == 3
    assert Servable("encoder", 2, versions[2]).warm_up(versions[2]) == 0


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def damaged_warm_up(folder: Path) -> None:
    warm_up_with(folder, log_of(text=["a"]))
    path = folder / WARM_UP
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (empty, tf.errors.NOT_FOUND, "2/saved_model.pb: not a SavedModel"),
        (
            lambda f: (f / "saved_model.pb").write_bytes(b"\xff\xff"),
            tf.errors.DATA_LOSS, "2/saved_model.pb: not a SavedModel",
        ),
        (
            lambda f: shutil.rmtree(f / "variables"),
            tf.errors.NOT_FOUND, "2: TensorFlow cannot load it",
        ),
        (
            lambda f: warm_up_with(f, log_of(text=["a"]), log_of(x=[1])),
            tf.errors.INVALID_ARGUMENT, "alias: text(feed name",
        ),
        (damaged_warm_up, tf.errors.DATA_LOSS, "is in TFRecord format."),
        (
            lambda f: warm_up_with(f, b"*\x00"),  # a session_run_log
            tf.errors.UNIMPLEMENTED, "Unsupported log_type",
        ),
        (
            lambda f: warm_up_with(f, b"\xff\xff"),
            tf.errors.INVALID_ARGUMENT, "Failed to parse warmup record from",
        ),
        (
            lambda f: warm_up_with(f, *[b""] * 1001),
            tf.errors.INVALID_ARGUMENT, "exceeds the maximum",
        ),
    ],
    ids=["empty", "garbage", "no variables", "failing", "damaged", "other",
         "unreadable", "long"],
)  # fmt: skip
def test_a_broken_version_and_its_repair(
    versions: dict[int, Path],
    damage: Callable[[Path], None],
    code: int,
    message: str,
) -> None:
    good = shutil.copytree(versions[2], versions[2].with_name("good"))
    damage(versions[2])
    model = ServedModel("encoder")
    model.update({1: versions[1]})
    for _ in range(2):  # the second time it is known already
        assert not model.update({2: versions[2]})
        assert list(model.available.versions) == [1]
        assert names(model) == {2: "END", 1: "AVAILABLE"}
        state = model.states()[2]
        assert state.code == code
        assert message in state.message
        assert "encoder/2" in state.message
        assert "\n" not in state.message
        assert model.errors() == [state.message]
    shutil.rmtree(versions[2])
    good.rename(versions[2])
    (versions[2] / "saved_model.pb").touch()
    assert model.update({2: versions[2]})
    assert names(model) == {2: "AVAILABLE", 1: "END"}
    assert model.errors() == []

"""Which models, versions and labels are served, by models.config."""

import os
import shutil
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis.get_model_status_pb2 import ModelVersionStatus
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.model_registry import ModelRegistry, ModelVersions
from keras_lstm_dssm.serving.servable import Servable, StatusError
from tests.serving.wire import predict_request


@pytest.fixture
def models(tiny_models: Path, tmp_path) -> Path:
    """Versions 1 and 2 of query_encoder, and retriever."""
    for name in ("query_encoder", "retriever"):
        shutil.copytree(tiny_models / name, tmp_path / name)
    return tmp_path


def write_config(models: Path, query_encoder: str, *others: str) -> None:
    listed = [f'name: "query_encoder" {query_encoder}', *others]
    entries = "".join(f"config {{ {model} }}" for model in listed)
    write(models, f"model_config_list {{ {entries} }}")


def write(models: Path, text: str = "model_config_list {}") -> None:
    (models / "models.config").write_text(text)


def configured(models: Path, query_encoder: str) -> ModelRegistry:
    write_config(models, query_encoder)
    return ModelRegistry(models)


def labelled(label: str, name: str = "query_encoder") -> ModelSpec:
    return ModelSpec(name=name, version_label=label)


@pytest.mark.parametrize(("policy", "want"), [
    ("", [2]),
    ("latest { num_versions: 2 }", [1, 2]),
    ("latest {}", [2]),
    ("all {}", [1, 2]),
    ("specific { versions: 1 versions: 7 }", [1]),
])  # fmt: skip
def test_version_policies(models, policy, want):
    registry = configured(models, f"model_version_policy {{ {policy} }}")
    assert registry.names() == ["query_encoder"]
    assert registry.versions("query_encoder") == want
    assert list(registry.states("query_encoder")) == want[::-1]


ALL = "model_version_policy { all {} }"


def label(name: str, version: int) -> str:
    return f'version_labels {{ key: "{name}" value: {version} }}'


def test_labels_move_while_it_serves(models):
    both = label("stable", 1) + label("canary", 2)
    registry = configured(models, ALL + both)
    assert registry.find(labelled("stable")).version == 1
    assert registry.find(labelled("canary")).version == 2
    write_config(models, ALL + label("stable", 2))
    registry.refresh()
    assert registry.find(labelled("stable")).version == 2
    with pytest.raises(StatusError, match="version label: canary") as caught:
        registry.find(labelled("canary"))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(StatusError, match="label: stable"):
        registry.find(labelled("stable", "another"))


def test_a_label_on_a_version_that_does_not_answer(models):
    message = (
        "assign label to version 1 of model query_encoder, which is not "
        "currently available"
    )
    with pytest.raises(InputError, match=message):
        configured(models, label("stable", 1))
    registry = configured(models, label("stable", 2))
    write_config(models, label("stable", 1))
    with pytest.raises(InputError, match=message):
        registry.refresh()
    assert registry.find(labelled("stable")).version == 2


def test_a_label_waits_for_its_version(models, monkeypatch):
    """A change of version and label at once is refused as a whole."""

    def config(versions: str, stable: int) -> str:
        policy = f"model_version_policy {{ specific {{ {versions} }} }}"
        return policy + label("stable", stable)

    one, both = "versions: 1", "versions: 1 versions: 2"
    registry = configured(models, config(one, 1))

    def serves() -> tuple[int, list[int]]:
        stable = registry.find(labelled("stable")).version
        return stable, registry.versions("query_encoder")

    write_config(models, config("versions: 2", 2), 'name: "retriever"')
    for _ in range(2):
        with pytest.raises(InputError, match="version 2 of model query_enc"):
            registry.refresh()
        assert serves() == (1, [1])
        assert registry.names() == ["query_encoder"]
    write_config(models, config(both, 1))
    registry.refresh()
    assert serves() == (1, [1, 2])
    seen = []
    drop = ModelVersions._unload

    def watched(model: ModelVersions, versions: set[int]) -> None:
        seen.append((versions, registry.find(labelled("stable")).version))
        drop(model, versions)

    monkeypatch.setattr(ModelVersions, "_unload", watched)
    write_config(models, config("versions: 2", 2))
    registry.refresh()
    assert serves() == (2, [2])
    assert seen == [({1}, 2)]


def test_a_label_whose_version_was_replaced(models):
    """Without a policy only the newest version is served."""
    shutil.move(models / "query_encoder" / "2", models / "2")
    registry = configured(models, label("stable", 1))
    shutil.move(models / "2", models / "query_encoder" / "2")
    registry.refresh()
    assert registry.versions("query_encoder") == [2]
    with pytest.raises(InputError, match="label to version 1 of model query_"):
        registry.refresh()
    with pytest.raises(StatusError, match=r"Specific\(query_encoder, 1\)"):
        registry.find(labelled("stable"))


def test_an_empty_list_unloads_all(models):
    registry = configured(models, ALL)
    write(models)
    registry.refresh()
    assert registry.versions("query_encoder") == []
    states = registry.states("query_encoder").values()
    assert {each.state for each in states} == {ModelVersionStatus.END}
    with pytest.raises(StatusError, match=r"Latest\(query_encoder\)") as caught:
        registry.find(ModelSpec(name="query_encoder"))
    assert caught.value.code is grpc.StatusCode.NOT_FOUND
    write_config(models, "")
    registry.refresh()
    assert registry.versions("query_encoder") == [2]


def test_an_empty_file_changes_nothing(models):
    """It may be in the midst of being written."""
    registry = configured(models, ALL)
    write(models, "")
    with pytest.raises(InputError, match="config: has no model_config_list"):
        registry.refresh()
    assert registry.names() == ["query_encoder"]
    assert registry.versions("query_encoder") == [1, 2]
    shutil.copytree(models / "query_encoder/2", models / "query_encoder/3")
    with pytest.raises(InputError, match="has no model_config_list"):
        registry.refresh()
    assert registry.versions("query_encoder") == [1, 2, 3]
    (models / "models.config").unlink()
    registry.refresh()
    assert registry.names() == ["query_encoder", "retriever"]


def test_only_models_that_are_wanted_are_unavailable(models, caplog):
    registry = ModelRegistry(models)
    assert registry.unavailable() == []
    write_config(models, "")
    registry.refresh()  # retriever was removed from the list on purpose
    assert registry.versions("retriever") == []
    assert registry.versions("query_encoder") == [2]
    assert registry.unavailable() == []
    write_config(models, "model_version_policy { specific { versions: 7 } }")
    for _ in range(2):
        registry.refresh()
    assert registry.unavailable() == ["query_encoder"]
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= 30]
    assert warnings == [
        f"{name}: no version is left to serve"
        for name in ("retriever", "query_encoder")
    ]
    write_config(models, "", 'name: "absent"')
    with pytest.raises(InputError, match="absent"):
        registry.refresh()
    assert registry.unavailable() == ["absent"]
    write(models)
    registry.refresh()
    assert registry.unavailable() == []
    write_config(models, "", 'name: "retriever"')
    registry.refresh()
    assert registry.versions("retriever") == [1]


def test_a_folder_whose_versions_are_broken_is_unavailable(models):
    registry = ModelRegistry(models)
    shutil.rmtree(models / "retriever" / "1")
    registry.refresh()
    assert registry.unavailable() == []
    (models / "retriever" / "2").mkdir()
    registry.refresh()
    assert registry.unavailable() == ["retriever"]


def test_a_folder_that_vanishes_serves_on(models):
    registry = ModelRegistry(models)
    shutil.rmtree(models / "retriever")
    registry.refresh()
    assert registry.versions("retriever") == [1]
    moved = models.rename(models.with_name("moved"))
    with pytest.raises(InputError, match="No such file or directory"):
        registry.refresh()
    assert registry.versions("query_encoder") == [2]
    moved.rename(models)


def test_the_last_version_removed_is_unloaded(models):
    registry = ModelRegistry(models)
    for name, versions in {"retriever": (1,), "query_encoder": (1, 2)}.items():
        for version in versions:
            shutil.rmtree(models / name / str(version))
        registry.refresh()
        assert registry.versions(name) == []
        (state,) = registry.states(name).values()
        assert state.state == ModelVersionStatus.END
        with pytest.raises(StatusError, match=rf"request: Latest\({name}\)"):
            registry.find(ModelSpec(name=name))


@pytest.mark.parametrize("configured", [True, False])
def test_a_folder_that_can_be_no_model(models, configured):
    """A negative number is no version here; a space is in no model's name."""
    if configured:
        write_config(models, "")
    registry = ModelRegistry(models)
    query_encoder = models / "query_encoder"
    shutil.copytree(query_encoder / "2", query_encoder / "-4")
    shutil.copytree(query_encoder, models / ".hidden")
    registry.refresh()
    assert registry.versions("query_encoder") == [2]
    shutil.copytree(query_encoder, models / "a model")
    shutil.copytree(query_encoder / "2", query_encoder / "3")
    if configured:
        registry.refresh()
    else:
        with pytest.raises(InputError, match="found the name 'a model'; a"):
            registry.refresh()
    assert registry.versions("query_encoder") == [3]
    assert "a model" not in registry.names()


@pytest.mark.parametrize(("config", "message"), [
    ('name: "retriever" } config { name: "retriever"', "listed twice"),
    ('name: "../retriever"', "lists ../retriever, which is not in this"),
    ("name: retriever", r"models.config:1:\d+ .*expected a ModelServer"),
    ('name: "retriever" '
     "model_version_policy { specific { versions: 9 } }",
     "retriever: none of the versions that models.config asks for"),
    (None, "models.config: lists no model; list"),
])  # fmt: skip
def test_a_wrong_config_at_the_start(models, config, message):
    write_config(models, "", config) if config else write(models)
    with pytest.raises(InputError, match=message):
        ModelRegistry(models)


State = ModelVersionStatus.State.Name


@pytest.fixture
def versions(tiny_models: Path, tmp_path) -> dict[int, Path]:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_models / "query_encoder", folder)
    return {version: folder / str(version) for version in (1, 2)}


def test_only_versions_as_they_were_exported_are_verified(versions):
    damaged = versions[2] / "variables" / "variables.index"
    intact = damaged.read_bytes()
    damaged.write_bytes(intact + b"x")
    model = ModelVersions("encoder", verify=True)
    update(model, versions)
    assert names(model) == {2: "END", 1: "AVAILABLE"}
    state = model.states()[2]
    assert state.code == 15  # DATA_LOSS
    assert "variables.index: found another content than MANIF" in state.message
    damaged.write_bytes(intact)
    update(model, versions)
    assert names(model) == {2: "AVAILABLE", 1: "AVAILABLE"}


def test_a_version_that_is_a_link_out_of_the_folder_is_not_verified(
    models, tiny_models
):
    registry = ModelRegistry(models, verify=True)
    link = models / "retriever" / "2"
    link.symlink_to(tiny_models / "retriever" / "1")
    registry.refresh()
    state = registry.states("retriever")[2]
    assert (State(state.state), state.code) == ("END", 15)  # DATA_LOSS
    assert "found a link to" in state.message
    assert registry.versions("retriever") == [1]
    # A link inside the folder is a version of the folder.
    link.unlink()
    link.symlink_to("1")
    (link / "saved_model.pb").touch()
    registry.refresh()
    assert registry.versions("retriever") == [2]


@pytest.mark.parametrize("restored", [False, True])
def test_a_file_that_is_swapped_while_it_loads_is_not_served(
    versions, monkeypatch, restored
):
    name = "saved_model.pb"
    warm_up = Servable.warm_up

    def swap(servable: Servable, folder: Path) -> int:
        intact = (folder / name).read_bytes()
        times = (folder / name).stat()
        (folder / name).write_bytes((versions[1] / name).read_bytes())
        if restored:
            (folder / name).write_bytes(intact)
        os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))
        return warm_up(servable, folder)

    monkeypatch.setattr(Servable, "warm_up", swap)
    model = ModelVersions("encoder", verify=True)
    update(model, {2: versions[2]})
    assert names(model) == {2: "END"}
    assert model.states()[2].code == 15
    assert "changed while it was loaded" in model.states()[2].message
    assert not model.available.versions


def update(model: ModelVersions, expected: dict[int, Path]) -> bool:
    """Brings one model up to date, in the three steps of the registry."""
    model.load(expected)
    model.serve()
    return model.unload(expected)


def names(model: ModelVersions) -> dict[int, str]:
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


def test_a_version_in_use_is_unloaded_after_its_last_request(versions):
    model = ModelVersions("encoder")
    assert not update(model, {1: versions[1]})
    running = model.available.versions[1]
    assert update(model, {2: versions[2]})
    assert list(model.available.versions) == [2]
    assert names(model) == {2: "AVAILABLE", 1: "UNLOADING"}
    assert running.predict(predict_request("encoder", text=["a"])).outputs
    del running
    assert names(model) == {2: "AVAILABLE", 1: "END"}
    assert not model.errors()


def test_a_number_published_anew_while_the_old_one_runs(versions):
    model = ModelVersions("encoder")
    update(model, {1: versions[1]})
    running = model.available.versions[1]
    update(model, {2: versions[2]})
    update(model, {1: versions[1]})
    del running
    assert names(model) == {2: "END", 1: "AVAILABLE"}


def test_the_states_on_the_way(versions, monkeypatch):
    seen = []
    warm_up = Servable.warm_up

    def watch(servable: Servable, folder: Path) -> int:
        seen.append((names(model), list(model.available.versions)))
        return warm_up(servable, folder)

    monkeypatch.setattr(Servable, "warm_up", watch)
    model = ModelVersions("encoder")
    update(model, versions)
    assert seen == [
        ({2: "LOADING", 1: "START"}, []),
        ({2: "LOADING", 1: "LOADING"}, []),
    ]


def test_warm_up_replays_every_request(versions):
    # The last is of no kind: TF Serving passes over it, too.
    logs = log_of(text=["a"]), log_of(text=["a", "b"]), b""
    warm_up_with(versions[1], *logs)
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


@pytest.mark.parametrize(("damage", "code", "message"), [
    (empty, tf.errors.NOT_FOUND, "2/saved_model.pb: not a SavedModel"),
    (lambda f: (f / "saved_model.pb").write_bytes(b"\xff\xff"),
     tf.errors.DATA_LOSS, "2/saved_model.pb: not a SavedModel"),
    (lambda f: shutil.rmtree(f / "variables"), tf.errors.NOT_FOUND,
     "2: TensorFlow cannot load it"),
    (lambda f: warm_up_with(f, log_of(text=["a"]), log_of(x=[1])),
     tf.errors.INVALID_ARGUMENT, "alias: text(feed name"),
    (damaged_warm_up, tf.errors.DATA_LOSS, "is in TFRecord format."),
    (lambda f: warm_up_with(f, b"*\x00"),  # a session_run_log
     tf.errors.UNIMPLEMENTED, "Unsupported log_type"),
    (lambda f: warm_up_with(f, b"\xff\xff"), tf.errors.INVALID_ARGUMENT,
     "Failed to parse warmup record from"),
    (lambda f: warm_up_with(f, *[b""] * 1001), tf.errors.INVALID_ARGUMENT,
     "exceeds the maximum"),
], ids=["empty", "garbage", "no variables", "failing", "damaged", "other",
     "unreadable", "long"])  # fmt: skip
def test_a_broken_version_and_its_repair(versions, damage, code, message):
    good = shutil.copytree(versions[2], versions[2].with_name("good"))
    damage(versions[2])
    model = ModelVersions("encoder")
    update(model, {1: versions[1]})
    for _ in range(2):  # the second time it is known already
        assert not update(model, {2: versions[2]})
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
    assert update(model, {2: versions[2]})
    assert names(model) == {2: "AVAILABLE", 1: "END"}
    assert model.errors() == []

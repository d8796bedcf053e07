"""Which models, versions and labels are served, by models.config."""

import shutil
from pathlib import Path

import grpc
import pytest
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.server.model_registry import Registry
from keras_lstm_dssm.serving.server.served_model import ServedModel
from keras_lstm_dssm.serving.server.signature_call import Fault


@pytest.fixture
def models(tiny_models: Path, tmp_path: Path) -> Path:
    """Versions 1 and 2 of query_encoder, and retriever."""
    for name in ("query_encoder", "retriever"):
        shutil.copytree(tiny_models / name, tmp_path / name)
    return tmp_path


def write_config(models: Path, query_encoder: str, *others: str) -> None:
    listed = [f'name: "query_encoder" {query_encoder}', *others]
    (models / "models.config").write_text(
        "model_config_list {"
        + "".join(f"config {{ {model} }}" for model in listed)
        + "}"
    )


def labelled(label: str, name: str = "query_encoder") -> ModelSpec:
    return ModelSpec(name=name, version_label=label)


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        ("", [2]),
        ("latest { num_versions: 2 }", [1, 2]),
        ("latest {}", [2]),
        ("all {}", [1, 2]),
        ("specific { versions: 1 versions: 7 }", [1]),
    ],
)
def test_version_policies(models: Path, policy: str, want: list[int]) -> None:
    write_config(models, f"model_version_policy {{ {policy} }}")
    registry = Registry(models)
    assert registry.names() == ["query_encoder"]
    assert registry.versions("query_encoder") == want
    assert list(registry.states("query_encoder")) == want[::-1]


ALL = "model_version_policy { all {} }"


def label(name: str, version: int) -> str:
    return f'version_labels {{ key: "{name}" value: {version} }}'


def test_labels_move_while_it_serves(models: Path) -> None:
    write_config(models, ALL + label("stable", 1) + label("canary", 2))
    registry = Registry(models)
    assert registry.find(labelled("stable")).version == 1
    assert registry.find(labelled("canary")).version == 2
    write_config(models, ALL + label("stable", 2))
    registry.refresh()
    assert registry.find(labelled("stable")).version == 2
    with pytest.raises(Fault, match="servable version label: canary") as caught:
        registry.find(labelled("canary"))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(Fault, match="label: stable"):
        registry.find(labelled("stable", "another"))


def test_a_label_on_a_version_that_does_not_answer(models: Path) -> None:
    message = (
        "assign label to version 1 of model query_encoder, which is not "
        "currently available"
    )
    write_config(models, label("stable", 1))
    with pytest.raises(InputError, match=message):
        Registry(models)
    write_config(models, label("stable", 2))
    registry = Registry(models)
    write_config(models, label("stable", 1))
    with pytest.raises(InputError, match=message):
        registry.refresh()
    assert registry.find(labelled("stable")).version == 2


def test_a_label_waits_for_its_version(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of version and label at once is refused as a whole."""

    def config(versions: str, stable: int) -> str:
        policy = f"model_version_policy {{ specific {{ {versions} }} }}"
        return policy + label("stable", stable)

    one, both = "versions: 1", "versions: 1 versions: 2"
    write_config(models, config(one, 1))
    registry = Registry(models)

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
    drop = ServedModel._drop

    def watched(model: ServedModel, versions: set[int]) -> None:
        seen.append((versions, registry.find(labelled("stable")).version))
        drop(model, versions)

    monkeypatch.setattr(ServedModel, "_drop", watched)
    write_config(models, config("versions: 2", 2))
    registry.refresh()
    assert serves() == (2, [2])
    assert seen == [({1}, 2)]


def test_a_label_whose_version_was_replaced(models: Path) -> None:
    """Without a policy the newest version alone is kept."""
    shutil.move(models / "query_encoder" / "2", models / "2")
    write_config(models, label("stable", 1))
    registry = Registry(models)
    shutil.move(models / "2", models / "query_encoder" / "2")
    registry.refresh()
    assert registry.versions("query_encoder") == [2]
    with pytest.raises(InputError, match="label to version 1 of model query_"):
        registry.refresh()
    with pytest.raises(Fault, match=r"Specific\(query_encoder, 1\)"):
        registry.find(labelled("stable"))


def test_an_empty_file_is_a_mistake(models: Path) -> None:
    """It may just be written anew; its policies must not be lost."""
    write_config(models, ALL)
    registry = Registry(models)
    for text in ("", "model_config_list {}"):
        (models / "models.config").write_text(text)
        with pytest.raises(InputError, match="models.config: lists no model"):
            registry.refresh()
        assert registry.names() == ["query_encoder"]
        assert registry.versions("query_encoder") == [1, 2]
    shutil.copytree(models / "query_encoder/2", models / "query_encoder/3")
    with pytest.raises(InputError, match="lists no model"):
        registry.refresh()
    assert registry.versions("query_encoder") == [1, 2, 3]
    (models / "models.config").unlink()
    registry.refresh()
    assert registry.names() == ["query_encoder", "retriever"]


def test_no_version_left_is_told(
    models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(models)
    write_config(models, "model_version_policy { specific { versions: 7 } }")
    for _ in range(2):
        registry.refresh()
    assert registry.versions("query_encoder") == []
    told = [r.getMessage() for r in caplog.records if r.levelno >= 30]
    assert told == [
        "query_encoder: no version is left to serve",
        "retriever: no version is left to serve",
    ]


def test_a_model_taken_off_the_list(models: Path) -> None:
    write_config(models, "", 'name: "retriever"')
    registry = Registry(models)
    assert registry.names() == ["query_encoder", "retriever"]
    write_config(models, "")
    registry.refresh()
    assert registry.versions("retriever") == []
    assert registry.versions("query_encoder") == [2]
    write_config(models, "", 'name: "retriever"')
    registry.refresh()
    assert registry.versions("retriever") == [1]


def test_a_folder_that_vanishes_serves_on(models: Path) -> None:
    registry = Registry(models)
    shutil.rmtree(models / "retriever")
    registry.refresh()
    assert registry.versions("retriever") == [1]
    for version in (models / "query_encoder").iterdir():
        shutil.rmtree(version)
    with pytest.raises(InputError, match="no model in this folder"):
        registry.refresh()
    assert registry.versions("query_encoder") == [2]


def test_an_emptied_folder_is_unloaded(models: Path) -> None:
    registry = Registry(models)
    shutil.rmtree(models / "retriever" / "1")
    registry.refresh()
    assert registry.versions("retriever") == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('name: "retriever" } config { name: "retriever"', "listed twice"),
        ('name: "../retriever"', "lists ../retriever, which is not in this"),
        ("name: retriever", r"models.config:1:\d+ .*expected a ModelServer"),
        (
            'name: "retriever" '
            "model_version_policy { specific { versions: 9 } }",
            "retriever: none of the versions that models.config asks for",
        ),
    ],
)
def test_a_wrong_config(models: Path, config: str, message: str) -> None:
    write_config(models, "", config)
    with pytest.raises(InputError, match=message):
        Registry(models)

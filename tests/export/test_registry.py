"""Which models, versions and labels are served, by models.config."""

import shutil
from pathlib import Path

import grpc
import pytest
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.fault import Fault
from keras_lstm_dssm.export.registry import Registry


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

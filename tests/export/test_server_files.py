import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.client import Client
from keras_lstm_dssm.export.prediction_service import PredictionServer
from keras_lstm_dssm.export.server_files import write_server_files


@pytest.fixture(scope="module")
def models(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("models")
    for name in ("query_encoder", "retriever"):
        shutil.copytree(tiny_models / name, copy / name)
    (copy / "notes").mkdir()
    write_server_files(copy)
    return copy


def test_models_config_is_what_the_server_reads(models: Path) -> None:
    config = text_format.Parse(
        (models / "models.config").read_text(), ModelServerConfig()
    )
    assert [
        (model.name, model.base_path, model.model_platform)
        for model in config.model_config_list.config
    ] == [
        ("query_encoder", "/models/query_encoder", "tensorflow"),
        ("retriever", "/models/retriever", "tensorflow"),
    ]


def test_another_root(models: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(models, tmp_path / "copy")
    write_server_files(copy, root="/srv/search")
    config = (copy / "models.config").read_text()
    assert 'base_path: "/srv/search/retriever"' in config
    assert "/models/" not in config
    assert "/srv/search/models.config" in (copy / "README.md").read_text()


def test_batching_config(models: Path) -> None:
    # The API package lacks BatchingParameters. Its fields, from TF Serving's
    # session_bundle_config.proto: wrapped integers, and plain repeated ones.
    wrapped = re.compile(
        r"(max_batch_size|batch_timeout_micros|max_enqueued_batches"
        r"|num_batch_threads) \{ value: ([1-9]\d*) \}"
    )
    plain = re.compile(r"(allowed_batch_sizes): ([1-9]\d*)")
    values: dict[str, list[int]] = {}
    for line in (models / "batching.config").read_text().splitlines():
        match = wrapped.fullmatch(line) or plain.fullmatch(line)
        assert match, line
        values.setdefault(match[1], []).append(int(match[2]))
    sizes = values.pop("allowed_batch_sizes")
    assert [len(once) for once in values.values()] == [1, 1, 1, 1]
    assert sizes == sorted(set(sizes))
    assert sizes[-1:] == values["max_batch_size"]


def blocks(readme: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)


def test_readme_shows_the_signatures(models: Path) -> None:
    readme = (models / "README.md").read_text()
    assert (
        "| `query_encoder` | `serving_default` | `text` string [batch] "
        "| `embedding` float32 [batch, 2] |"
    ) in readme
    assert (
        "| `retriever` | `serving_default` "
        "| `k` int32 [batch], `text` string [batch] "
        "| `ids` string [batch, any], `scores` float32 [batch, any] |"
    ) in readme


def test_readme_commands_name_the_files(models: Path) -> None:
    docker, plain, curls = blocks((models / "README.md").read_text(), "sh")
    command = shlex.split(docker.replace("\\\n", ""))
    assert command[:2] == ["docker", "run"]
    assert "tensorflow/serving:2.20.0" in command
    assert "--model_config_file=/models/models.config" in command
    assert "--batching_parameters_file=/models/batching.config" in command
    assert 'sed "s|/models/|$PWD/|" models.config' in plain
    words = shlex.split(curls.replace("\\\n", ""))
    asked = [
        (words[at - 2].rsplit("/", 1)[1], json.loads(words[at]))
        for at in (3, 7)
    ]
    assert asked == [
        ("query_encoder:predict", {"inputs": {"text": ["bolt"]}}),
        ("retriever:predict", {"inputs": {"text": ["bolt"], "k": [5]}}),
    ]


def test_readme_python_runs(models: Path) -> None:
    (code,) = blocks((models / "README.md").read_text(), "python")
    names: dict[str, object] = {}
    with PredictionServer(models, port=0) as server:
        exec(code.replace("127.0.0.1:8500", f"127.0.0.1:{server.port}"), names)
    assert names["vectors"].shape == (1, 2)
    assert [hit.id for hit in names["hits"][0]][0] == "bolt"
    assert isinstance(names["client"], Client)


def test_no_models(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model in this folder"):
        write_server_files(tmp_path)
    with pytest.raises(InputError, match="absent: no such folder"):
        write_server_files(tmp_path / "absent")

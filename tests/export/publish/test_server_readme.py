"""The README beside the models: what it says, and its commands."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from keras_lstm_dssm.export.publish.server_files import (
    memory_bytes,
    server_readme,
)
from keras_lstm_dssm.export.publish.versions import find_models
from keras_lstm_dssm.serving import Client, PredictionServer


@pytest.fixture(scope="module")
def models(tiny_models: Path, tmp_path_factory) -> Path:
    copy = tmp_path_factory.mktemp("models")
    for name in ("query_encoder", "retriever", "scorer"):
        shutil.copytree(tiny_models / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def readme(models: Path) -> str:
    return server_readme(find_models(models), "/models")


def blocks(readme: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)


def test_readme_shows_the_signatures(readme):
    assert (
        "| `query_encoder` | `serving_default` | `text` string [batch] "
        "| `embedding` float32 [batch, 2] |"
    ) in readme
    assert (
        "| `retriever` | `serving_default` "
        "| `k` int32 [batch], `text` string [batch] "
        "| `ids` string [batch, any], `scores` float32 [batch, any] |"
    ) in readme
    assert (
        "| `scorer` | `serving_default` "
        "| `document` string [batch], `query` string [batch] "
        "| `score` float32 [batch] |"
    ) in readme


def test_memory_is_that_of_the_files(tmp_path):
    module = tf.Module()
    module.numbers = tf.Variable(tf.zeros([300, 1000]))
    module.names = tf.Variable(tf.fill([1000], "ten bytes."))
    tf.saved_model.save(module, str(tmp_path))
    # Ten bytes and a header of 24, and in the file two bytes more.
    assert memory_bytes(tmp_path) == pytest.approx(1_235_000, rel=2e-3)
    assert memory_bytes(tmp_path / "variables") == 0


def test_readme_tells_memory_and_versions(readme):
    assert "| `query_encoder` | 2 | 0.1 MB |" in readme
    assert "| 2.20 | 2.20.0 | ICU 77 |" in readme
    assert "`max_batch_size` rows, 512 unless" in readme
    assert "The largest has 64 rows" in readme


def test_readme_of_a_model_of_others(tiny_models):
    """How to call it is not known, but its tensors are."""
    readme = server_readme({"numbers": tiny_models / "numbers"}, "/models")
    assert "| `numbers` | `double` | `x` float32 [batch] |" in readme
    assert "client.encode" not in readme and "curl" not in readme


def test_readme_commands_name_the_files(readme):
    docker, plain, curls = blocks(readme, "sh")
    command = shlex.split(docker.replace("\\\n", ""))
    assert command[:2] == ["docker", "run"]
    assert "tensorflow/serving:2.20.0" in command
    assert "--model_config_file=/models/models.config" in command
    assert "--batching_parameters_file=/models/batching.config" in command
    assert 'sed "s|/models/|$PWD/|" models.config' in plain
    words = shlex.split(curls.replace("\\\n", ""))
    asked = [
        (words[at - 2].rsplit("/", 1)[1], json.loads(words[at]))
        for at in (3, 7, 11)
    ]
    assert asked == [
        ("query_encoder:predict", {"inputs": {"text": ["bolt"]}}),
        ("retriever:predict", {"inputs": {"text": ["bolt"], "k": [5]}}),
        (
            "scorer:predict",
            {
                "inputs": {
                    "query": ["bolt", "bolt"],
                    "document": ["hex bolt", "wood glue"],
                }
            },
        ),
    ]


def test_readme_python_runs(models, readme):
    (code,) = blocks(readme, "python")
    names: dict[str, object] = {}
    with PredictionServer(models, port=0) as server:
        exec(code.replace("127.0.0.1:8500", f"127.0.0.1:{server.port}"), names)
    assert names["vectors"].shape == (1, 2)
    assert [hit.id for hit in names["hits"][0]][0] == "bolt"
    assert names["scores"].tolist() == [0, -1]  # by the texts' lengths
    assert isinstance(names["client"], Client)

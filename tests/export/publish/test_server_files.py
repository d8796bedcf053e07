"""Beside the models: models.config, batching.config and the README."""

import json
import re
import shlex
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.publish import server_files
from keras_lstm_dssm.export.publish.server_files import update_models_config
from keras_lstm_dssm.model_folders import (
    find_models,
    read_models_config,
    served_version,
)
from keras_lstm_dssm.serving import PredictionServer


@pytest.fixture(scope="module")
def models(tiny_models: Path, tmp_path_factory) -> Path:
    copy = tmp_path_factory.mktemp("models")
    for name in ("query_encoder", "retriever", "scorer"):
        shutil.copytree(tiny_models / name, copy / name)
    (copy / "notes").mkdir()
    server_files.write_server_files(copy, {"query_encoder": 2})
    return copy


def test_models_config_is_what_the_server_reads(models):
    """What an export has published is pinned; others are served newest."""
    text = (models / "models.config").read_text()
    config = text_format.Parse(text, ModelServerConfig())
    versions = {"query_encoder": [2], "retriever": [], "scorer": []}
    for model in config.model_config_list.config:
        pinned = versions.pop(model.name)
        assert model.base_path == f"/models/{model.name}"
        assert model.model_platform == "tensorflow"
        assert model.model_version_policy.specific.versions == pinned
        assert model.HasField("model_version_policy") == bool(pinned)
    assert not versions


def test_batching_config(models):
    """Sizes ascend, and the last is the largest batch: the server's rule."""
    text = (models / "batching.config").read_text()
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    sizes += [96, 128, 192, 256, 384, 512]
    assert [line for line in text.splitlines() if line[0] != "#"] == [
        "max_batch_size { value: 512 }",
        "batch_timeout_micros { value: 1000 }",
        "max_enqueued_batches { value: 100 }",
        "num_batch_threads { value: 2 }",
        *(f"allowed_batch_sizes: {size}" for size in sizes),
    ]
    # Half as much again, or twice: padding is computed, too.
    assert all(1 < b / a <= 2 for a, b in pairwise(sizes))


@pytest.mark.parametrize(("batching", "sizes"), [
    (None, [1, 8, 64]),
    ("max_batch_size { value: 128 }\n", [1, 8, 64]),
    ("max_batch_size { value: 64 } num_batch_threads { value: 2 }\n",
     [1, 8, 64]),
    ("# max_batch_size { value: 1 }\nmax_batch_size: { value: 32 }\n", [1, 8]),
    ("max_batch_size {\n  value: 4\n}\nallowed_batch_sizes: 4\n", [1]),
    ("max_batch_size { value: 0 }", [1]),
    ("num_batch_threads { value: 4 }\n", [1, 8, 64]),
])  # fmt: skip
def test_warm_up_fits_the_batches_of_the_server(tmp_path, batching, sizes):
    """TF Serving refuses a version with a request above max_batch_size."""
    if batching:
        (tmp_path / "batching.config").write_text(batching)
    assert server_files.warmup_sizes(tmp_path) == sizes


def test_a_damaged_models_config_is_named(tmp_path):
    (tmp_path / "models.config").write_text("custom_model_config {}")
    with pytest.raises(InputError, match="expected a model_config_list"):
        server_files.check_server_files(tmp_path)
    (tmp_path / "models.config").write_bytes(b"\xff")
    with pytest.raises(InputError, match="models.config:.*correct it"):
        server_files.check_server_files(tmp_path)


def test_no_models(tmp_path):
    with pytest.raises(InputError, match="no model in this folder"):
        server_files.write_server_files(tmp_path)
    with pytest.raises(InputError, match="absent: no such folder"):
        server_files.write_server_files(tmp_path / "absent")


def test_an_export_moves_its_own_versions_and_nothing_else(tmp_path):
    path = tmp_path / "models.config"
    update_models_config(path, "ab", {"a": 1, "b": 1})
    written = path.read_text()
    line = "    model_version_policy {{ specific {{ versions: {} }} }}{}\n"
    assert written.count(line.format(1, "  # newest export of a")) == 1
    # One is pinned by its operator, without the remark, and has a label.
    label = '  version_labels { key: "stable" value: 1 }'
    pinned = "# mine\n" + written.replace("  # newest export of b", label)
    path.write_text(pinned)
    update_models_config(path, "abc", {"a": 23, "b": 23, "c": 23})
    moved = pinned.replace("1 } }  # newest", "23 } }  # newest")
    assert path.read_text().startswith(moved.rstrip()[:-1])
    assert [
        [*model.model_version_policy.specific.versions]
        for model in read_models_config(path).model_config_list.config
    ] == [[23], [1], [23]]
    inode = path.stat().st_ino
    update_models_config(path, "abc", {"a": 23, "b": 23, "c": 23})
    assert path.stat().st_ino == inode  # nothing to write


def test_the_version_that_is_served(tmp_path):
    """The version that models.config names is served.

    An interrupted export may have left a folder with a larger number.
    """
    base = tmp_path / "a"
    assert served_version(base) is None
    for version in "124":
        (base / version).mkdir(parents=True)
    assert served_version(base) == base / "4"
    update_models_config(tmp_path / "models.config", "ab", {"a": 2})
    assert served_version(base) == base / "2"
    (base / "2").rmdir()
    assert served_version(base) == base / "4"
    assert served_version(tmp_path / "b") is None


@pytest.mark.parametrize("written", [
    "",
    "model_config_list: <config: <name: 'other' base_path: '/o'>>",
    "model_config_list { config { name: 'other' base_path: '/o' } } # }",
])  # fmt: skip
def test_another_way_to_write_the_list(tmp_path, written):
    path = tmp_path / "models.config"
    path.write_text(written)
    update_models_config(path, ["b", "a"], {"b": 3})
    listed = read_models_config(path).model_config_list.config
    old = ["other"] if written else []
    assert [model.name for model in listed] == [*old, "a", "b"]
    assert listed[-1].base_path == "/models/b"
    update_models_config(path, ["b", "a"], {"b": 4})
    listed = read_models_config(path).model_config_list.config
    assert listed[-1].model_version_policy.specific.versions == [4]


@pytest.fixture(scope="module")
def readme(models: Path) -> str:
    return server_files.server_readme(find_models(models))


def test_memory_follows_from_the_files(tmp_path):
    """See tests/export/graphs/test_request_limits.py for a process."""
    module = tf.Module()
    module.numbers = tf.Variable(tf.zeros([300, 1000]))
    module.names = tf.Variable(tf.fill([1000], "ten bytes."))
    tf.saved_model.save(module, str(tmp_path))
    # Ten bytes and a header of 24, and in the file two bytes more.
    graph = (tmp_path / "saved_model.pb").stat().st_size
    assert server_files.memory_bytes(tmp_path) == pytest.approx(
        1_235_000 + 80 * graph, rel=2e-3
    )
    assert server_files.memory_bytes(tmp_path / "variables") == 0


def test_readme_shows_signatures_memory_and_versions(
    readme, models, tiny_models
):
    memory = server_files.memory_bytes(models / "query_encoder" / "2") / 1e6
    for line in (
        "| `query_encoder` | `serving_default` | `text` string [batch] "
        "| `embedding` float32 [batch, 2] |",
        "| `retriever` | `serving_default` "
        "| `k` int32 [batch], `text` string [batch] "
        "| `ids` string [batch, any], `scores` float32 [batch, any] |",
        "| `scorer` | `serving_default` "
        "| `document` string [batch], `query` string [batch] "
        "| `score` float32 [batch] |",
        f"| `query_encoder` | 2 | {memory:.1f} MB |",
        "| 2.20 | 2.20.0 | ICU 77 |",
        "`max_batch_size` rows, 512 unless",
        "The largest has 64 rows",
    ):
        assert line in readme
    # How to call a model of others is not known, but its tensors are.
    other = server_files.server_readme({"numbers": tiny_models / "numbers"})
    assert "| `numbers` | `double` | `x` float32 [batch] |" in other
    assert "client.encode" not in other and "curl" not in other


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_readme_commands_run(models, readme):
    def blocks(language: str) -> list[str]:
        return re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)

    docker, plain, curls = blocks("sh")
    command = shlex.split(docker.replace("\\\n", ""))
    assert command[:2] == ["docker", "run"]
    assert "tensorflow/serving:2.20.0" in command
    assert "--model_config_file=/models/models.config" in command
    assert "--batching_parameters_file=/models/batching.config" in command
    assert 'sed "s|/models/|$PWD/|" models.config' in plain
    (code,) = blocks("python")
    names: dict[str, object] = {}
    with PredictionServer(models, port=0, http_port=0) as server:
        exec(code.replace("127.0.0.1:8500", server.address), names)
        done = subprocess.run(
            curls.replace("http://127.0.0.1:8501", server.http_address)
            .replace("curl ", "curl -sS -f -w '\\n' "),
            shell=True, capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert names["vectors"].shape == (1, 2)
    assert [hit.id for hit in names["hits"][0]][0] == "bolt"
    assert names["scores"].tolist() == [0, -1]  # by the texts' lengths
    encoded, found, scored = map(json.loads, done.stdout.splitlines())
    assert encoded == {
        "outputs": [[pytest.approx(0.6, abs=1e-6), pytest.approx(0.8)]]
    }
    assert found["outputs"]["ids"] == [
        ["bolt", "steel angle", "shelf bracket", "", ""]
    ]
    assert found["outputs"]["scores"][0][3:] == [-2.0, -2.0]
    assert scored == {"outputs": [0.0, -1.0]}

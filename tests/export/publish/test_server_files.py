"""batching.config, models.config and the README, beside the models."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format, wrappers_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.publish.models_config import read_models_config
from keras_lstm_dssm.export.publish.server_files import (
    check_server_files,
    warmup_sizes,
    write_server_files,
)


@pytest.fixture(scope="module")
def models(tiny_models: Path, tmp_path_factory) -> Path:
    copy = tmp_path_factory.mktemp("models")
    for name in ("query_encoder", "retriever"):
        shutil.copytree(tiny_models / name, copy / name)
    (copy / "notes").mkdir()
    write_server_files(copy, {"query_encoder": 2})
    return copy


def test_models_config_is_what_the_server_reads(models):
    """What an export has published is pinned; others are served newest."""
    config = text_format.Parse(
        (models / "models.config").read_text(), ModelServerConfig()
    )
    assert [
        (
            model.name,
            model.base_path,
            model.model_platform,
            [*model.model_version_policy.specific.versions],
            model.HasField("model_version_policy"),
        )
        for model in config.model_config_list.config
    ] == [
        ("query_encoder", "/models/query_encoder", "tensorflow", [2], True),
        ("retriever", "/models/retriever", "tensorflow", [], False),
    ]


def batching_parameters() -> Message:
    """An empty BatchingParameters, which the API package lacks.

    Its fields stand in TF Serving's session_bundle_config.proto.
    """
    wrapped = ".google.protobuf.Int64Value"
    fields = [
        *(
            FieldDescriptorProto(
                name=name, number=number, type="TYPE_MESSAGE",
                label="LABEL_OPTIONAL", type_name=wrapped,
            )
            for number, name in enumerate(
                ("max_batch_size", "batch_timeout_micros",
                 "max_enqueued_batches", "num_batch_threads"), 1,
            )
        ),
        FieldDescriptorProto(
            name="allowed_batch_sizes", number=6, type="TYPE_INT64",
            label="LABEL_REPEATED",
        ),
    ]  # fmt: skip
    pool = DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(
        FileDescriptorProto(
            name="batching.proto",
            syntax="proto3",
            dependency=[wrappers_pb2.DESCRIPTOR.name],
            message_type=[
                DescriptorProto(name="BatchingParameters", field=fields)
            ],
        )
    )
    found = pool.FindMessageTypeByName("BatchingParameters")
    return GetMessageClass(found)()


def test_batching_config(models):
    config: Any = text_format.Parse(
        (models / "batching.config").read_text(), batching_parameters()
    )
    assert config.max_batch_size.value == 512
    assert config.batch_timeout_micros.value == 1000
    assert config.max_enqueued_batches.value == 100
    assert config.num_batch_threads.value == 2
    # Ascending, and the last is the largest batch: the server's own rule.
    assert config.allowed_batch_sizes == [1, 8, 64, 512]


def test_what_the_operator_wrote_stays(tiny_models, tmp_path):
    shutil.copytree(tiny_models / "retriever", tmp_path / "retriever")
    live = """\
# Two versions live.
model_config_list {
  # Promoted last week.
  config {
    name: "retriever" base_path: "/elsewhere/retriever"
    model_platform: "tensorflow"
    model_version_policy { specific { versions: 1 versions: 2 } }
    version_labels { key: "stable" value: 1 }
  }
}
"""
    (tmp_path / "models.config").write_text(live)
    (tmp_path / "batching.config").write_text("max_batch_size { value: 8 }\n")
    write_server_files(tmp_path)
    assert (tmp_path / "models.config").read_text() == live
    # A model that is not in it is added.
    shutil.copytree(tiny_models / "query_encoder", tmp_path / "query_encoder")
    write_server_files(tmp_path)
    config = read_models_config(tmp_path / "models.config")
    old, new = config.model_config_list.config
    assert old.version_labels == {"stable": 1}
    assert old.base_path == "/elsewhere/retriever"
    assert old.model_version_policy.specific.versions == [1, 2]
    assert new.base_path == "/models/query_encoder"
    text = (tmp_path / "models.config").read_text()
    assert text.startswith(live.rstrip()[:-1])  # comments, too
    assert (tmp_path / "batching.config").read_text().count(":") == 1


@pytest.mark.parametrize(
    ("batching", "sizes"),
    [
        (None, [1, 8, 64]),
        ("max_batch_size { value: 128 }\n", [1, 8, 64]),
        ("max_batch_size { value: 64 } num_batch_threads { value: 2 }\n",
         [1, 8, 64]),
        ("# max_batch_size { value: 1 }\nmax_batch_size: { value: 32 }\n",
         [1, 8]),
        ("max_batch_size {\n  value: 4\n}\nallowed_batch_sizes: 4\n", [1]),
        ("max_batch_size { value: 0 }", [1]),
        ("num_batch_threads { value: 4 }\n", [1, 8, 64]),
    ],
)  # fmt: skip
def test_warm_up_fits_the_batches_of_the_server(tmp_path, batching, sizes):
    """TF Serving refuses a version with a request above max_batch_size."""
    if batching:
        (tmp_path / "batching.config").write_text(batching)
    assert warmup_sizes(tmp_path) == sizes


def test_a_damaged_models_config_is_named(tmp_path):
    (tmp_path / "models.config").write_text("custom_model_config {}")
    with pytest.raises(InputError, match="expected a model_config_list"):
        check_server_files(tmp_path)
    (tmp_path / "models.config").write_bytes(b"\xff")
    with pytest.raises(InputError, match="models.config:.*correct it"):
        check_server_files(tmp_path)


def test_no_models(tmp_path):
    with pytest.raises(InputError, match="no model in this folder"):
        write_server_files(tmp_path)
    with pytest.raises(InputError, match="absent: no such folder"):
        write_server_files(tmp_path / "absent")

"""docs/serving.md: its configurations do on a real server what it says."""

import re
import shutil
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.serving.client.channel import ServingError
from keras_lstm_dssm.serving.client.grpc_clients import Client
from keras_lstm_dssm.serving.server.prediction_server import PredictionServer
from tests.serving.tiny_models import TITLES

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
CONFIGS = re.findall(r"```proto\n(.*?)```", PAGE, re.DOTALL)


def test_a_server_can_read_them() -> None:
    assert len(CONFIGS) == 3
    for text in CONFIGS:
        config = text_format.Parse(text, ModelServerConfig())
        (model,) = config.model_config_list.config
        live = model.model_version_policy.specific.versions
        assert set(model.version_labels.values()) <= set(live)


@pytest.fixture
def models(tiny_models: Path, tmp_path: Path) -> Path:
    """Two versions of a retriever; the page's files are written beside."""
    for version in ("1", "2"):
        shutil.copytree(
            tiny_models / "retriever" / "1", tmp_path / "retriever" / version
        )
    return tmp_path


def test_canary_promotion_and_roll_back(models: Path) -> None:
    canary, promoted, rolled_back = CONFIGS
    config = models / "models.config"
    config.write_text(canary)
    with (
        PredictionServer(models, port=0, poll_seconds=0) as server,
        Client(f"127.0.0.1:{server.port}", timeout=20) as client,
    ):

        def serves(label: str) -> int:
            (hits,) = client.search([TITLES[0]], k=1, version=label)
            assert hits[0].id == TITLES[0]
            spec = ModelSpec(name="retriever", version_label=label)
            return server.models.find(spec).version

        assert (serves("stable"), serves("canary")) == (1, 2)
        config.write_text(promoted)
        server.models.refresh()
        assert (serves("stable"), serves("canary")) == (2, 2)
        config.write_text(canary)
        server.models.refresh()
        assert (serves("stable"), serves("canary")) == (1, 2)
        config.write_text(rolled_back)
        server.models.refresh()
        with pytest.raises(ServingError, match="label: stable"):
            serves("stable")
        assert client.search([TITLES[0]], k=1, version=1)
        with pytest.raises(ServingError, match="retriever, 2"):
            client.search([TITLES[0]], k=1, version=2)


def test_every_flag_of_every_command_exists() -> None:
    commands = re.findall(
        r"^lstm-dssm-(\w+) ((?:.*\\\n)*.*)$", PAGE, re.MULTILINE
    )
    assert {name for name, _ in commands} == {
        "export", "query", "encode", "index", "benchmark",
    }  # fmt: skip
    for name, arguments in commands:
        module = __import__(f"keras_lstm_dssm.tools.{name}", fromlist=["FLAGS"])
        for flag in re.findall(r"--(\w+)", arguments):
            assert flag in module.FLAGS, (name, flag)

"""`models.config`: which models and versions TF Serving serves.

Source: https://www.tensorflow.org/tfx/serving/serving_config
"""

import os
from collections.abc import Iterable
from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing


def read_models_config(path: str | os.PathLike[str]) -> ModelServerConfig:
    """Reads a server's configuration; a missing file is an empty one.

    Raises:
        InputError: It is not a `ModelServerConfig` in text form.
    """
    path = Path(path)
    config = ModelServerConfig()
    if path.exists():
        try:
            text_format.Parse(path.read_text(encoding="utf-8"), config)
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}:{error}; expected a ModelServerConfig: mend it, or "
                "remove it to have a new one written"
            ) from error
    return config


def add_models(
    path: str | os.PathLike[str], names: Iterable[str], root: str
) -> None:
    """Adds models to a server's configuration, and leaves the rest alone.

    What an operator wrote into the file stays: which versions are live,
    their labels, comments. When nothing is missing the file is not touched.

    Args:
        path: The file, made when missing.
        names: Names of the models that must be in it.
        root: Where the server sees their folders.

    Raises:
        InputError: See `read_models_config`.
    """
    config = read_models_config(path)
    models = config.model_config_list.config
    missing = ModelServerConfig()
    for name in sorted(set(names) - {model.name for model in models}):
        missing.model_config_list.config.add(
            name=name, base_path=f"{root}/{name}", model_platform="tensorflow"
        )
    if not missing.model_config_list.config:
        return
    config.MergeFrom(missing)
    text = text_format.MessageToString(config)
    if Path(path).exists():
        # Into the list as it stands, if that gives the same: comments stay.
        written = Path(path).read_text(encoding="utf-8").rstrip()
        _, added = text_format.MessageToString(missing).split("\n", 1)
        if written.endswith("}") and _parses_to(written[:-1] + added, config):
            text = written[:-1] + added
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _parses_to(text: str, config: ModelServerConfig) -> bool:
    try:
        return text_format.Parse(text, ModelServerConfig()) == config
    except text_format.ParseError:
        return False

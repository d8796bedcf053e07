"""Finds folders MODELS/NAME/NUMBER of exported models; NUMBER is a version.

MODELS/models.config says which versions are served.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import (
    ModelConfig,
    ModelServerConfig,
)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.plain_files import read_text
from lstm_dssm_client.errors import DAMAGE

# These names need no escaping in paths, URLs, shells and configuration files.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

MAX_VERSION = 2**63
"""Versions are below this number, because TF Serving reads them as int64."""


def model_folder(models_dir: str | os.PathLike[str], name: str) -> Path:
    """Returns a model's folder; raises `InputError` for an invalid name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{models_dir}: found the name {name!r}; a model's name has "
            "letters, digits, '_', '-' and '.' only: rename it"
        )
    return Path(models_dir, name)


def version_folders(base: str | os.PathLike[str]) -> dict[int, Path]:
    """Returns version -> folder in the model's folder `base`, ascending."""
    base = Path(base)
    if not base.is_dir():
        return {}
    folders = {
        int(path.name): path
        for path in base.iterdir()
        if path.name.isascii()
        and path.name.isdecimal()
        and int(path.name) < MAX_VERSION
        and path.is_dir()
    }
    return dict(sorted(folders.items()))


def find_models(models_dir: str | os.PathLike[str]) -> dict[str, Path]:
    """Returns name -> folder of all models with a version, sorted by name."""
    models_dir = Path(models_dir)
    if not models_dir.is_dir():
        return {}
    return {
        path.name: model_folder(models_dir, path.name)
        for path in sorted(models_dir.iterdir())
        if path.name[0] != "." and version_folders(path)
    }


def model_folders(models_dir: str | os.PathLike[str]) -> dict[str, Path]:
    """Returns the models of `find_models`; without any, raises `InputError`."""
    if not Path(models_dir).is_dir():
        raise InputError(
            f"{models_dir}: no such folder; expected one that "
            "lstm-dssm-export --output wrote"
        )
    folders = find_models(models_dir)
    if not folders:
        raise InputError(
            f"{models_dir}: no model in this folder; expected "
            "NAME/NUMBER/saved_model.pb, which lstm-dssm-export writes"
        )
    return folders


MODELS_CONFIG = "models.config"


def read_models_config(path: str | os.PathLike[str]) -> ModelServerConfig:
    """Reads a config in text form; without a file, the config is empty."""
    path = Path(path)
    config = ModelServerConfig()
    expected = (
        "expected a ModelServerConfig: correct it, or remove it, and the next"
        " export writes a new one"
    )
    if path.exists():
        text = read_text(path, expected)
        try:
            text_format.Parse(text, config)
        except (text_format.ParseError, *DAMAGE) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path}:{reason}; {expected}") from error
    if config.WhichOneof("config") == "custom_model_config":
        raise InputError(
            f"{path}: found a custom_model_config; expected a "
            "model_config_list, which lstm-dssm-export adds models to"
        )
    return config


Configs = Mapping[str, ModelConfig] | None
"""Name -> entry of `models.config`; None if the file is missing."""


def read_configs(path: Path) -> Configs:
    """Reads the models that a server is to serve."""
    if not path.exists():
        return None
    listed = read_models_config(path)
    # A file without a list may be half-written. If the file counted as an empty
    # list, the server would unload all models.
    if not listed.HasField("model_config_list"):
        raise InputError(
            f"{path}: has no model_config_list; list a model, write "
            "model_config_list {} to unload all, or remove the file to serve "
            "all models"
        )
    configs: dict[str, ModelConfig] = {}
    for config in listed.model_config_list.config:
        if config.name in configs:
            raise InputError(
                f"{path}: model {config.name!r} is listed twice; keep one"
            )
        configs[config.name] = config
    return configs


def live_versions(
    folders: Mapping[int, Path], config: ModelConfig, latest: int
) -> dict[int, Path]:
    """Selects versions by `config`, by default the newest `latest` versions."""
    policy = config.model_version_policy
    kind = policy.WhichOneof("policy_choice")
    if kind == "all":
        return dict(folders)
    if kind == "specific":
        return {v: folders[v] for v in policy.specific.versions if v in folders}
    if kind == "latest":
        latest = policy.latest.num_versions or 1
    return dict(list(folders.items())[-latest:])


def served_version(base: str | os.PathLike[str]) -> Path | None:
    """Returns the folder of the newest served version of a model, or `None`."""
    base = Path(base).resolve()
    folders = version_folders(base)
    # An export that was interrupted before it wrote the config leaves a newer
    # version that is not served.
    config = read_models_config(base.parent / MODELS_CONFIG)
    for model in config.model_config_list.config:
        if model.name == base.name:
            folders = live_versions(folders, model, 1) or folders
    return folders[max(folders)] if folders else None

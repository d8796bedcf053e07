"""Which models and versions the local server loads, by `models.config`."""

import os
from collections.abc import Mapping
from pathlib import Path

from tensorflow_serving.config.model_server_config_pb2 import ModelConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.models_config import read_models_config


def read_config(path: str | os.PathLike[str]) -> dict[str, ModelConfig]:
    """Reads the models that a `models.config` lists, by name.

    Args:
        path: The file, in the text format of `ModelServerConfig`. There may
            be none, which lists nothing.

    Raises:
        InputError: It is not in that format, or lists a model twice, or no
            model (it may just be written; TF Serving, too, takes no action
            on an empty file).
    """
    there = os.path.exists(path)
    parsed = read_models_config(path)
    if there and not parsed.model_config_list.config:
        raise InputError(
            f"{path}: lists no model; list one, or remove the file to have "
            "all served"
        )
    configs: dict[str, ModelConfig] = {}
    for config in parsed.model_config_list.config:
        if config.name in configs:
            raise InputError(
                f"{path}: model {config.name!r} is listed twice; keep one"
            )
        configs[config.name] = config
    return configs


def wanted_versions(
    folders: Mapping[int, Path], config: ModelConfig, latest: int
) -> dict[int, Path]:
    """Returns the versions that a model's policy asks for.

    Args:
        folders: The versions on disk, ascending.
        config: The model's entry in `models.config`. Its
            `model_version_policy` is `latest`, `all` or `specific`, or not
            set.
        latest: How many of the newest without a policy.

    Example:
    >>> wanted_versions({1: one, 2: two}, ModelConfig(), latest=1)
    {2: two}
    """
    policy = config.model_version_policy
    kind = policy.WhichOneof("policy_choice")
    if kind == "all":
        return dict(folders)
    if kind == "specific":
        return {v: folders[v] for v in policy.specific.versions if v in folders}
    if kind == "latest":
        latest = policy.latest.num_versions or 1
    return dict(list(folders.items())[-latest:])

"""The file models.config, which says which versions of models are served.

An update of the file keeps the lines that a server's operator has written.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import (
    ModelConfig,
    ModelServerConfig,
)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.saved_module import (
    FINGERPRINT_FILE,
    IDS_FILE,
)
from keras_lstm_dssm.export.publish.versions import version_folders
from keras_lstm_dssm.files import write_text
from keras_lstm_dssm.fingerprints import files_hash, id_hashes
from keras_lstm_dssm.plain_files import read_array, read_json, read_text
from lstm_dssm_client.errors import DAMAGE

MODELS_CONFIG = "models.config"


def read_models_config(path: str | os.PathLike[str]) -> ModelServerConfig:
    """Reads a `ModelServerConfig` in text format; a missing file is empty."""
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
"""The models that `models.config` lists, by name; None without the file."""


def read_configs(path: Path) -> Configs:
    """Reads the models that a server is to serve; see `Configs`.

    A file without a `model_config_list`, which TF Serving ignores, is an error:
    it may be incomplete because it is being written.
    """
    if not path.exists():
        return None
    listed = read_models_config(path)
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
    """Selects versions, ascending, by the `model_version_policy` of an entry.

    Without a policy these are the `latest` newest ones.
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


def served_version(base: str | os.PathLike[str]) -> Path | None:
    """Returns the folder of the newest served version of a model, or `None`.

    If `models.config` next to `base` names versions, newer ones are not served,
    for example that of an interrupted export.
    """
    base = Path(base).resolve()
    folders = version_folders(base)
    config = read_models_config(base.parent / MODELS_CONFIG)
    for model in config.model_config_list.config:
        if model.name == base.name:
            folders = live_versions(folders, model, 1) or folders
    return folders[max(folders)] if folders else None


def update_models_config(
    path: Path, names: Iterable[str], exported: Mapping[str, int], root: str
) -> None:
    """Writes the newest exports, and other `names`, into `models.config`.

    An added model has its version on a line with the comment "newest export".
    Later exports change only the number on that line, nothing of an operator.
    """
    config = read_models_config(path)
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    text = old
    for name, version in exported.items():
        text = re.sub(
            rf"(specific {{ versions: )\d+( }} }}{re.escape(_remark(name))})$",
            rf"\g<1>{version}\2",
            text,
            flags=re.MULTILINE,
        )
    missing = sorted(
        set(names) - {model.name for model in config.model_config_list.config}
    )
    if missing:
        entries = [_entry(name, exported.get(name), root) for name in missing]
        text = _added(text, "".join(entries))
    if text != old:
        write_text(path, text)


def _remark(name: str) -> str:
    return f"  # newest export of {name}"


def _entry(name: str, version: int | None, root: str) -> str:
    lines = [
        f'name: "{name}"',
        f'base_path: "{root}/{name}"',
        'model_platform: "tensorflow"',
    ]
    if version:
        lines.append(
            f"model_version_policy {{ specific {{ versions: {version} }} }}"
            + _remark(name)
        )
    body = "".join(f"    {line}\n" for line in lines)
    return f"  config {{\n{body}  }}\n"


def _added(text: str, entries: str) -> str:
    """Adds entries to the list of models in a configuration's text."""
    alone = f"model_config_list {{\n{entries}}}\n"
    config = text_format.Parse(text, ModelServerConfig())
    if not config.model_config_list.config:
        return alone
    # The second form has no comments of the operator. It is used if the
    # file's last character is not the brace that closes the list.
    forms = text, text_format.MessageToString(config)
    config.MergeFrom(text_format.Parse(alone, ModelServerConfig()))
    for form in forms:
        added = f"{form.rstrip()[:-1]}{entries}}}\n"
        try:
            if text_format.Parse(added, ModelServerConfig()) == config:
                return added
        except text_format.ParseError:
            continue
    raise AssertionError(text)


MOST_CHANGED = 0.2
"""Share of the served ids that an export may change without being asked."""


def check_ids(path: str | os.PathLike[str], ids: Iterable[str]) -> None:
    """Checks that ids are mostly the ids of the retriever that is served.

    Raises `InputError` if the ids that are gone and those that are new are more
    than `MOST_CHANGED` of the served ids. Nothing is compared if no retriever
    is served. For `path` see `saved_fingerprint`.
    """
    folder = served_version(path) or Path(path)
    if not (folder / IDS_FILE).exists():
        return
    served = read_array(folder / IDS_FILE, "export to another folder")
    hashes = id_hashes(ids)
    kept = len(np.intersect1d(served, hashes))
    gone, new = len(served) - kept, len(hashes) - kept
    if gone + new > MOST_CHANGED * len(served):
        raise InputError(
            f"{folder}: of its {len(served):,} ids, {gone:,} are gone, and"
            f" {new:,} are new, expected changes of {MOST_CHANGED:.0%} at most:"
            " check the documents, or give --yes"
        )


def saved_fingerprint(path: str | os.PathLike[str]) -> str:
    """Returns the fingerprint of an exported encoder, or a hash of its files.

    `path` is the folder of a model, or of a version, see `SavedEncoder`.
    """
    folder = served_version(path) or Path(path)
    if (folder / FINGERPRINT_FILE).exists():
        return str(read_json(folder / FINGERPRINT_FILE).get("sha256"))
    graph = folder / "saved_model.pb"
    if not graph.exists():
        raise InputError(
            f"{path}: no SavedModel here; name a model's folder as "
            "lstm-dssm-export writes it, such as MODELS/document_encoder"
        )
    return files_hash([graph, *sorted(folder.glob("variables/*"))])

"""Updates of models.config, which keep what a server's operator has written."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import (
    ModelServerConfig,
)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.saved_module import FINGERPRINT_FILE
from keras_lstm_dssm.files import write_text
from keras_lstm_dssm.fingerprints import files_hash
from keras_lstm_dssm.model_folders import read_models_config, served_version
from keras_lstm_dssm.plain_files import read_json


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

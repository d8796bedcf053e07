"""What TF Serving needs beside the models: models.config, batching, README."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.model_versions import model_folders, version_folders
from keras_lstm_dssm.export.server_readme import server_readme
from keras_lstm_dssm.export.warmup import BATCH_SIZES, WARMUP_SIZES
from keras_lstm_dssm.files import replacing

MODELS_CONFIG = "models.config"
BATCHING_CONFIG = "batching.config"

# Requests that arrive within a millisecond are computed together. The last
# of the allowed sizes must be the maximum.
_BATCHING = f"""\
# Exports leave this file as it is; change it as you like. TF Serving refuses
# a version if one of its warm-up requests has more rows than max_batch_size.
# The largest has {WARMUP_SIZES[-1]}. To go below that, change max_batch_size
# here and export again: new versions have smaller warm-up requests.
max_batch_size {{ value: {BATCH_SIZES[-1]} }}
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 2 }}
""" + "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)


def read_models_config(path: str | os.PathLike[str]) -> ModelServerConfig:
    """Reads a server's configuration; a missing file is an empty one.

    Raises:
        InputError: It is not a `ModelServerConfig` in text form, with a list
            of models.
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
    if config.WhichOneof("config") == "custom_model_config":
        raise InputError(
            f"{path}: found a custom_model_config; expected a "
            "model_config_list, which lstm-dssm-export adds models to"
        )
    return config


def served_version(base: str | os.PathLike[str]) -> Path | None:
    """Returns the newest version of a model that a server serves.

    `models.config` beside the model may name versions; then newer ones, for
    example that of an interrupted export, are not served.

    Args:
        base: The model's folder, for example `MODELS/query_encoder`.

    Returns:
        The version's folder; `None` if the model has no version.

    Raises:
        InputError: See `read_models_config`.
    """
    base = Path(base).resolve()
    folders = version_folders(base)
    config = read_models_config(base.parent / MODELS_CONFIG)
    for model in config.model_config_list.config:
        if model.name == base.name:
            live = model.model_version_policy.specific.versions
            folders = {n: folders[n] for n in live if n in folders} or folders
    return folders[max(folders)] if folders else None


def check_server_files(
    models_dir: str | os.PathLike[str], names: Collection[str] = ()
) -> None:
    """Checks, before long work, that `write_server_files` will succeed.

    Args:
        models_dir: The folder of the models, which may be missing.
        names: Models that will get a new version.

    Raises:
        InputError: There is a `models.config` that no server could read, a
            folder whose name no model may have, or another model whose newest
            version is no SavedModel with a signature.
    """
    models_dir = Path(models_dir)
    read_models_config(models_dir / MODELS_CONFIG)
    if models_dir.is_dir() and any(map(version_folders, models_dir.iterdir())):
        others = {
            name: base
            for name, base in model_folders(models_dir).items()
            if name not in names
        }
        server_readme(others, "/models")


def warmup_sizes(models_dir: str | os.PathLike[str]) -> list[int]:
    """Returns the warm-up sizes that a server with `batching.config` takes.

    Args:
        models_dir: The folder of the models.

    Returns:
        The `WARMUP_SIZES` up to `max_batch_size`, or all of them where there
        is no file or no such entry. At least one.
    """
    path = Path(models_dir, BATCHING_CONFIG)
    text = path.read_text(errors="replace") if path.exists() else ""
    entry = re.search(
        r"^[^#]*?max_batch_size\s*:?\s*{\s*value\s*:\s*(\d+)", text, re.M
    )
    largest = int(entry[1]) if entry else BATCH_SIZES[-1]
    return [s for s in WARMUP_SIZES if s <= largest] or [1]


def write_server_files(
    models_dir: str | os.PathLike[str],
    exported: Mapping[str, int] = MappingProxyType({}),
    root: str = "/models",
) -> None:
    """Writes `batching.config`, `README.md` and, last, `models.config`.

    `models.config` names the version of each exported model that is served.
    It is replaced as a whole, so a server that reads it sees the versions of
    one export together, and never those of an export that was interrupted.

    What an operator has written into the first two stays: only the versions
    that have the export's own remark are moved, models that are missing are
    added, and `batching.config` is only written where there is none. The
    README is always written anew.

    Args:
        models_dir: A folder with models, `NAME/NUMBER/saved_model.pb`.
        exported: Model name to the version that an export has published.
        root: Where the server sees the folder; TF Serving takes absolute
            paths only.

    Raises:
        InputError: There is no model in the folder, one is damaged, or
            `models.config` cannot be read.

    Example:
        >>> write_server_files("models", {"query_encoder": 1})
        >>> print(Path("models/models.config").read_text())
        model_config_list {
          config {
            name: "query_encoder"
            base_path: "/models/query_encoder"
            model_platform: "tensorflow"
            model_version_policy { specific { versions: 1 } }  # newest ...
          }
        }
    """
    models_dir = Path(models_dir)
    folders = model_folders(models_dir)
    if not (models_dir / BATCHING_CONFIG).exists():
        _write(models_dir / BATCHING_CONFIG, _BATCHING)
    _write(models_dir / "README.md", server_readme(folders, root))
    update_models_config(models_dir / MODELS_CONFIG, folders, exported, root)


def update_models_config(
    path: Path, names: Iterable[str], exported: Mapping[str, int], root: str
) -> None:
    """Enters the newest exports into a server's configuration.

    A model that an export adds is served in one version, on a line with the
    remark "newest export". Later exports change the number on that line and
    nothing else: comments, labels, and policies without the remark stay.

    Args:
        path: The file, made when missing.
        names: Models that must be in it. One that is missing is added.
        exported: Model name to the version to serve. Another model is added
            without a policy, so that its newest version is served.
        root: Where the server sees the models' folders.

    Raises:
        InputError: See `read_models_config`.
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
        _write(path, text)


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
    """Adds entries to the list of models that a configuration is."""
    alone = f"model_config_list {{\n{entries}}}\n"
    wanted = text_format.Parse(text, ModelServerConfig())
    if not wanted.model_config_list.config:
        return alone
    # The second form loses the operator's comments. It is for a file whose
    # last character is not the brace that closes the list.
    forms = text, text_format.MessageToString(wanted)
    wanted.MergeFrom(text_format.Parse(alone, ModelServerConfig()))
    for form in forms:
        added = f"{form.rstrip()[:-1]}{entries}}}\n"
        try:
            if text_format.Parse(added, ModelServerConfig()) == wanted:
                return added
        except text_format.ParseError:
            continue
    raise AssertionError(text)


def _write(path: Path, content: str) -> None:
    with replacing(path) as partial:
        partial.write_text(content, encoding="utf-8")

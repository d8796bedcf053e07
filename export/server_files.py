"""What TF Serving needs beside the models: models.config, batching, README."""

import os
from collections.abc import Iterable
from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.model_versions import model_folders
from keras_lstm_dssm.export.server_readme import server_readme
from keras_lstm_dssm.export.warmup import BATCH_SIZES
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


MODELS_CONFIG = "models.config"
BATCHING_CONFIG = "batching.config"

# Requests that arrive within a millisecond run together. Batches are padded
# to one of few sizes, the last of which must be the maximum.
_BATCHING = f"""\
max_batch_size {{ value: {BATCH_SIZES[-1]} }}
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 2 }}
""" + "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)


def check_server_files(models_dir: str | os.PathLike[str]) -> None:
    """Checks, before long work, that `write_server_files` can do its own.

    Raises:
        InputError: There is a `models.config` that no server could read.
    """
    read_models_config(Path(models_dir, MODELS_CONFIG))


def write_server_files(
    models_dir: str | os.PathLike[str], root: str = "/models"
) -> None:
    """Writes `models.config`, `batching.config` and `README.md`.

    What an operator has written into the first two stays: models that are
    missing are added to `models.config`, and `batching.config` is only
    written where there is none. The README is always written anew.

    Args:
        models_dir: A folder with models, `NAME/NUMBER/saved_model.pb`.
        root: Where the server sees the folder; TF Serving takes absolute
            paths only.

    Raises:
        InputError: There is no model in the folder, or a `models.config`
            that cannot be read.

    Example:
        >>> write_server_files("models")
        >>> print(Path("models/models.config").read_text())
        model_config_list {
          config {
            name: "query_encoder"
            base_path: "/models/query_encoder"
            model_platform: "tensorflow"
          }
        }
    """
    models_dir = Path(models_dir)
    folders = model_folders(models_dir)
    add_models(models_dir / MODELS_CONFIG, folders, root)
    if not (models_dir / BATCHING_CONFIG).exists():
        _write(models_dir / BATCHING_CONFIG, _BATCHING)
    _write(models_dir / "README.md", server_readme(folders, root))


def _write(path: Path, content: str) -> None:
    with replacing(path) as partial:
        partial.write_text(content, encoding="utf-8")

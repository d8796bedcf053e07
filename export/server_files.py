"""What TF Serving needs beside the models: configuration and a README.

Source: https://www.tensorflow.org/tfx/serving/serving_config
"""

import os
from pathlib import Path

from keras_lstm_dssm.export.models_config import add_models, read_models_config
from keras_lstm_dssm.export.server_readme import server_readme
from keras_lstm_dssm.export.versions import model_folders
from keras_lstm_dssm.export.warmup import BATCH_SIZES
from keras_lstm_dssm.files import replacing

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

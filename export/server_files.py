"""Writes and checks the files next to exported models, for the server."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from keras_lstm_dssm.export.model_versions import find_models, model_folders
from keras_lstm_dssm.export.models_config import (
    MODELS_CONFIG,
    read_models_config,
    update_models_config,
)
from keras_lstm_dssm.export.server_readme import server_readme
from keras_lstm_dssm.export.warmup import BATCH_SIZES, WARMUP_SIZES
from keras_lstm_dssm.files import write_text

BATCHING_CONFIG = "batching.config"
_ROOT = "/models"  # in the container; TF Serving needs an absolute path

# Requests that arrive within a millisecond are computed together. The last
# of the allowed sizes must be the maximum.
_BATCHING = f"""\
# Exports never change this file, so you can edit it. TF Serving rejects
# a version if one of its warm-up requests has more rows than max_batch_size.
# The largest has {WARMUP_SIZES[-1]} rows. For a lower max_batch_size, change it
# here and export again: the new versions have smaller warm-up requests.
max_batch_size {{ value: {BATCH_SIZES[-1]} }}
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 2 }}
""" + "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)


def check_server_files(
    models_dir: str | os.PathLike[str], names: Collection[str] = ()
) -> None:
    """Checks, before an export, that `write_server_files` will succeed.

    Args:
        models_dir: The folder of the models, which may be missing.
        names: Models that will get a new version.

    Raises:
        InputError: There is a `models.config` that no server could read, a
            folder whose name is no valid model name, or another model whose
            newest version is no SavedModel with a signature.
    """
    read_models_config(Path(models_dir, MODELS_CONFIG))
    others = {
        name: base
        for name, base in find_models(models_dir).items()
        if name not in names
    }
    server_readme(others, _ROOT)


def warmup_sizes(models_dir: str | os.PathLike[str]) -> list[int]:
    """Returns the warm-up sizes that `batching.config` allows.

    Args:
        models_dir: The folder of the models.

    Returns:
        The `WARMUP_SIZES` up to `max_batch_size`, all of them if there is no
        file or no such entry, and `[1]` if none is small enough.
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
) -> None:
    """Writes `batching.config`, `README.md` and, last, `models.config`.

    `models.config` names the version of each exported model that is served.
    It is replaced as a whole, so a server that reads it sees the versions of
    one export together, and never those of an export that was interrupted.

    An operator's changes to the two configurations are kept: in
    `models.config` only the version numbers with the export's own comment
    change and missing models are added, and an existing `batching.config` is
    not replaced. The README is always replaced.

    Args:
        models_dir: A folder with models, `NAME/NUMBER/saved_model.pb`.
        exported: Model name to the version that an export has published.

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
        write_text(models_dir / BATCHING_CONFIG, _BATCHING)
    write_text(models_dir / "README.md", server_readme(folders, _ROOT))
    update_models_config(models_dir / MODELS_CONFIG, folders, exported, _ROOT)

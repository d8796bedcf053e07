"""The fingerprint of an encoder, in the folder of its SavedModel."""

import os
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.models_config import served_version
from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.fingerprints import files_hash, weights_hash

_FILE = Path("assets.extra", "encoder.json")


def encoder_fingerprint(encoder: Any) -> str:
    """Returns a hash of what determines the vectors of a trained encoder.

    Args:
        encoder: A `GraphEncoder` or a `KeyVec`, whose weights are up to date.
    """
    scales = getattr(encoder, "scales", ())  # of the parts of a mixture
    return weights_hash([*encoder.weights, *scales])


def write_fingerprint(version: Path, fingerprint: str) -> None:
    """Writes the fingerprint of an encoder into a version's folder."""
    path = version / _FILE
    path.parent.mkdir(exist_ok=True)
    write_json(path, {"sha256": fingerprint})


def saved_fingerprint(path: str | os.PathLike[str]) -> str:
    """Returns the fingerprint of an exported encoder.

    For a SavedModel without one, which another program or an earlier version
    has written, it is a hash of its files.

    Args:
        path: The folder of a model, or of one version, see `SavedEncoder`.

    Raises:
        InputError: There is no SavedModel.
    """
    folder = served_version(path) or Path(path)
    if (folder / _FILE).exists():
        return str(read_json(folder / _FILE).get("sha256"))
    graph = folder / "saved_model.pb"
    if not graph.exists():
        raise InputError(
            f"{path}: no SavedModel here; name a model's folder as "
            "lstm-dssm-export writes it, such as MODELS/document_encoder"
        )
    return files_hash([graph, *sorted(folder.glob("variables/*"))])

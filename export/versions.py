"""Where models lie on disk: MODELS/NAME/NUMBER/saved_model.pb.

TF Serving's rule: a version is a folder whose name is a number of 63 bits,
everything else beside it is ignored, and the largest number is the newest.
"""

import os
import re
from pathlib import Path

from keras_lstm_dssm.errors import InputError

# A name stands in paths, URLs, commands and configuration files: nothing in
# it may mean something there, and it cannot lead out of its folder.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def model_folder(models_dir: str | os.PathLike[str], name: str) -> Path:
    """Returns the folder of one model, which may not be there yet.

    Args:
        models_dir: The folder of all models.
        name: The model's name.

    Raises:
        InputError: The name is none: a path, for example.

    Example:
    >>> model_folder("models", "retriever")
    PosixPath('models/retriever')
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{models_dir}: found the name {name!r}; a model's name has "
            "letters, digits, '_', '-' and '.' only: rename it"
        )
    return Path(models_dir, name)


def version_folders(base: str | os.PathLike[str]) -> dict[int, Path]:
    """Returns the version folders of one model, oldest first.

    Args:
        base: The model's folder, for example `MODELS/query_encoder`. It may
            be missing, which is the same as empty.

    Returns:
        Version number to folder, ascending by number.
    """
    base = Path(base)
    if not base.is_dir():
        return {}
    found = {
        int(path.name): path
        for path in base.iterdir()
        if path.name.isascii()
        and path.name.isdecimal()
        and int(path.name) < 2**63
        and path.is_dir()
    }
    return dict(sorted(found.items()))


def model_folders(models_dir: str | os.PathLike[str]) -> dict[str, Path]:
    """Returns every folder below `models_dir` that has a version.

    Args:
        models_dir: A folder as `lstm-dssm-export` writes it.

    Returns:
        Model name to folder, ascending by name; at least one. Hidden
        folders do not count.

    Raises:
        InputError: There is no such folder, or no model in it, or one whose
            name could not stand in a path or URL.
    """
    models_dir = Path(models_dir)
    if not models_dir.is_dir():
        raise InputError(
            f"{models_dir}: no such folder; expected one that "
            "lstm-dssm-export --output wrote"
        )
    found = {
        path.name: model_folder(models_dir, path.name)
        for path in sorted(models_dir.iterdir())
        if path.name[0] != "." and version_folders(path)
    }
    if not found:
        raise InputError(
            f"{models_dir}: no model in this folder; expected "
            "NAME/NUMBER/saved_model.pb, as lstm-dssm-export writes them"
        )
    return found

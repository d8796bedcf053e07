"""Model folders, MODELS/NAME/NUMBER, and how a new version is published."""

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import sync

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


def publish(
    base: str | os.PathLike[str],
    write: Callable[[Path], None],
    version: int | None = None,
) -> Path:
    """Writes a SavedModel as a new version of a model.

    A running server polls `base` and loads a number as soon as it sees one,
    half-written or not. So the files are written into a hidden folder beside
    it, on the same file system, and renamed when they are complete and on
    the disk; when writing fails or is interrupted, the hidden folder is
    removed.

    Args:
        base: The model's folder, made when missing.
        write: Called with the path at which to make the SavedModel.
        version: The version number, 1 or more. By default one above the
            largest that is there.

    Returns:
        The version's folder, `base/<number>`.

    Raises:
        InputError: The version exists already, or is below 1; TensorFlow
            cannot write it, on a full disk, say.
        OSError: It cannot be written.

    Example:
        >>> publish("models/query_encoder",
        ...         lambda path: tf.saved_model.save(module, path))
        PosixPath('models/query_encoder/1')
    """
    base = Path(base)
    if version is not None and version < 1:
        raise InputError(f"version {version}: expected a number from 1")
    if version in version_folders(base):
        raise _exists(base, version)
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=base) as hidden:
        # One level down, because the hidden folder itself is private to its
        # owner (0700) and a server often runs as somebody else.
        complete = Path(hidden) / "version"
        try:
            write(complete)
        except tf.errors.OpError as error:
            if hidden not in error.message:
                raise
            reason = error.message.split("; ")[-1].split(" [Op:")[0]
            raise InputError(
                f"{base}: the new version cannot be written ({reason}); make "
                "room, or name another folder"
            ) from error
        for path in (complete, *complete.rglob("*")):
            sync(path)
        while True:
            number = version or max(version_folders(base), default=0) + 1
            try:
                published = complete.rename(base / str(number))
                sync(base)
                return published
            except OSError as error:
                # Another writer may have taken the number in the meantime.
                if number not in version_folders(base):
                    raise
                if version is not None:
                    raise _exists(base, version) from error


def _exists(base: Path, version: int | None) -> InputError:
    return InputError(
        f"{base}: version {version} exists; published versions never change, "
        "so give another number, or none for the next free one"
    )

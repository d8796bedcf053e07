"""A new model version appears as a whole, or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.versions import version_folders
from keras_lstm_dssm.files import sync


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

"""Publishes and verifies versions of models, in folders MODELS/NAME/NUMBER.

If an export is interrupted while it writes files, no version is published.
`MANIFEST.sha256` has the digests of all files of a version.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.saved_module import ServedModule, save_module
from keras_lstm_dssm.export.publish.warmup import WARMUP_SIZES, write_warmup
from keras_lstm_dssm.files import (
    flush_to_disk,
    hidden_folder,
    lock_folder,
    remove_unlocked_folders,
)
from keras_lstm_dssm.fingerprints import file_hash
from keras_lstm_dssm.model_folders import (
    MAX_VERSION,
    model_folder,
    version_folders,
)
from keras_lstm_dssm.plain_files import read_text

Write = Callable[[Path], None]
"""A function that writes a SavedModel into a folder."""

_HIDDEN = ".publish-"


@contextmanager
def publication(models_dir: str | os.PathLike[str]) -> Iterator[None]:
    """Locks a folder of models; removes leftovers of interrupted exports."""
    with lock_folder(models_dir, "publishing models", wait=True):
        for base in Path(models_dir).iterdir():
            remove_unlocked_folders(base, _HIDDEN)
        yield


def publish(
    base: str | os.PathLike[str], write: Write, version: int | None = None
) -> Path:
    """Publishes a SavedModel as a new version, by default the next number."""
    base = Path(base)
    if version is not None and not 1 <= version < MAX_VERSION:
        raise InputError(
            f"version {version}: expected a number from 1, below 2**63"
        )
    if version in version_folders(base):
        raise _version_exists(base, version)
    (folder,) = _publish({base: write}, lambda: [base], version)
    return folder


def publish_together(
    models_dir: str | os.PathLike[str], writers: Mapping[str, Write]
) -> list[Path]:
    """Publishes all models with one new version number, or none of them."""
    models_dir = Path(models_dir)
    return _publish(
        {model_folder(models_dir, name): w for name, w in writers.items()},
        models_dir.iterdir,
    )


def _publish(
    writers: Mapping[Path, Write],
    # Lists the models whose versions the next number must exceed.
    list_models: Callable[[], Iterable[Path]],
    version: int | None = None,
) -> list[Path]:
    """Publishes all models or none, by default with the next number."""
    with ExitStack() as stack:
        folders = {
            base: stack.enter_context(_written(base, write))
            for base, write in writers.items()
        }
        while True:
            newest = (max(version_folders(b), default=0) for b in list_models())
            number = version or 1 + max(newest, default=0)
            if number >= MAX_VERSION:
                raise InputError(
                    f"{next(iter(writers))}: the next version is 2**63, above "
                    "what TF Serving reads; remove version 2**63 - 1"
                )
            try:
                return _rename(folders, str(number))
            except OSError:
                # Another process may have published this number meanwhile.
                taken = [b for b in folders if number in version_folders(b)]
                if not taken:
                    raise
                if version is not None:
                    raise _version_exists(taken[0], version) from None


@contextmanager
def _written(base: Path, write: Write) -> Iterator[Path]:
    """Writes a SavedModel into a hidden folder of `base`; yields the path."""
    base.mkdir(parents=True, exist_ok=True)
    # A running server loads a version as soon as the version's folder appears.
    with hidden_folder(base, _HIDDEN) as hidden:
        # Only the owner can read `hidden`. The server's user must read the
        # version, so `version` is a folder with the usual rights.
        version = hidden / "version"
        try:
            write(version)
        except tf.errors.OpError as error:
            if str(hidden) not in error.message:
                raise
            reason = error.message.split("; ")[-1].split(" [Op:")[0]
            raise InputError(
                f"{base}: the new version cannot be written ({reason}); make "
                "room, or name another folder"
            ) from error
        write_manifest(version)
        for path in (version, *version.rglob("*")):
            flush_to_disk(path)
        yield version


def _rename(folders: Mapping[Path, Path], number: str) -> list[Path]:
    """Renames folders to `number`; undoes all renames after an error."""
    try:
        for base, folder in folders.items():
            folder.rename(base / number)
        for base in folders:
            flush_to_disk(base)
    except BaseException:
        for base, folder in folders.items():
            if not folder.exists():
                (base / number).rename(folder)
        raise
    return [base / number for base in folders]


def _version_exists(base: Path, version: int | None) -> InputError:
    return InputError(
        f"{base}: version {version} exists; published versions never change, "
        "so give another number, or none for the next free one"
    )


def publish_module(
    module: ServedModule,
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes a module as a new version of a model; see `publish`."""
    name = Path(base).resolve().name
    return publish(base, saved_model_writer(module, name), version)


def saved_model_writer(
    module: ServedModule, name: str, sizes: Sequence[int] = WARMUP_SIZES
) -> Write:
    """Returns a function that saves a model with its warm-up requests."""

    def write(folder: Path) -> None:
        save_module(module, folder)
        write_warmup(folder, name, sizes)
        module.write_extra(folder)
        if module.portable:
            module.portable(folder)

    return write


MANIFEST = "MANIFEST.sha256"
"""Name of a version's file of digests; `sha256sum -c` can check the digests."""

_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")
_MAX_BYTES = 1 << 24


def write_manifest(folder: str | os.PathLike[str]) -> Path:
    """Writes the digest and the path of each file in a folder.

    Args:
        folder: A version's folder, with all files except the manifest.

    Returns:
        The file, `folder/MANIFEST.sha256`.

    Raises:
        InputError: The folder has a symbolic link, a device or a pipe, or a
            name with a backslash or an unprintable character.

    Example:
        >>> print(write_manifest("models/scorer/1").read_text())
        f1d2...  assets.extra/tf_serving_warmup_requests
        8c45...  saved_model.pb
        ...
    """
    path = Path(folder, MANIFEST)
    lines = [
        f"{file_hash(Path(folder, name))}  {name}\n" for name in _files(folder)
    ]
    try:
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        error.filename = str(path)  # the error of a full disk has no path
        raise
    return path


def verify_manifest(folder: str | os.PathLike[str]) -> None:
    """Checks that a folder has exactly the files that its manifest lists.

    The check finds files that are damaged, missing or added. An attacker who
    can write in the folder can also change the manifest.

    Args:
        folder: A version's folder.

    Raises:
        InputError: The manifest is missing or cannot be read; or a file is
            missing, has changed, is not listed or is no plain file.

    Example:
        >>> verify_manifest("models/retriever/1")
    """
    listed = _read(Path(folder, MANIFEST))
    present = set(_files(folder))
    for name in sorted(listed.keys() | present):
        if name not in present:
            problem = f"it is missing, and {MANIFEST} lists it"
        elif name not in listed:
            problem = f"{MANIFEST} does not list it"
        elif file_hash(Path(folder, name)) != listed[name]:
            problem = f"found another content than {MANIFEST} says"
        else:
            continue
        raise InputError(
            f"{Path(folder, name)}: {problem}; restore the version from its"
            " export, or export it again"
        )


def _read(path: Path) -> dict[str, str]:
    """Reads a manifest; returns relative path -> digest."""
    remedy = (
        "restore the version from its export, export it again, or serve it"
        " without --verify"
    )
    lines = read_text(path, remedy, max_bytes=_MAX_BYTES).splitlines()
    digests: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in digests:
            raise InputError(
                f"{path}:{number}: found {line!r:.80}, expected a SHA-256"
                " digest, two spaces and a path that is listed once; restore"
                " the version from its export, or export it again"
            )
        digests[match[2]] = match[1]
    return digests


def _files(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yields the relative paths of all files except the manifest."""
    root = Path(folder)
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        if path.is_symlink() or not path.is_file():
            raise InputError(
                f"{path}: found a link or a device, expected a plain file;"
                " copy the version's files, not links to them"
            )
        if not name.isprintable() or "\\" in name:
            raise InputError(
                f"{root}: found the name {name!r}, expected a name without"
                " backslashes or unprintable characters"
            )
        if name != MANIFEST:
            yield name

"""The versions of one model: which are wanted, loaded, offered and dropped."""

import logging
import os
import time
import weakref
from collections.abc import Mapping, Set
from pathlib import Path
from typing import NamedTuple

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.get_model_status_pb2 import ModelVersionStatus
from tensorflow_serving.config.model_server_config_pb2 import ModelConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.server_files import read_models_config
from keras_lstm_dssm.serving.server.servable import Servable
from keras_lstm_dssm.serving.server.signature_call import Fault


def read_config(path: str | os.PathLike[str]) -> dict[str, ModelConfig]:
    """Reads the models that a `models.config` lists, by name.

    Args:
        path: The file, in the text format of `ModelServerConfig`. There may
            be none, which lists nothing.

    Raises:
        InputError: It is not in that format, or lists a model twice, or no
            model (it may just be written; TF Serving, too, takes no action
            on an empty file).
    """
    there = os.path.exists(path)
    parsed = read_models_config(path)
    if there and not parsed.model_config_list.config:
        raise InputError(
            f"{path}: lists no model; list one, or remove the file to have "
            "all served"
        )
    configs: dict[str, ModelConfig] = {}
    for config in parsed.model_config_list.config:
        if config.name in configs:
            raise InputError(
                f"{path}: model {config.name!r} is listed twice; keep one"
            )
        configs[config.name] = config
    return configs


def wanted_versions(
    folders: Mapping[int, Path], config: ModelConfig, latest: int
) -> dict[int, Path]:
    """Returns the versions that a model's policy asks for.

    Args:
        folders: The versions on disk, ascending.
        config: The model's entry in `models.config`. Its
            `model_version_policy` is `latest`, `all` or `specific`, or not
            set.
        latest: How many of the newest without a policy.

    Example:
    >>> wanted_versions({1: one, 2: two}, ModelConfig(), latest=1)
    {2: two}
    """
    policy = config.model_version_policy
    kind = policy.WhichOneof("policy_choice")
    if kind == "all":
        return dict(folders)
    if kind == "specific":
        return {v: folders[v] for v in policy.specific.versions if v in folders}
    if kind == "latest":
        latest = policy.latest.num_versions or 1
    return dict(list(folders.items())[-latest:])


_LOG = logging.getLogger(__name__)


class VersionState(NamedTuple):
    """Where a version stands, as GetModelStatus tells it."""

    state: int
    code: int = 0
    message: str = ""


class Offer(NamedTuple):
    """What answers at one moment."""

    versions: Mapping[int, Servable]
    labels: Mapping[str, int]


class ServedModel:
    """One model; one thread updates it while any number ask it.

    A version passes through the states of TF Serving: START, LOADING (its
    warm-up included), AVAILABLE, UNLOADING (requests still run), END; a
    broken one goes from LOADING to END, with the error.

    Args:
        name: The model's name.

    Attributes:
        offer: The versions that answer and their labels; replaced as a
            whole, so that a request sees what belongs together.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.offer = Offer({}, {})
        self._states: dict[int, VersionState] = {}
        self._broken: dict[int, int] = {}

    def states(self) -> dict[int, VersionState]:
        """Returns all versions ever seen, newest first."""
        return dict(sorted(self._states.copy().items(), reverse=True))

    def broken(self) -> list[str]:
        """Returns why versions did not load, newest first."""
        return [s.message for s in self.states().values() if s.code]

    def label(self, labels: Mapping[str, int]) -> None:
        """Gives versions their labels, in place of those before."""
        self.offer = self.offer._replace(labels=dict(labels))

    def update(self, wanted: Mapping[int, Path]) -> bool:
        """Loads what is new, then drops what is not wanted any more.

        Old versions answer until a wanted one does, as under TF Serving's
        `AvailabilityPreservingPolicy`. A broken version is tried again when
        its files change.

        Args:
            wanted: Version number to folder.

        Returns:
            Whether a version was dropped.
        """
        stamps = {
            version: _stamp(folder)
            for version, folder in wanted.items()
            if version not in self.offer.versions
        }
        self._broken = {v: s for v, s in self._broken.items() if v in wanted}
        new = [
            version
            for version in sorted(stamps, reverse=True)
            if self._broken.get(version) != stamps[version]
        ]
        for version in new:
            self._states[version] = VersionState(ModelVersionStatus.START)
        for version in new:
            try:
                self._load(version, wanted[version])
            except Exception as error:  # whatever it is, others serve on
                self._broken[version] = stamps[version]
                self._fail(version, wanted[version], error)
        versions = self.offer.versions
        unwanted = versions.keys() - wanted.keys()
        if wanted and len(unwanted) == len(versions):
            return False
        if versions and not wanted:
            _LOG.warning("%s: no version is left to serve", self.name)
        self._drop(unwanted)
        return bool(unwanted)

    def _load(self, version: int, folder: Path) -> None:
        start = time.perf_counter()
        self._states[version] = VersionState(ModelVersionStatus.LOADING)
        servable = Servable(self.name, version, folder)
        warmed = servable.warm_up(folder)
        self._hold({**self.offer.versions, version: servable})
        self._states[version] = VersionState(ModelVersionStatus.AVAILABLE)
        _LOG.info(
            "%s version %d: available after %.2f s, %d warm-up requests",
            self.name, version, time.perf_counter() - start, warmed,
        )  # fmt: skip

    def _fail(self, version: int, folder: Path, error: Exception) -> None:
        message = " ".join(str(error).split()) or type(error).__name__
        if str(folder) not in message:
            message = f"{folder}: {message}"
        self._states[version] = VersionState(
            ModelVersionStatus.END, _code(error), message
        )

    def _drop(self, versions: Set[int]) -> None:
        for version in versions:
            unloading = VersionState(ModelVersionStatus.UNLOADING)
            self._states[version] = unloading
            # Requests that run hold the servable; the last of them ends it.
            weakref.finalize(
                self.offer.versions[version], self._end, version, unloading
            ).atexit = False
        held = self.offer.versions.items()
        self._hold({v: one for v, one in held if v not in versions})

    def _hold(self, versions: Mapping[int, Servable]) -> None:
        self.offer = self.offer._replace(versions=versions)

    def _end(self, version: int, unloading: VersionState) -> None:
        # The same number may have been published anew in the meantime.
        if self._states[version] is unloading:
            self._states[version] = VersionState(ModelVersionStatus.END)
            _LOG.info("%s version %d: unloaded", self.name, version)


def _stamp(folder: Path) -> int:
    """When a file of the folder, or its list of files, changed last."""
    try:
        paths = [folder, *folder.rglob("*")]
        return max(path.stat().st_mtime_ns for path in paths)
    except OSError:  # it is being removed
        return 0


def _code(error: BaseException) -> int:
    """Returns the status code by which TF Serving reports a broken version."""
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case Fault():
                return cause.code.value[0]
            case tf.errors.OpError():
                return cause.error_code
            case DecodeError():
                return grpc.StatusCode.DATA_LOSS.value[0]
            case FileNotFoundError():
                return grpc.StatusCode.NOT_FOUND.value[0]
        cause = cause.__cause__
    return grpc.StatusCode.UNKNOWN.value[0]

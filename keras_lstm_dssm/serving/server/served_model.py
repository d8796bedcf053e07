"""Loads, serves and unloads the versions of one model, by its policy."""

import logging
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
from keras_lstm_dssm.export.manifest import verify_manifest
from keras_lstm_dssm.serving.server.servable import Servable
from keras_lstm_dssm.serving.server.signature_call import StatusError

_LOG = logging.getLogger(__name__)


def wanted_versions(
    folders: Mapping[int, Path], config: ModelConfig, latest: int
) -> dict[int, Path]:
    """Returns the versions that a model's policy selects.

    Args:
        folders: The versions on disk, ascending by number.
        config: The model's entry in `models.config`. Its
            `model_version_policy` is `latest`, `all` or `specific`, or is
            not set.
        latest: The number of newest versions to load if it is not set.
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


class VersionState(NamedTuple):
    """The state of a version as GetModelStatus reports it.

    Attributes:
        state: A value of `ModelVersionStatus.State`.
        code: The gRPC status code of a loading error; 0 for OK.
        message: Why the version did not load; empty otherwise.
    """

    state: int
    code: int = 0
    message: str = ""


class Available(NamedTuple):
    """The versions of a model that are served at one moment.

    Attributes:
        versions: Loaded versions by number.
        labels: Version numbers by label.
    """

    versions: Mapping[int, Servable]
    labels: Mapping[str, int]


class ServedModel:
    """Holds the versions of one model; one thread updates, others read it.

    A version passes through the states of TF Serving: START, LOADING (its
    warm-up included), AVAILABLE, UNLOADING (requests still run), END. A
    version that does not load goes from LOADING to END, with an error.

    Args:
        name: The model's name.
        verify: Whether to compare the files of a version with its
            `MANIFEST.sha256` before it is loaded.

    Attributes:
        available: Versions and labels, in a tuple that is replaced as a
            whole, so that the two are consistent for each request.
    """

    def __init__(self, name: str, verify: bool = False) -> None:
        self.name = name
        self._verify = verify
        self.available = Available({}, {})
        self._states: dict[int, VersionState] = {}
        # Versions that did not load, with the time of their last change.
        self._broken: dict[int, int] = {}

    def states(self) -> dict[int, VersionState]:
        """Returns the states of all versions seen so far, newest first."""
        return dict(sorted(self._states.copy().items(), reverse=True))

    def errors(self) -> list[str]:
        """Returns the messages of versions that did not load, newest first."""
        return [s.message for s in self.states().values() if s.code]

    def set_labels(self, labels: Mapping[str, int]) -> None:
        """Replaces the versions' labels."""
        self.available = self.available._replace(labels=dict(labels))

    def update(self, wanted: Mapping[int, Path]) -> bool:
        """Loads new versions, then unloads those that are not wanted.

        Old versions are served until a wanted one is available, as with TF
        Serving's `AvailabilityPreservingPolicy`. A version that did not load
        is loaded again when its files change.

        Args:
            wanted: Version number to folder, for the versions to serve.

        Returns:
            Whether a version was unloaded.
        """
        changed = {
            version: _last_change(folder)
            for version, folder in wanted.items()
            if version not in self.available.versions
        }
        self._broken = {v: t for v, t in self._broken.items() if v in wanted}
        new = [
            version
            for version in sorted(changed, reverse=True)
            if self._broken.get(version) != changed[version]
        ]
        for version in new:
            self._states[version] = VersionState(ModelVersionStatus.START)
        for version in new:
            try:
                self._load(version, wanted[version])
            except Exception as error:  # of any kind: other versions serve on
                self._broken[version] = changed[version]
                self._record_error(version, wanted[version], error)
        versions = self.available.versions
        unwanted = versions.keys() - wanted.keys()
        if wanted and len(unwanted) == len(versions):
            return False
        if versions and not wanted:
            _LOG.warning("%s: no version is left to serve", self.name)
        self._unload(unwanted)
        return bool(unwanted)

    def _load(self, version: int, folder: Path) -> None:
        start = time.perf_counter()
        self._states[version] = VersionState(ModelVersionStatus.LOADING)
        if self._verify:
            _check_files(folder)
        servable = Servable(self.name, version, folder)
        warmed = servable.warm_up(folder)
        self._set_versions({**self.available.versions, version: servable})
        self._states[version] = VersionState(ModelVersionStatus.AVAILABLE)
        _LOG.info(
            "%s version %d: available after %.2f s, %d warm-up requests",
            self.name, version, time.perf_counter() - start, warmed,
        )  # fmt: skip

    def _record_error(
        self, version: int, folder: Path, error: Exception
    ) -> None:
        message = " ".join(str(error).split()) or type(error).__name__
        if str(folder) not in message:
            message = f"{folder}: {message}"
        self._states[version] = VersionState(
            ModelVersionStatus.END, _status_code(error), message
        )

    def _unload(self, versions: Set[int]) -> None:
        for version in versions:
            unloading = VersionState(ModelVersionStatus.UNLOADING)
            self._states[version] = unloading
            # Running requests refer to the servable; when the last of them
            # ends, it is freed, and the version's state becomes END.
            weakref.finalize(
                self.available.versions[version], self._end, version, unloading
            ).atexit = False
        remaining = self.available.versions.items()
        self._set_versions({v: s for v, s in remaining if v not in versions})

    def _set_versions(self, versions: Mapping[int, Servable]) -> None:
        self.available = self.available._replace(versions=versions)

    def _end(self, version: int, unloading: VersionState) -> None:
        # The number may have been published again in the meantime.
        if self._states[version] is unloading:
            self._states[version] = VersionState(ModelVersionStatus.END)
            _LOG.info("%s version %d: unloaded", self.name, version)


def _check_files(folder: Path) -> None:
    """Compares a version's files with its manifest.

    Raises:
        StatusError: They differ (DATA_LOSS).
    """
    try:
        verify_manifest(folder)
    except InputError as error:
        raise StatusError(grpc.StatusCode.DATA_LOSS, str(error)) from error


def _last_change(folder: Path) -> int:
    """Returns when a folder or one of its files last changed, in ns."""
    try:
        paths = [folder, *folder.rglob("*")]
        return max(path.stat().st_mtime_ns for path in paths)
    except OSError:  # a file is being removed
        return 0


def _status_code(error: BaseException) -> int:
    """Returns the code with which TF Serving reports such an error."""
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case StatusError():
                return cause.code.value[0]
            case tf.errors.OpError():
                return cause.error_code
            case DecodeError():
                return grpc.StatusCode.DATA_LOSS.value[0]
            case FileNotFoundError():
                return grpc.StatusCode.NOT_FOUND.value[0]
        cause = cause.__cause__
    return grpc.StatusCode.UNKNOWN.value[0]

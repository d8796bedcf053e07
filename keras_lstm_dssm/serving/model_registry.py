"""Loads versions of models, and selects a version for each request.

`ModelRegistry` holds the models of a folder, and `ModelVersions` holds the
versions of a model.
"""

import gc
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataResponse,
    SignatureDefMap,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusResponse,
    ModelVersionStatus,
)
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.config.model_server_config_pb2 import ModelConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.saved_module import SIGNATURE
from keras_lstm_dssm.export.publish.versions import verify_manifest
from keras_lstm_dssm.model_folders import (
    MODELS_CONFIG,
    Configs,
    live_versions,
    model_folder,
    model_folders,
    read_configs,
    version_folders,
)
from keras_lstm_dssm.serving.servable import InvalidError, Servable, StatusError

_LOG = logging.getLogger(__name__)


class VersionState(NamedTuple):
    """The state of a version in a reply of GetModelStatus."""

    state: int  # a value of `ModelVersionStatus.State`
    code: int = 0  # the gRPC status code of a loading error; 0 for OK
    message: str = ""  # why the version did not load; empty otherwise


class Available(NamedTuple):
    """The versions of a model that are served."""

    versions: Mapping[int, Servable]  # version number -> loaded version
    labels: Mapping[str, int]  # label -> version number


_NOTHING = Available({}, {})


class ModelVersions:
    """Holds the versions of one model; one thread at a time may change them."""

    def __init__(self, name: str, verify: bool = False) -> None:
        self.name = name
        self._verify = verify
        # Each change makes a new `Available`. Therefore a thread gets versions
        # and labels of the same moment.
        self.available = _NOTHING
        self._loaded: dict[int, Servable] = {}  # not yet available
        self._states: dict[int, VersionState] = {}
        # Version that did not load -> time when its files last changed.
        self._broken: dict[int, int] = {}

    def states(self) -> dict[int, VersionState]:
        """Returns version -> state, also of unloaded versions, newest first."""
        return dict(sorted(self._states.copy().items(), reverse=True))

    def errors(self) -> list[str]:
        """Returns the messages of versions that did not load, newest first."""
        return [s.message for s in self.states().values() if s.code]

    def set_labels(self, labels: Mapping[str, int]) -> None:
        """Replaces all labels."""
        self.available = self.available._replace(labels=dict(labels))

    def load(self, expected: Mapping[int, Path]) -> None:
        """Loads new versions, and failed versions whose files have changed."""
        changed = {
            version: _last_change(folder)
            for version, folder in expected.items()
            if version not in self.available.versions
        }
        self._broken = {v: t for v, t in self._broken.items() if v in expected}
        new_versions = [
            version
            for version in sorted(changed, reverse=True)
            if self._broken.get(version) != changed[version]
        ]
        for version in new_versions:
            self._states[version] = VersionState(ModelVersionStatus.START)
        for version in new_versions:
            try:
                self._load(version, expected[version])
            except Exception as error:  # other versions must still load
                self._broken[version] = changed[version]
                self._record_error(version, expected[version], error)

    def serve(self) -> None:
        """Makes the loaded versions available; old versions stay available."""
        versions = {**self.available.versions, **self._loaded}
        self.available = self.available._replace(versions=versions)
        for version in self._loaded:
            self._states[version] = VersionState(ModelVersionStatus.AVAILABLE)
        self._loaded = {}

    def unload(self, expected: Mapping[int, Path]) -> bool:
        """Unloads unexpected versions; returns whether any were unloaded."""
        versions = self.available.versions
        surplus = versions.keys() - expected.keys()
        # The old versions stay until an expected version is available, as with
        # TF Serving's `AvailabilityPreservingPolicy`.
        if expected and len(surplus) == len(versions):
            return False
        if versions and not expected:
            _LOG.warning("%s: no version is left to serve", self.name)
        self._unload(surplus)
        return bool(surplus)

    def _load(self, version: int, folder: Path) -> None:
        start = time.perf_counter()
        self._states[version] = VersionState(ModelVersionStatus.LOADING)
        with _verified(folder) if self._verify else nullcontext():
            servable = Servable(self.name, version, folder)
            warmed = servable.warm_up(folder)
        self._loaded[version] = servable
        _LOG.info(
            "%s version %d: loaded after %.2f s, %d warm-up requests",
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
            # `_end` is called once no running request refers to the servable.
            weakref.finalize(
                self.available.versions[version], self._end, version, unloading
            ).atexit = False
        served = self.available.versions.items()
        remaining = {v: s for v, s in served if v not in versions}
        self.available = self.available._replace(versions=remaining)

    def _end(self, version: int, unloading: VersionState) -> None:
        # A new version with the same number may have replaced the state.
        if self._states[version] is unloading:
            self._states[version] = VersionState(ModelVersionStatus.END)
            _LOG.info("%s version %d: unloaded", self.name, version)


@contextmanager
def _verified(folder: Path) -> Iterator[None]:
    """Checks that the files loaded in the `with` block match the manifest."""
    real, models_dir = folder.resolve(), folder.parent.parent.resolve()
    if not real.is_relative_to(models_dir):
        raise _data_loss(
            f"{folder}: found a link to {real}, which is outside {models_dir};"
            " replace the link by a copy of the version"
        )
    # Files could change after the check, so their states before the check and
    # after loading are compared. No program can forge `st_ctime_ns`.
    states_before = _file_states(folder)
    try:
        verify_manifest(folder)
    except InputError as error:
        raise _data_loss(str(error)) from error
    yield
    if _file_states(folder) != states_before:
        raise _data_loss(f"{folder}: it changed while it was loaded")


def _data_loss(message: str) -> StatusError:
    return StatusError(grpc.StatusCode.DATA_LOSS, message)


def _file_states(folder: Path) -> list[tuple[int, ...]]:
    states = [path.stat() for path in [folder, *sorted(folder.rglob("*"))]]
    return [
        (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        for s in states
    ]


def _last_change(folder: Path) -> int:
    """Returns when a folder last changed, in nanoseconds; 0 on an error."""
    try:
        return max(mtime for *_, mtime, _ in _file_states(folder))
    except OSError:  # a file is being removed
        return 0


def _status_code(error: BaseException) -> int:
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


class ModelRegistry:
    """Loads the models of a folder, and keeps served versions in memory.

    Without a policy in `models.config`, the `versions` newest versions of a
    model are served.
    """

    def __init__(
        self,
        models_dir: str | os.PathLike[str],
        versions: int = 1,
        verify: bool = False,
    ) -> None:
        self.models_dir = Path(models_dir)
        self._verify = verify
        self._version_count = versions
        self._models: dict[str, ModelVersions] = {}
        # Requests read this mapping, which is only replaced as a whole.
        self._served: Mapping[str, Available] = {}
        self._expected: Set[str] = set()
        self._lock = threading.Lock()
        self._has_garbage = False
        model_folders(self.models_dir)  # raises InputError without a model
        # Any `base_path` is ignored, because it is a path in a container.
        self._configs = read_configs(self.models_dir / MODELS_CONFIG)
        if self._configs is not None and not self._configs:
            raise InputError(
                f"{self.models_dir / MODELS_CONFIG}: lists no model; list "
                "one, or remove the file to serve all models"
            )
        problems = self._update_models()
        for name, model in self._models.items():
            if not model.available.versions:
                raise InputError(
                    "; ".join(model.errors())
                    or f"{self.models_dir / name}: none of the versions that "
                    "models.config asks for exists"
                )
        # Labels are set last, because they refer to loaded versions.
        problems = self._set_labels(self._configs) + problems
        if problems:
            raise InputError("; ".join(problems))
        self._warn_of(self._errors())

    def refresh(self) -> None:
        """Loads new versions, and unloads old versions.

        Raises `InputError` if a folder or `models.config` is wrong.
        """
        with self._lock:
            if self._has_garbage:
                # The graphs of unloaded models have reference cycles.
                gc.collect()
                self._has_garbage = False
            old_errors = self._errors()
            problems = self._read_configs()
            try:
                problems += self._update_models()
            except OSError as error:
                problems.append(f"{self.models_dir}: {error.strerror}")
            self._warn_of(self._errors() - old_errors)
            if problems:
                raise InputError("; ".join(problems))

    def _read_configs(self) -> list[str]:
        """Reads `models.config` again, sets labels, and returns errors."""
        try:
            configs = read_configs(self.models_dir / MODELS_CONFIG)
        except (InputError, OSError) as error:
            return [str(error)]
        problems = self._set_labels(configs)
        if not problems:
            self._configs = configs
        return problems

    def _update_models(self) -> list[str]:
        """Loads and unloads versions; returns errors of folders."""
        problems: list[str] = []
        folders: dict[str, dict[int, Path]] = {}
        for path in sorted(self.models_dir.iterdir()):
            if self._may_be_model(path):
                try:
                    base = model_folder(self.models_dir, path.name)
                    folders[path.name] = version_folders(base)
                except InputError as error:
                    problems.append(str(error))
        if self._configs is None:
            # A model without a version in its folder is not expected.
            self._expected = {name for name in folders if folders[name]}
        else:
            self._expected = self._configs.keys()
        expected = {
            name: live_versions(
                versions,
                (self._configs or {}).get(name, ModelConfig()),
                self._version_count,
            )
            for name, versions in folders.items()
        }
        if self._configs is not None:
            dropped = sorted(self._models.keys() - self._configs.keys())
            expected |= {name: {} for name in dropped}
        self._replace_versions(expected)
        if self._configs is None:
            # Models without a folder stay: the disk may have been unmounted.
            return problems
        missing = [name for name in self._configs if not folders.get(name)]
        if missing:
            problems.append(
                f"{self.models_dir}: models.config lists "
                f"{', '.join(sorted(missing))}, which is not in this folder "
                "or has no version; export it, or remove it from the list"
            )
        return problems

    def _may_be_model(self, path: Path) -> bool:
        name = path.name
        if not path.is_dir():
            return False
        if self._configs is not None:
            return name in self._configs
        if name.startswith("."):
            return False
        # A known model that has no version left must be unloaded.
        return name in self._models or bool(version_folders(path))

    def _errors(self) -> set[str]:
        models = self._models.values()
        return {message for model in models for message in model.errors()}

    @staticmethod
    def _warn_of(messages: set[str]) -> None:
        for message in sorted(messages):
            _LOG.warning("%s; other versions are still served", message)

    def _set_labels(self, configs: Configs) -> list[str]:
        """Sets all labels, or none if there are errors; returns the errors."""
        configs = configs or {}
        problems = [
            f"Request to assign label to version {version} of model {name}, "
            "which is not currently available for inference; let a "
            "model_version_policy load it first, and then label it"
            for name, config in configs.items()
            for version in config.version_labels.values()
            if version not in self.versions(name)
        ]
        if not problems:
            for name, model in self._models.items():
                config = configs.get(name, ModelConfig())
                model.set_labels(config.version_labels)
            self._publish()
        return problems

    def _replace_versions(
        self, expected: Mapping[str, Mapping[int, Path]]
    ) -> None:
        new_models = {
            name: ModelVersions(name, self._verify)
            for name in expected.keys() - self._models.keys()
        }
        # Other threads may read the old dictionary, so it is not changed.
        self._models = dict(sorted({**self._models, **new_models}.items()))
        for name, versions in expected.items():
            self._models[name].load(versions)
        for name in expected:
            self._models[name].serve()
        self._publish()
        for name, versions in expected.items():
            self._has_garbage |= self._models[name].unload(versions)
        self._publish()

    def _publish(self) -> None:
        """Lets requests see the current versions of all models, in one step."""
        self._served = {n: model.available for n, model in self._models.items()}

    def find(self, spec: ModelSpec) -> Servable:
        """Returns the requested version, by default the newest."""
        if not spec.name:
            raise InvalidError("ModelSpec has no name specified.")
        available = self._served.get(spec.name, _NOTHING)
        choice = spec.WhichOneof("version_choice")
        if choice is None:
            version = max(available.versions, default=0)
            requested = f"Latest({spec.name})"
        else:
            version = spec.version.value
            if choice == "version_label":
                if spec.version_label not in available.labels:
                    raise InvalidError(
                        "Unrecognized servable version label: "
                        f"{spec.version_label}"
                    )
                version = available.labels[spec.version_label]
            requested = f"Specific({spec.name}, {version})"
        if version not in available.versions:
            raise StatusError(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: {requested}",
            )
        return available.versions[version]

    def find_together(
        self, names: Sequence[str], version: int | None = None
    ) -> list[Servable]:
        """Returns `version` of models, by default the newest common version."""
        served = self._served  # another thread may replace the attribute
        by_model = [served.get(name, _NOTHING).versions for name in names]
        common = set.intersection(*map(set, by_model))
        chosen = max(common, default=None) if version is None else version
        if chosen not in common:
            number = "" if version is None else f" {version}"
            raise StatusError(
                grpc.StatusCode.NOT_FOUND,
                f"{' and '.join(names)} have no version{number} in common",
            )
        return [versions[chosen] for versions in by_model]

    def known(self, name: str, signature: str) -> tuple[str, str]:
        """Returns the model and the signature, or "" for what is not served."""
        if name not in self._served:
            return "", ""
        for servable in self._served[name].versions.values():
            if servable.signature(signature):
                return name, signature or SIGNATURE
        return name, ""

    def states(self, name: str) -> dict[int, VersionState]:
        """Returns the states of all versions of a model, newest first."""
        model = self._models.get(name)
        return model.states() if model else {}

    def versions(self, name: str) -> list[int]:
        """Returns the served versions of a model, ascending."""
        return sorted(self.served(name))

    def served(self, name: str) -> Mapping[int, Servable]:
        """Returns version number -> served version; {} for an unknown model."""
        return self._served.get(name, _NOTHING).versions

    def created(self, name: str) -> int:
        """Returns the newest version's last change, Unix time; 0 if removed."""
        version = max(self.versions(name))
        folders = version_folders(model_folder(self.models_dir, name))
        if version not in folders:
            return 0
        return _last_change(folders[version]) // 10**9

    def names(self) -> list[str]:
        """Returns the names of all models, also of unloaded models, sorted."""
        return sorted(self._models)

    def unavailable(self) -> list[str]:
        """Returns the models that should be served but have no version."""
        return sorted(
            name for name in self._expected if not self.versions(name)
        )


def model_metadata(
    models: ModelRegistry, spec: ModelSpec
) -> GetModelMetadataResponse:
    """Returns the signatures of the requested version."""
    servable = models.find(spec)
    reply = GetModelMetadataResponse()
    reply.model_spec.name = servable.name
    reply.model_spec.version.value = servable.version
    reply.metadata["signature_def"].Pack(
        SignatureDefMap(signature_def=servable.signature_defs)
    )
    return reply


def model_status(
    models: ModelRegistry, spec: ModelSpec
) -> GetModelStatusResponse:
    """Returns the states of a model's versions, or of the requested version."""
    states = models.states(spec.name)
    missing = f"Could not find any versions of model {spec.name}"
    if spec.HasField("version"):  # a label is ignored, as in TF Serving
        number = spec.version.value
        states = {number: states[number]} if number in states else {}
        missing = f"Could not find version {number} of model {spec.name}"
    if not states:
        raise StatusError(grpc.StatusCode.NOT_FOUND, missing)
    reply = GetModelStatusResponse()
    for version, (state, code, message) in states.items():
        status = reply.model_version_status.add(version=version, state=state)
        status.status.error_code = code
        status.status.error_message = message
    return reply

"""Loads the models of a folder, and finds the version for a request."""

import gc
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import grpc
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.config.model_server_config_pb2 import ModelConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.model_versions import (
    model_folder,
    model_folders,
    version_folders,
)
from keras_lstm_dssm.export.models_config import read_models_config
from keras_lstm_dssm.export.saved_module import SIGNATURE
from keras_lstm_dssm.serving.server.servable import Servable
from keras_lstm_dssm.serving.server.served_model import (
    Available,
    ServedModel,
    VersionState,
    wanted_versions,
)
from keras_lstm_dssm.serving.server.signature_call import (
    StatusError,
    invalid_argument,
)

_LOG = logging.getLogger(__name__)

Configs = Mapping[str, ModelConfig] | None
"""The models that `models.config` lists, by name; None without the file."""


class ModelRegistry:
    """Holds the models of a folder, with their served versions in memory.

    If the folder has a `models.config`, it says which models and versions
    are served and what their labels are; its `base_path`s are those of a
    container and are ignored. Without the file every model is served.

    Args:
        models_dir: The folder, with `NAME/NUMBER/saved_model.pb` in it.
        versions: Number of the newest versions to load of a model without a
            `model_version_policy`, by default 1.
        verify: Whether to compare the files of a version with its
            `MANIFEST.sha256` before it is loaded.

    Raises:
        InputError: There is no model in the folder, one does not load, or
            `models.config` is wrong.
    """

    def __init__(
        self,
        models_dir: str | os.PathLike[str],
        versions: int = 1,
        verify: bool = False,
    ) -> None:
        self._models_dir = Path(models_dir)
        self._verify = verify
        self._latest = versions
        self._models: dict[str, ServedModel] = {}
        self._lock = threading.Lock()
        self._unloaded = False
        model_folders(self._models_dir)  # raises if there is no model
        self._configs = read_configs(self._models_dir / "models.config")
        if self._configs is not None and not self._configs:
            raise InputError(
                f"{self._models_dir / 'models.config'}: lists no model; list "
                "one, or remove the file to serve all models"
            )
        problems = self._update_models()
        for name, model in self._models.items():
            if not model.available.versions:
                raise InputError(
                    "; ".join(model.errors())
                    or f"{self._models_dir / name}: none of the versions that "
                    "models.config asks for exists"
                )
        # Labels refer to loaded versions, so they are set last.
        problems = self._label(self._configs) + problems
        if problems:
            raise InputError("; ".join(problems))
        self._warn_of(self._errors())

    def refresh(self) -> None:
        """Loads new versions from disk and unloads those no longer served.

        Meanwhile the old or the new version answers requests. A version that
        does not load is logged, and reported by `states`.

        Raises:
            InputError: The folder is missing, a name in it is no valid model
                name, `models.config` lists a model that is missing, or the
                file is wrong. All other models are updated; if the file is
                wrong, the last correct configuration still applies.
        """
        with self._lock:
            if self._unloaded:
                # The variables of an unloaded model are freed with its last
                # request, but its graph has reference cycles.
                gc.collect()
                self._unloaded = False
            known = self._errors()
            problems = self._read_configs()
            try:
                problems += self._update_models()
            except OSError as error:
                problems.append(f"{self._models_dir}: {error.strerror}")
            self._warn_of(self._errors() - known)
            if problems:
                raise InputError("; ".join(problems))

    def _read_configs(self) -> list[str]:
        """Reads `models.config` again, and returns the errors in it.

        As in TF Serving, only a version that is loaded already can get a
        label.
        """
        try:
            configs = read_configs(self._models_dir / "models.config")
        except (InputError, OSError) as error:
            return [str(error)]
        problems = self._label(configs)
        if not problems:
            self._configs = configs
        return problems

    def _update_models(self) -> list[str]:
        """Loads and unloads versions, and returns the errors in the folder."""
        problems: list[str] = []
        folders: dict[str, dict[int, Path]] = {}
        for path in sorted(self._models_dir.iterdir()):
            if self._may_be_model(path):
                try:
                    base = model_folder(self._models_dir, path.name)
                    folders[path.name] = version_folders(base)
                except InputError as error:
                    problems.append(str(error))
        for name, versions in folders.items():
            config = (self._configs or {}).get(name, ModelConfig())
            self._update(name, wanted_versions(versions, config, self._latest))
        if self._configs is None:
            # A model whose folder is missing is still served: the disk may
            # have been unmounted.
            return problems
        for name in sorted(self._models.keys() - self._configs.keys()):
            self._update(name, {})
        missing = [name for name in self._configs if not folders.get(name)]
        if missing:
            problems.append(
                f"{self._models_dir}: models.config lists "
                f"{', '.join(sorted(missing))}, which is not in this folder "
                "or has no version; export it, or remove it from the list"
            )
        return problems

    def _may_be_model(self, path: Path) -> bool:
        """Returns whether a folder is a model's, by configuration or files."""
        name = path.name
        if not path.is_dir():
            return False
        if self._configs is not None:
            return name in self._configs
        if name.startswith("."):
            return False
        return name in self._models or bool(version_folders(path))

    def _errors(self) -> set[str]:
        models = self._models.values()
        return {message for model in models for message in model.errors()}

    @staticmethod
    def _warn_of(messages: set[str]) -> None:
        for message in sorted(messages):
            _LOG.warning("%s; other versions serve on", message)

    def _label(self, configs: Configs) -> list[str]:
        """Sets all labels, or none if there are errors; returns the errors."""
        configs = configs or {}
        problems = [
            f"Request to assign label to version {version} of model {name}, "
            "which is not currently available for inference; have it loaded "
            "by a model_version_policy first, and then label it"
            for name, config in configs.items()
            for version in config.version_labels.values()
            if version not in self.versions(name)
        ]
        if not problems:
            for name, model in self._models.items():
                config = configs.get(name, ModelConfig())
                model.set_labels(config.version_labels)
        return problems

    def _update(self, name: str, wanted: Mapping[int, Path]) -> None:
        model = self._models.get(name) or ServedModel(name, self._verify)
        # A copy replaces the dictionary, because other threads read it.
        self._models = {**self._models, name: model}
        self._unloaded |= model.update(wanted)

    def find(self, spec: ModelSpec) -> Servable:
        """Returns the requested version, by default the newest.

        Raises:
            StatusError: There is no such model or version (NOT_FOUND), or the
                name is empty or the label unknown (INVALID_ARGUMENT).
        """
        if not spec.name:
            raise invalid_argument("ModelSpec has no name specified.")
        model = self._models.get(spec.name)
        available = model.available if model else Available({}, {})
        choice = spec.WhichOneof("version_choice")
        if choice is None:
            version = max(available.versions, default=0)
            wanted = f"Latest({spec.name})"
        else:
            version = spec.version.value
            if choice == "version_label":
                if spec.version_label not in available.labels:
                    raise invalid_argument(
                        "Unrecognized servable version label: "
                        f"{spec.version_label}"
                    )
                version = available.labels[spec.version_label]
            wanted = f"Specific({spec.name}, {version})"
        if version not in available.versions:
            raise StatusError(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: {wanted}",
            )
        return available.versions[version]

    def known(self, name: str, signature: str) -> tuple[str, str]:
        """Returns the names if they are a model's and a signature's, or "".

        They label metrics, whose number must not grow with wrong requests.
        """
        model = self._models.get(name)
        if model is None:
            return "", ""
        for servable in model.available.versions.values():
            if servable.signature(signature):
                return name, signature or SIGNATURE
        return name, ""

    def states(self, name: str) -> dict[int, VersionState]:
        """Returns the states of a model's versions, newest first.

        Unloaded versions are included; an unknown model has no states.
        """
        model = self._models.get(name)
        return model.states() if model else {}

    def versions(self, name: str) -> list[int]:
        """Returns the versions that are served, ascending; none if unknown."""
        model = self._models.get(name)
        return sorted(model.available.versions) if model else []

    def names(self) -> list[str]:
        """Returns the names of all models, ascending."""
        return sorted(self._models)


def read_configs(path: Path) -> Configs:
    """Reads `models.config`.

    Args:
        path: The file, a `ModelServerConfig` in text format. It may be
            missing.

    Returns:
        The listed models by name; an empty dict for `model_config_list {}`,
        which unloads all; None without the file.

    Raises:
        InputError: The file has another format, lists a model twice, or has
            no `model_config_list`: TF Serving ignores such a file, which may
            be incomplete because it is being written.
    """
    if not path.exists():
        return None
    listed = read_models_config(path)
    if not listed.HasField("model_config_list"):
        raise InputError(
            f"{path}: has no model_config_list; list a model, write "
            "model_config_list {} to unload all, or remove the file to serve "
            "all models"
        )
    configs: dict[str, ModelConfig] = {}
    for config in listed.model_config_list.config:
        if config.name in configs:
            raise InputError(
                f"{path}: model {config.name!r} is listed twice; keep one"
            )
        configs[config.name] = config
    return configs

"""The models a server holds, found by the ModelSpec of a request."""

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
from keras_lstm_dssm.export.model_versions import model_folders, version_folders
from keras_lstm_dssm.serving.server.servable import Servable
from keras_lstm_dssm.serving.server.served_model import (
    Offer,
    ServedModel,
    VersionState,
    read_config,
    wanted_versions,
)
from keras_lstm_dssm.serving.server.signature_call import Fault, invalid

_LOG = logging.getLogger(__name__)


class Registry:
    """Every model of a folder, the wanted versions of each in memory.

    `models.config`, where it lies in the folder, says which models and
    versions are served and which labels they bear; its paths are those of a
    container and are not read. Without it every model is served.

    Args:
        models_dir: The folder, `NAME/NUMBER/saved_model.pb` in it.
        versions: How many of the newest versions to load where there is no
            `model_version_policy`.

    Raises:
        InputError: There is no model in the folder, one does not load, or
            `models.config` is wrong.
    """

    def __init__(
        self, models_dir: str | os.PathLike[str], versions: int = 1
    ) -> None:
        self._models_dir = Path(models_dir)
        self._versions = versions
        self._models: dict[str, ServedModel] = {}
        self._configs: Mapping[str, ModelConfig] = {}
        self._lock = threading.Lock()
        self._dropped = False
        self._refresh()
        for name, model in self._models.items():
            if not model.offer.versions:
                raise InputError(
                    "; ".join(model.broken())
                    or f"{self._models_dir / name}: none of the versions that "
                    "models.config asks for is there"
                )
        self._warn_of(self._broken())

    def refresh(self) -> None:
        """Loads what is new on disk and drops what is not wanted any more.

        Requests go on meanwhile: they see the old version or the new one. A
        version that does not load is logged, and told by `states`.

        Raises:
            InputError: There is no model in the folder. Or `models.config`
                is wrong: new versions are loaded as its last form that was
                right says. Models on its list that are not there are passed
                over.
        """
        with self._lock:
            known = self._broken()
            try:
                self._refresh()
            finally:
                self._warn_of(self._broken() - known)

    def _refresh(self) -> None:
        if self._dropped:
            # Loaded models lie in reference cycles. By now the requests that
            # held the dropped ones are done.
            gc.collect()
        self._dropped = False
        starting = not self._models
        configs, wrong = self._read(starting)
        folders = model_folders(self._models_dir)
        missing = configs.keys() - folders.keys()
        names = (configs or folders).keys() - missing
        for name in sorted(names):
            config = configs.get(name, ModelConfig())
            wanted = wanted_versions(
                version_folders(folders[name]), config, self._versions
            )
            self._update(name, wanted)
        for name in self._models.keys() - names - missing:
            # A model whose whole folder is gone serves on: the disk may have
            # been unmounted.
            if configs or (self._models_dir / name).is_dir():
                self._update(name, {})
        if starting:
            wrong = self._label(configs)
        self._configs = configs
        if missing:
            wrong.append(
                f"{self._models_dir}: models.config lists "
                f"{', '.join(sorted(missing))}, which is not in this folder; "
                "export it, or take it off the list"
            )
        if wrong:
            raise InputError("; ".join(wrong))

    def _read(
        self, starting: bool
    ) -> tuple[Mapping[str, ModelConfig], list[str]]:
        """Returns the configuration that counts, and what is wrong with it.

        As under TF Serving labels come first: they find their versions loaded
        by an earlier change. Only at the start they wait.
        """
        try:
            found = read_config(self._models_dir / "models.config")
        except (InputError, OSError) as error:
            if starting:
                raise
            return self._configs, [str(error)]
        wrong = [] if starting else self._label(found)
        return (self._configs if wrong else found), wrong

    def _broken(self) -> set[str]:
        models = self._models.values()
        return {message for model in models for message in model.broken()}

    @staticmethod
    def _warn_of(messages: set[str]) -> None:
        for message in sorted(messages):
            _LOG.warning("%s; other versions serve on", message)

    def _label(self, configs: Mapping[str, ModelConfig]) -> list[str]:
        """Gives out all labels, or none and returns why."""
        wrong = [
            f"Request to assign label to version {version} of model {name}, "
            "which is not currently available for inference; have it loaded "
            "by a model_version_policy first, and then label it"
            for name, config in configs.items()
            for version in config.version_labels.values()
            if version not in self.versions(name)
        ]
        if not wrong:
            for name, model in self._models.items():
                model.label(configs.get(name, ModelConfig()).version_labels)
        return wrong

    def _update(self, name: str, wanted: Mapping[int, Path]) -> None:
        model = self._models.get(name) or ServedModel(name)
        # Copied, since other threads read it.
        self._models = {**self._models, name: model}
        self._dropped |= model.update(wanted)

    def find(self, spec: ModelSpec) -> Servable:
        """Returns the version asked for, by default the newest.

        Raises:
            Fault: As TF Serving names it: no such model or version
                (NOT_FOUND), an empty name or an unknown label
                (INVALID_ARGUMENT).
        """
        if not spec.name:
            raise invalid("ModelSpec has no name specified.")
        model = self._models.get(spec.name)
        offer = model.offer if model else Offer({}, {})
        choice = spec.WhichOneof("version_choice")
        if choice is None:
            version = max(offer.versions, default=0)
            wanted = f"Latest({spec.name})"
        else:
            version = spec.version.value
            if choice == "version_label":
                if spec.version_label not in offer.labels:
                    raise invalid(
                        "Unrecognized servable version label: "
                        f"{spec.version_label}"
                    )
                version = offer.labels[spec.version_label]
            wanted = f"Specific({spec.name}, {version})"
        if version not in offer.versions:
            raise Fault(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: {wanted}",
            )
        return offer.versions[version]

    def states(self, name: str) -> dict[int, VersionState]:
        """Returns the versions ever seen, newest first; none if unknown."""
        model = self._models.get(name)
        return model.states() if model else {}

    def versions(self, name: str) -> list[int]:
        """Returns the numbers that answer, ascending; none if unknown."""
        model = self._models.get(name)
        return sorted(model.offer.versions) if model else []

    def names(self) -> list[str]:
        """Returns the names of all models, ascending."""
        return sorted(self._models)

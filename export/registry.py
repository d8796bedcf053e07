"""The models a server holds, found by the ModelSpec of a request."""

import os

import grpc
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.export.fault import Fault, invalid
from keras_lstm_dssm.export.servable import Servable
from keras_lstm_dssm.export.versions import model_folders, version_folders


class Registry:
    """Every model of a folder, the newest versions of each in memory.

    Args:
        models_dir: The folder, `NAME/NUMBER/saved_model.pb` in it.
        versions: How many of the newest versions to load, as TF Serving's
            `model_version_policy { latest { num_versions } }`.

    Raises:
        InputError: There is no model in the folder, or one does not load.
    """

    def __init__(
        self, models_dir: str | os.PathLike[str], versions: int = 1
    ) -> None:
        self._models_dir = models_dir
        self._versions = versions
        self._models: dict[str, dict[int, Servable]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Loads what is new on disk and drops what is not wanted any more.

        Requests go on meanwhile: they see the old models or the new ones.
        """
        models: dict[str, dict[int, Servable]] = {}
        for name, base in model_folders(self._models_dir).items():
            held = self._models.get(name, {})
            newest = list(version_folders(base).items())[-self._versions :]
            models[name] = {
                version: held.get(version) or Servable(name, version, folder)
                for version, folder in newest
            }
        self._models = models

    def find(self, spec: ModelSpec) -> Servable:
        """Returns the version asked for, by default the newest.

        Raises:
            Fault: As TF Serving names it: no such model or version
                (NOT_FOUND), an empty name or a label (INVALID_ARGUMENT).
        """
        if not spec.name:
            raise invalid("ModelSpec has no name specified.")
        if spec.HasField("version_label"):
            raise invalid(
                "Unrecognized servable version label: " + spec.version_label
            )
        held = self._models.get(spec.name, {})
        if spec.HasField("version"):
            version = spec.version.value
            wanted = f"Specific({spec.name}, {version})"
        else:
            version = max(held, default=0)
            wanted = f"Latest({spec.name})"
        if version not in held:
            raise Fault(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: {wanted}",
            )
        return held[version]

    def versions(self, name: str) -> list[int]:
        """Returns the numbers in memory, ascending; none if unknown."""
        return sorted(self._models.get(name, {}))

    def names(self) -> list[str]:
        """Returns the names of all models, ascending."""
        return sorted(self._models)

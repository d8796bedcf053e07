"""RunFolder: the files of one training run."""

import json
import os
from pathlib import Path
from typing import Any

import keras

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing, write_json


class RunFolder:
    """Paths of a run, and how its model and results are stored.

    `config.json`, `checkpoints/last.keras` (with the optimizer, to resume
    from), `model.keras` (without), `history.csv`, `metrics.json` and `logs/`
    for TensorBoard. Every file is written beside its place and renamed.

    Args:
        path: The folder.

    Example:
    >>> RunFolder("build/run").load_model().query_encoder.encode(["bolt"])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.checkpoint = self.path / "checkpoints" / "last.keras"
        self.model = self.path / "model.keras"
        self.history = self.path / "history.csv"
        self.metrics = self.path / "metrics.json"
        self.logs = self.path / "logs"

    def create(self, config: dict[str, Any]) -> None:
        """Makes the folder and writes what the run is made of.

        Raises:
            InputError: There is a run in it already.
        """
        if self.config.exists():
            raise InputError(
                f"{self.path}: there is a run here already; go on with it by "
                "--resume, or name another folder"
            )
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.config, config)

    def read_config(self) -> dict[str, Any]:
        """Returns what `create` was given.

        Raises:
            InputError: There is no run in the folder.
        """
        if not self.config.exists():
            raise InputError(
                f"{self.path}: no run here (no config.json); train one with "
                f"lstm-dssm-train --output={self.path}"
            )
        config: dict[str, Any] = json.loads(self.config.read_text())
        return config

    def save(self, model: keras.Model, path: Path) -> None:
        """Saves a model under one of the run's names."""
        with replacing(path) as partial:
            model.save(partial)

    def load_model(self) -> Any:
        """Loads the trained `TwoTower`.

        Raises:
            InputError: The folder has no model, or one that cannot be read.
        """
        if not self.model.exists():
            raise InputError(
                f"{self.path}: no model here (no model.keras); train one with "
                f"lstm-dssm-train --output={self.path}"
            )
        return self._load(self.model)

    def load_checkpoint(self) -> Any:
        """Loads the model with its optimizer, as it was last saved.

        Raises:
            InputError: The folder has no checkpoint.
        """
        if not self.checkpoint.exists():
            raise InputError(
                f"{self.path}: nothing to resume (no {self.checkpoint.name}); "
                "train without --resume"
            )
        return self._load(self.checkpoint)

    def add_metrics(self, name: str, values: dict[str, Any]) -> None:
        """Sets one entry of `metrics.json`, such as `"test"`."""
        known = (
            json.loads(self.metrics.read_text())
            if self.metrics.exists()
            else {}
        )
        write_json(self.metrics, {**known, name: values})

    def _load(self, path: Path) -> Any:
        try:
            return keras.saving.load_model(path)
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise InputError(
                f"{path}: not a model this version can read ({error}); train "
                "again or use the version that wrote it"
            ) from error


def load_run(path: str | os.PathLike[str]) -> Any:
    """Loads the trained `TwoTower` of a run folder.

    Raises:
        InputError: The folder has no model.

    Example:
    >>> model = dssm.load_run("build/run")
    """
    return RunFolder(path).load_model()

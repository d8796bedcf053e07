"""WorkerRun: a run that several processes begin, or resume, together."""

import dataclasses
import json
import os
import sys
from typing import Any

from keras_lstm_dssm.data import ClickLog, alphabet_warning, judged_negatives
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import Recipe, TwoTower, recipe_from_dict
from keras_lstm_dssm.training.joint_stop import STOP_FILE
from keras_lstm_dssm.training.parent import Parent
from keras_lstm_dssm.training.run_config import (
    check_same_data,
    new_config,
    warn_of_version,
)
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.tower_training import TowerTraining
from keras_lstm_dssm.training.training_data import (
    DataOptions,
    TrainingData,
    open_clicks,
)
from keras_lstm_dssm.training.worker_plan import WorkerPlan, share_of
from keras_lstm_dssm.training.worker_settings import WorkerSettings
from keras_lstm_dssm.workers import Collectives
from keras_lstm_dssm.workers.agreement import on_each, on_first


class WorkerRun:
    """Begins the run that several processes train together, or resumes it.

    Worker 0 reads and writes what is there once for all workers; the others
    wait, and read the files that it has written.

    Args:
        collectives: The workers.
        folder: The run folder, which worker 0 has locked.
        settings: What to train on; `None` for a run in the folder.

    Attributes:
        config: Content of the `config.json` of a run to go on with; `None`
            for a new run.
        settings: What to train on.
        recipe: The recipe.
        data: The data.

    Raises:
        JointError: The run in the folder has other settings or another
            number of workers, or a file of it is damaged.
    """

    def __init__(
        self,
        collectives: Collectives,
        folder: RunFolder,
        settings: WorkerSettings | None,
    ) -> None:
        self.collectives = collectives
        self.folder = folder
        self.config: dict[str, Any] | None = on_first(
            collectives, lambda: self._config(settings)
        )
        if self.config is not None:
            settings = WorkerSettings.from_config(folder, self.config)
        assert settings is not None
        self.settings = settings
        recipe = recipe_from_dict(settings.recipe)
        assert isinstance(recipe, Recipe)
        self.recipe = recipe
        self.data = TrainingData(**settings.data)

    def _config(self, settings: WorkerSettings | None) -> Any:
        """Reads `config.json` if the folder has a run; `None` for a new run."""
        folder = self.folder
        if settings is not None and not folder.config.exists():
            (folder.path / STOP_FILE).unlink(missing_ok=True)
            return None
        config = folder.read_config()
        started = WorkerSettings.from_config(folder, config)
        size = self.collectives.cluster.size
        found = _compared(started, config.get("workers", 1))
        expected = _compared(settings or started, size)
        for name, value in expected.items():
            if found[name] != value:
                raise InputError(
                    f"{folder.path}: the run was started with {name} "
                    f"{found[name]}, not {value}: start with the same, "
                    "or train anew in another --output"
                )
        folder.read_metrics()
        folder.read_history()
        (folder.path / STOP_FILE).unlink(missing_ok=True)
        return config

    @property
    def resumed(self) -> bool:
        """Whether the run was in the folder already."""
        return self.config is not None

    def prepare(self) -> tuple[WorkerPlan, TwoTower]:
        """Writes the files of a new run, or opens those of an old one.

        Returns:
            The plan of this worker, and the model of the last checkpoint.

        Raises:
            JointError: The data are wrong, or not those that the run was
                started with; or a file cannot be read or written.
        """
        towers = self._towers()
        parents: list[Parent] = []
        models: list[TwoTower] = []

        def make() -> None:
            if self.config is not None:
                warn_of_version(self.folder, self.config)
                models.append(self.folder.load_checkpoint())
            else:
                if self.settings.init is not None:
                    parents.append(Parent.open(self.settings.init))
                models.append(towers.new_model(*parents))
            towers.plan(self.folder.path, models[0], self.resumed)

        on_first(self.collectives, make)
        model = models[0] if models else self.recipe.build(self.settings.seed)
        whole_plan = towers.plan(self.folder.path, model, resumed=True)
        plan = share_of(
            dataclasses.replace(whole_plan, recipe=self.recipe),
            self.collectives,
            model.document_encoder.trigrams.split,
        )

        def create() -> None:
            if self.config is not None:
                check_same_data(self.config, plan)
                return
            if not self.recipe.encoder_config.get("oov_buckets"):
                if line := alphabet_warning(plan.log):
                    print(f"warning: {line}", file=sys.stderr)
            parent = parents[0] if parents else None
            config = new_config(
                self.data, self.recipe, self.settings.seed, parent, plan
            )
            size = self.collectives.cluster.size
            self.folder.create({**config, "workers": size}, models[0])

        on_first(self.collectives, create)
        return plan, on_each(self.collectives, self.folder.load_checkpoint)

    def _towers(self) -> TowerTraining:
        """Opens the clicks, and makes what one process would train."""
        log = self._log()
        judged = None
        if self.recipe.judged_negatives:
            judged = on_each(
                self.collectives,
                lambda: judged_negatives(
                    self.data.data, self.data.min_relevant
                ),
            )
        # Of the clicks' frequencies each worker counts its part.
        return TowerTraining(
            self.recipe.replace(logq=False), self.settings.seed, log,
            self.data.data, (), judged,
            continued=self.settings.init is not None,
            min_relevant=self.data.min_relevant,
        )  # fmt: skip

    def _log(self) -> ClickLog:
        """Opens the clicks; reads none of them, but writes those of grades."""
        options = DataOptions(
            self.data.data, self.data.min_relevant, self.data.max_bad_lines
        )
        paths = on_first(
            self.collectives,
            lambda: open_clicks(options, self.folder)[0].paths,
        )
        absolute = [os.path.abspath(path) for path in paths]
        return on_each(
            self.collectives,
            lambda: ClickLog(absolute, self.data.max_bad_lines),
        )


def _compared(settings: WorkerSettings, workers: int) -> dict[str, Any]:
    """Returns the settings that those of the run in the folder must equal."""
    values = {
        "workers": workers,
        **settings.data,
        "seed": settings.seed,
        "recipe": settings.recipe,
    }
    return dict(json.loads(json.dumps(values)))

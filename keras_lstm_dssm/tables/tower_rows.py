"""The neural systems of Table IV: what is tried on dev, and the training."""

import tempfile
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_lstm_dssm.evaluation import DenseSystem
from keras_lstm_dssm.tables.baseline_rows import Options, Trained
from keras_lstm_dssm.tables.dataset import DataSet
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.table_settings import Settings
from keras_lstm_dssm.training import (
    CosineSoftmax,
    NesterovMomentum,
    fit_clicks,
    make_plan,
)

_TIMED_TITLES = 20_000


def next_tower_options(
    settings: Settings, tried: list[Options]
) -> Options | None:
    """Returns what to try on dev next, the same for every neural system.

    First each learning step with the first gamma, then the other gammas with
    the step that was best: a few trials in place of their product.

    Args:
        settings: `learning_rates` and `gammas` are used.
        tried: The trials before, each with its figure, `dev`.

    >>> next_tower_options(Settings("api", gammas=(5.0, 10.0)), [])
    {'learning_rate': 0.01, 'gamma': 5.0}
    """
    rates, gammas = settings.learning_rates, settings.gammas
    if len(tried) < len(rates):
        return {"learning_rate": rates[len(tried)], "gamma": gammas[0]}
    later = len(tried) - len(rates) + 1
    if later == len(gammas):
        return None
    best = max(tried, key=lambda trial: trial["dev"])
    return {"learning_rate": best["learning_rate"], "gamma": gammas[later]}


def train_towers(
    row: Row,
    options: Options,
    seed: int,
    data: DataSet,
    settings: Settings,
    epochs: int,
) -> Trained:
    """Trains two towers as the paper does, and keeps the best epoch on dev.

    Args:
        row: The system.
        options: See `next_tower_options`.
        seed: Of weights, order and negatives.
        data: The clicks and the dev task.
        settings: `batch_size`, `looks` and `judged_negatives` are used.
        epochs: The momentum's schedule spans them all, whichever is kept. A
            row's recipe goes before it and before the batch size.
    """
    keras.backend.clear_session()  # the towers trained before
    keras.utils.set_random_seed(seed)
    assert row.recipe is not None
    recipe = row.recipe.replace(**options)
    if row.tuned:
        recipe = recipe.replace(epochs=epochs, batch_size=settings.batch_size)
    recipe = recipe.replace(judged_negatives=settings.judged_negatives)
    model = recipe.build(seed)
    if model.adapts:
        model.adapt(data.titles)
    model.compile(
        NesterovMomentum(options["learning_rate"]),
        CosineSoftmax(options["gamma"]),
    )
    system = DenseSystem(
        model.query_encoder.encode, model.document_encoder.encode
    )
    looks = _Looks(data, system, recipe.epochs, settings.looks)
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(
            {**recipe.to_dict(), "seed": seed},
            data.log,
            lambda: data.titles,
            Path(folder),
            data.judged,
        )
        fit_clicks(model, plan, [looks], verbose=0)
    model.set_weights(looks.weights)
    timed = data.titles[:_TIMED_TITLES]
    start = time.perf_counter()
    model.document_encoder.encode(timed)
    return Trained(
        system=system,
        parameters=sum(
            int(np.prod(v.shape))
            for v in model.document_encoder.trainable_variables
        ),
        dev=looks.best,
        train_seconds=sum(row["seconds"] for row in looks.history),
        titles_per_second=len(timed) / (time.perf_counter() - start),
        epoch=looks.epoch,
        history=tuple(looks.history),
    )


class _Looks(keras.callbacks.Callback):
    """Measures on dev some times in a training; keeps the best weights."""

    def __init__(
        self, data: DataSet, system: DenseSystem, epochs: int, looks: int
    ) -> None:
        super().__init__()
        self.data = data
        self.system = system
        # Evenly spread, the last epoch always among them.
        last = np.linspace(0, epochs, min(looks, epochs) + 1)[1:]
        self.looks = set(np.round(last).astype(int).tolist())
        self.best = -1.0
        self.epoch = 0
        self.weights: list[np.ndarray] = []
        self.history: list[dict[str, Any]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        row = {"epoch": epoch + 1, **(logs or {}), "dev": None}
        row["seconds"] = time.perf_counter() - self.start
        self.history.append(row)
        if epoch + 1 in self.looks:
            row["dev"] = self.data.dev_figure(self.system)
            if row["dev"] > self.best:
                self.best, self.epoch = row["dev"], epoch + 1
                self.weights = self.model.get_weights()

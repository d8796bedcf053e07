"""Trains a table's neural systems: two towers, pair scorers and KeyVecs."""

import functools
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import keras

from keras_lstm_dssm.analysis.keyvec_report import key_sentence_agreements
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.evaluation.systems import DenseSystem, System, system_of
from keras_lstm_dssm.evaluation.task import document_sentences
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.papers.run_systems import Hyperparameters, TrainedSystem
from keras_lstm_dssm.papers.table_data import TableData
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.settings.recipes import KeyVecRecipe, ModelRecipe, Recipe
from keras_lstm_dssm.training.document_targets import DocumentTargets
from keras_lstm_dssm.training.keyvec_training import new_keyvec, targets_of
from keras_lstm_dssm.training.train import train


class EpochTimes(keras.callbacks.Callback):
    """Records each epoch's logs, and seconds without the evaluation on dev."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[dict[str, Any]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Records the time at the start of the epoch."""
        self.start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Records the time, to leave out an evaluation after the last batch."""
        self.end = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds the epoch to `history`."""
        row = dict(logs or {})
        names = [name for name in row if name.startswith("dev_")]
        dev = row.pop(names[0]) if names else None
        seconds = self.end - self.start
        self.history.append(
            {"epoch": epoch + 1, **row, "dev": dev, "seconds": seconds}
        )

    @property
    def results(self) -> dict[str, Any]:
        """Arguments of `TrainedSystem`; `dev` is the best epoch's value."""
        measured = [row for row in self.history if row["dev"] is not None]
        best = max(measured, key=lambda row: row["dev"])
        return {
            "dev": best["dev"],
            "best_epoch": best["epoch"],
            "train_seconds": sum(row["seconds"] for row in self.history),
            "history": tuple(self.history),
        }


@dataclass(frozen=True)
class Neural:
    """Describes a row whose system is trained by `dssm.train`."""

    recipe: ModelRecipe
    group: str = "recurrent"  # or "feed-forward": the row's group in charts
    # `True`: the learning rate and gamma are chosen on dev, and the table's
    # settings give epochs and batch size. `False`: the recipe has these values.
    tuned: bool = True
    saved: bool = False  # whether the model is saved, for rows of mixtures
    salience: str | None = None  # of a KeyVec; `None`: `settings.salience`
    trained: bool = True  # `False`: a KeyVec with its initial weights
    seeded: ClassVar[bool] = True

    def next_trial(
        self, name: str, settings: TableSettings, tried: list[dict[str, Any]]
    ) -> Hyperparameters | None:
        """Returns each learning rate; then each gamma, with the best rate."""
        rates: tuple[float, ...] = settings.learning_rates
        gammas: tuple[float, ...] = ()
        values = self.recipe.to_dict()
        if not self.tuned:
            rates = (values["learning_rate"],)
        if "gamma" in values:
            gammas = settings.gammas if self.tuned else (values["gamma"],)
        if len(tried) < len(rates):
            rate = {"learning_rate": rates[len(tried)]}
            return {**rate, "gamma": gammas[0]} if gammas else rate
        gamma_index = len(tried) - len(rates) + 1
        if gamma_index >= len(gammas):
            return None
        best = max(tried, key=lambda trial: trial["dev"])
        return {
            "learning_rate": best["learning_rate"],
            "gamma": gammas[gamma_index],
        }

    def train(
        self, name: str, options: Hyperparameters, seed: int, data: TableData
    ) -> TrainedSystem:
        """Trains a model, restores its best epoch, and measures its speed."""
        keras.backend.clear_session()  # frees the previous model
        settings = data.settings
        recipe: Any = self.recipe.replace(**options)
        if self.tuned:
            recipe = recipe.replace(
                epochs=settings.epochs, batch_size=settings.batch_size
            )
        if not self.trained:
            sentences = [s for t in data.texts for s in document_sentences(t)]
            model: Any = new_keyvec(recipe, seed, sentences, len(data.texts))
            dev = data.measure_on_dev(system_of(model))
            return self._measured(model, data, {"dev": dev})
        arguments: dict[str, Any] = {}
        if for_table := kind_of(recipe).load("table"):
            recipe, arguments = for_table(recipe, data, self.salience)
        times = EpochTimes()
        model = train(
            data.examples,
            recipe,
            seed=seed,
            dev=data.dev,
            select=data.dev_measure,
            every=max(1, round(recipe.epochs / settings.dev_evaluations)),
            callbacks=[times],
            verbose=0,
            **data.training,
            **arguments,
        )
        results = times.results
        targets = arguments.get("salience")
        if targets and recipe.weighted and recipe.read_weight:
            results["further"] = _salience_agreement(
                model, data.examples, targets
            )
        return self._measured(model, data, results)

    def _measured(
        self, model: Any, data: TableData, results: dict[str, Any]
    ) -> TrainedSystem:
        counted = kind_of(model).counted
        layer = getattr(model, counted) if counted else model
        sizes = map(keras.ops.size, layer.trainable_variables)
        system = system_of(model)
        return TrainedSystem(
            system=system,
            parameters=sum(map(int, sizes)),
            model=model if self.saved else None,
            **_speed(system, data.dev),
            **results,
        )


def tower_row(
    recipe: Recipe, data: TableData, salience: str | None
) -> tuple[Recipe, dict[str, Any]]:
    """Returns a recipe adapted to a table, and `{}`: no further arguments."""
    settings = data.settings
    recipe = recipe.replace(
        patience=0,  # no early stopping: the curves show all epochs
        judged_negatives=settings.judged_negatives,
    )
    if settings.updates_of is not None:
        # The training must make as many updates as if the number of clicks were
        # `updates_of`. The number of epochs is multiplied by `factor`. An epoch
        # has clicks, and synthetic pairs made from titles of two or more words.
        synthetic = recipe.title_pairs * sum(
            len(title.split()) > 1 for title in data.texts
        )
        factor = (settings.updates_of + synthetic) / (
            data.sizes["clicks"] + synthetic
        )
        recipe = recipe.replace(
            epochs=round(recipe.epochs * factor),
            mine_every=round(recipe.mine_every * factor),
        )
    return recipe, {}


def keyvec_row(
    recipe: KeyVecRecipe, data: TableData, salience: str | None
) -> tuple[KeyVecRecipe, dict[str, Any]]:
    """Returns the recipe, and `train`'s argument `salience`: the targets."""
    salience = salience or data.settings.salience
    targets = _targets(data.examples, salience, recipe.key_words_of)
    return recipe, {"salience": targets}


_TIMED_TEXTS = 20_000


def _speed(system: System, dev: Any) -> dict[str, Any]:
    if isinstance(system, DenseSystem):
        texts = list(dict.fromkeys(dev.documents.values()))[:_TIMED_TEXTS]
        start = time.perf_counter()
        system.encode_document(texts)
        seconds = time.perf_counter() - start
        return {"titles_per_second": len(texts) / seconds}
    candidates = {query: list(judged) for query, judged in dev.qrels.items()}
    start = time.perf_counter()
    system.list_scores(dev.queries, candidates, dev.documents)
    seconds = time.perf_counter() - start
    return {"pairs_per_second": sum(map(len, candidates.values())) / seconds}


# The targets are cached, because all seeds and trials have the same targets.
_targets = functools.lru_cache(2)(functools.partial(targets_of, split="test"))


def _salience_agreement(
    model: KeyVec, folder: DocumentFolder, targets: DocumentTargets
) -> dict[str, float]:
    documents = list(folder.of("test"))
    agreements = key_sentence_agreements(model, documents, targets)
    if not agreements:
        return {}
    metrics = {
        f"salience_{name}": value
        for name, value in agreements["model"]._asdict().items()
    }
    by_order = agreements["position"].average_precision
    return {**metrics, "salience_order_average_precision": by_order}

"""Training of the neural systems in a table, with the best epoch on dev.

They are two towers, pair scorers and KeyVecs; the learning rate, and gamma of
two towers, are chosen on dev.
"""

import functools
import time
from typing import Any, TypeVar

import keras
import numpy as np

from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.evaluation.systems import (
    DenseSystem,
    PairSystem,
    system_of,
)
from keras_lstm_dssm.evaluation.task import document_sentences
from keras_lstm_dssm.models import KeyVecRecipe, Recipe, ScorerRecipe
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.kinds import AnyRecipe
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.papers.baseline_rows import Hyperparameters, TrainedSystem
from keras_lstm_dssm.papers.rows import Row
from keras_lstm_dssm.papers.table_data import (
    BaseTableData,
    DocumentTableData,
    TableData,
)
from keras_lstm_dssm.settings.papers import TableSettings
from keras_lstm_dssm.training.document_targets import DocumentTargets, KeyWords
from keras_lstm_dssm.training.keyvec_training import new_keyvec
from keras_lstm_dssm.training.salience import agreement, salience_teacher
from keras_lstm_dssm.training.train import train


class EpochTimes(keras.callbacks.Callback):
    """Records the logs and the seconds of training of each epoch.

    Attributes:
        history: A row for each epoch: `epoch`, counted from 1; the logs;
            `dev`, the measure on dev, or `None` where it was not evaluated;
            and `seconds`, without those of the evaluation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[dict[str, Any]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Records the time at the start of the epoch."""
        self.start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Records the time; the last record is before the evaluation on dev."""
        self.end = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds the row of the epoch."""
        row = dict(logs or {})
        names = [name for name in row if name.startswith("dev_")]
        dev = row.pop(names[0]) if names else None
        seconds = self.end - self.start
        self.history.append(
            {"epoch": epoch + 1, **row, "dev": dev, "seconds": seconds}
        )

    @property
    def results(self) -> dict[str, Any]:
        """The arguments of `TrainedSystem` that follow from the history.

        The best epoch is the first of those with the highest value on dev.
        """
        measured = [row for row in self.history if row["dev"] is not None]
        best = max(measured, key=lambda row: row["dev"])
        return {
            "dev": best["dev"],
            "best_epoch": best["epoch"],
            "train_seconds": sum(row["seconds"] for row in self.history),
            "history": tuple(self.history),
        }


def parameters(variables: list[keras.Variable]) -> int:
    """Returns the number of parameters in variables."""
    return sum(int(keras.ops.size(v)) for v in variables)


AnyKind = TypeVar("AnyKind", Recipe, ScorerRecipe, KeyVecRecipe)


def recipe_of_row(
    row: Row,
    kind: type[AnyKind],
    options: Hyperparameters,
    epochs: int,
    settings: TableSettings,
) -> AnyKind:
    """Returns the recipe that a system is trained with.

    Args:
        row: The row of the system.
        kind: The class of its recipe.
        options: Attributes of the recipe to change.
        epochs: Epochs of a tuned row; others keep those of their recipe.
        settings: `batch_size` is that of a tuned row.
    """
    assert isinstance(row.recipe, kind)
    recipe = row.recipe.replace(**options)
    if row.tuned:
        recipe = recipe.replace(epochs=epochs, batch_size=settings.batch_size)
    return recipe


def train_on(
    examples: Any,
    recipe: AnyRecipe,
    seed: int,
    data: BaseTableData,
    settings: TableSettings,
    **options: Any,
) -> tuple[TwoTower | PairScorer | KeyVec, dict[str, Any]]:
    """Trains a model with `dssm.train`, and keeps the best epoch on dev.

    Args:
        examples: The clicks or documents to train on, see `train`.
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        data: The dev task and its measure.
        settings: `dev_evaluations` is used.
        **options: Further arguments of `train`.

    Returns:
        The model, with the weights of the best epoch; and the arguments of
        `TrainedSystem` that `EpochTimes` records.
    """
    times = EpochTimes()
    model = train(
        examples,
        recipe,
        seed=seed,
        dev=data.dev,
        select=data.dev_measure,
        every=max(1, round(recipe.epochs / settings.dev_evaluations)),
        callbacks=[times],
        verbose=0,
        **options,
    )
    return model, times.results


def train_keyvec(
    row: Row,
    options: Hyperparameters,
    seed: int,
    data: DocumentTableData,
    settings: TableSettings,
    epochs: int,
) -> TrainedSystem:
    """Trains a `KeyVec`, and keeps the best epoch on dev.

    A row that is not `trained` is measured with its initial weights: those
    of words and key words are skip-gram vectors, the others are random.

    Args:
        row: The row of the system.
        options: The learning rate, see `next_learning_rate`.
        seed: Seed of the word vectors, the weights and the order of documents.
        data: The documents to train on, and the dev task.
        settings: `batch_size`, `dev_evaluations` and `salience` are used.
        epochs: Passes over the documents.
    """
    keras.backend.clear_session()  # frees the model trained before
    recipe = recipe_of_row(row, KeyVecRecipe, options, epochs, settings)
    if row.trained:
        salience = row.salience or settings.salience
        model, results = train_on(
            data.folder,
            recipe,
            seed,
            data,
            settings,
            salience=_targets(
                data.folder, salience, recipe.key_words_of, "train"
            ),
        )
        assert isinstance(model, KeyVec)
        if recipe.weighted and recipe.read_weight:
            results["further"] = _salience_agreement(
                model, data.folder, salience, recipe.key_words_of
            )
    else:
        sentences = [
            sentence
            for text in data.titles
            for sentence in document_sentences(text)
        ]
        model = new_keyvec(recipe, seed, sentences, len(data.titles))
        results = {"dev": data.measure_on_dev(system_of(model))}
    timed = list(data.dev.documents.values())
    start = time.perf_counter()
    model.encode([document_sentences(text) for text in timed])
    seconds = time.perf_counter() - start
    return TrainedSystem(
        system=system_of(model),
        parameters=parameters(model.trainable_variables),
        titles_per_second=len(timed) / seconds,
        **results,
    )


@functools.lru_cache(2)  # all seeds and trials have the same targets
def _targets(
    folder: DocumentFolder, salience: str, key_words_of: str, split: str
) -> DocumentTargets:
    """Computes the targets of a split; teacher and theta are those of train."""
    train = folder.of("train")
    theta = None
    if split != "train":
        theta = _targets(folder, salience, key_words_of, "train").counts.theta
    return DocumentTargets.from_teacher(
        folder.of(split),
        salience_teacher(salience, train),
        KeyWords(train, source=key_words_of),
        theta,
    )


def _salience_agreement(
    model: KeyVec, folder: DocumentFolder, salience: str, key_words_of: str
) -> dict[str, float]:
    """Compares the p_i of the test documents with their salient sentences.

    The order of the sentences in the document is compared with the same
    salient sentences. Documents without a summary have none to compare with.

    Returns:
        The values of `Agreement`, their names after `salience_`, and the
        average precision of the order in the document, as
        `salience_order_average_precision`; nothing if no test document has a
        summary.
    """
    documents = [one for one in folder.of("test") if one.summary]
    if not documents:
        return {}
    targets = _targets(folder, salience, key_words_of, "test")
    marks = [targets.of(document).marks() for document in documents]
    texts = [document.sentences for document in documents]
    by_model = agreement(marks, model.probabilities(texts))
    by_order = agreement(marks, [-np.arange(len(one)) for one in marks])
    figures = {
        f"salience_{name}": float(value)
        for name, value in by_model._asdict().items()
    }
    figures["salience_order_average_precision"] = by_order.average_precision
    return figures


def next_learning_rate(
    row: Row, settings: TableSettings, tried: list[Hyperparameters]
) -> Hyperparameters | None:
    """Returns the next trial on dev, the same for all tuned rows of a kind.

    Args:
        row: The row; one that is not tuned keeps its recipe's learning rate.
        settings: `learning_rates` is used.
        tried: The trials so far.

    >>> settings = TableSettings("api_sentences", learning_rates=(0.03, 0.1))
    >>> next_learning_rate(MV_LSTM_ROWS["arc_i"], settings, [])
    {'learning_rate': 0.03}
    """
    assert isinstance(row.recipe, ScorerRecipe | KeyVecRecipe)
    rates = (
        settings.learning_rates if row.tuned else (row.recipe.learning_rate,)
    )
    if len(tried) == len(rates):
        return None
    return {"learning_rate": rates[len(tried)]}


def train_scorer(
    row: Row,
    options: Hyperparameters,
    seed: int,
    data: TableData,
    settings: TableSettings,
    epochs: int,
) -> TrainedSystem:
    """Trains a pair scorer with `dssm.train`, and keeps the best epoch on dev.

    Args:
        row: The row of the system.
        options: The learning rate, see `next_learning_rate`.
        seed: Seed of the word vectors, the weights and the order of triples.
        data: The dev task.
        settings: `data`, `min_relevant`, `batch_size` and `dev_evaluations`
            are used.
        epochs: Passes over the triples of a tuned row; others train for as
            many as their recipe says.
    """
    keras.backend.clear_session()  # frees the scorer trained before
    model, results = train_on(
        settings.data,
        recipe_of_row(row, ScorerRecipe, options, epochs, settings),
        seed,
        data,
        settings,
        min_relevant=settings.min_relevant,
    )
    system = PairSystem(model.score_pairs)
    candidates = {q: list(judged) for q, judged in data.dev.qrels.items()}
    start = time.perf_counter()
    system.list_scores(data.dev.queries, candidates, data.dev.documents)
    seconds = time.perf_counter() - start
    return TrainedSystem(
        system=system,
        parameters=parameters(model.matcher.trainable_variables),
        pairs_per_second=sum(map(len, candidates.values())) / seconds,
        **results,
    )


_TIMED_TITLES = 20_000


def next_tower_options(
    settings: TableSettings, tried: list[Hyperparameters]
) -> Hyperparameters | None:
    """Returns the next trial on dev, the same for all two towers.

    First each learning rate is tried with the first gamma, then the other
    gammas with the best learning rate; other combinations are not tried.

    Args:
        settings: `learning_rates` and `gammas` are used.
        tried: The trials so far, each with its dev measure, `dev`.

    >>> next_tower_options(TableSettings("api", gammas=(5.0, 10.0)), [])
    {'learning_rate': 0.003, 'gamma': 5.0}
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
    options: Hyperparameters,
    seed: int,
    data: TableData,
    settings: TableSettings,
    epochs: int,
) -> TrainedSystem:
    """Trains two towers with `dssm.train`, and keeps the best epoch on dev.

    Args:
        row: The row of the system.
        options: Learning rate and gamma, see `next_tower_options`.
        seed: Seed of the weights, the order of clicks and the negatives.
        data: The clicks to train on, and the dev task.
        settings: `batch_size`, `dev_evaluations`, `updates_of`,
            `judged_negatives` and, for a row that is taught, `teacher` are
            used.
        epochs: Passes over the clicks of a tuned row; others train for as
            many as their recipe says.
    """
    keras.backend.clear_session()  # frees the towers trained before
    options = {**options, "judged_negatives": settings.judged_negatives}
    recipe = recipe_of_row(row, Recipe, options, epochs, settings)
    recipe = recipe.replace(patience=0)  # the curves show all epochs
    if settings.updates_of is not None:
        recipe = _with_updates_of(settings.updates_of, recipe, data)
    model, results = train_on(
        data.log,
        recipe,
        seed,
        data,
        settings,
        titles=data.titles,
        judged=data.judged,
        teacher=settings.teacher_folder() if row.taught else None,
    )
    system = DenseSystem(
        model.query_encoder.encode, model.document_encoder.encode
    )
    timed = data.titles[:_TIMED_TITLES]
    start = time.perf_counter()
    model.document_encoder.encode(timed)
    return TrainedSystem(
        system=system,
        parameters=parameters(model.document_encoder.trainable_variables),
        titles_per_second=len(timed) / (time.perf_counter() - start),
        model=model if row.saved else None,
        **results,
    )


def _with_updates_of(clicks: int, recipe: Recipe, data: TableData) -> Recipe:
    """Returns a recipe with as many updates on `data` as on `clicks` clicks."""
    synthetic = recipe.title_pairs * sum(
        len(title.split()) > 1 for title in data.titles
    )
    factor = (clicks + synthetic) / (data.log.count() + synthetic)
    return recipe.replace(
        epochs=round(recipe.epochs * factor),
        mine_every=round(recipe.mine_every * factor),
    )

"""The pair scorers of a table: their search on dev and training."""

import time

import keras

from keras_lstm_dssm.evaluation import PairSystem
from keras_lstm_dssm.models import KeyVecRecipe, ScorerRecipe
from keras_lstm_dssm.tables.baseline_rows import Hyperparameters, TrainedSystem
from keras_lstm_dssm.tables.epoch_times import parameters
from keras_lstm_dssm.tables.neural_rows import recipe_of_row, train_on
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.table_data import TableData
from keras_lstm_dssm.tables.table_settings import TableSettings


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

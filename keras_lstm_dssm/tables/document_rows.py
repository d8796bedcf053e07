"""The training of the KeyVecs of a table."""

import functools
import time

import keras
import numpy as np

from keras_lstm_dssm.data import DocumentFolder
from keras_lstm_dssm.evaluation import document_sentences, system_of
from keras_lstm_dssm.models import KeyVec, KeyVecRecipe
from keras_lstm_dssm.tables.baseline_rows import Hyperparameters, TrainedSystem
from keras_lstm_dssm.tables.document_data import DocumentTableData
from keras_lstm_dssm.tables.epoch_times import parameters
from keras_lstm_dssm.tables.neural_rows import recipe_of_row, train_on
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.table_settings import TableSettings
from keras_lstm_dssm.training.document_targets import DocumentTargets
from keras_lstm_dssm.training.key_words import KeyWords
from keras_lstm_dssm.training.new_keyvec import new_keyvec
from keras_lstm_dssm.training.salience import agreement
from keras_lstm_dssm.training.salience_teachers import salience_teacher


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

"""dssm.train of a KeyVec: documents, targets, resume, NaN, the best epoch."""

import json
import pathlib
import shutil
from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.callbacks.best_epoch import (
    RankingEvaluation,
    ValidationLoss,
)
from keras_lstm_dssm.data import Document, DocumentFolder, write_documents
from keras_lstm_dssm.errors import FailedTraining, InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.papers import TableSettings
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.text import vocabulary_of
from keras_lstm_dssm.training import (
    DocumentExamples,
    DocumentTargets,
    KeyWords,
    salience_teacher,
)
from keras_lstm_dssm.training.document_targets import TARGETS_FILE
from keras_lstm_dssm.training.keyvec_training import KeyVecTraining
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from tests.training.small_documents import (
    QUICK_KEYVEC,
    STEPS,
    documents,
    write_small_documents,
)
from tests.training.small_trainings import EpochWeights, StopAt, check_equal

pytest.importorskip("gensim")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("documents") / "few, small"
    write_small_documents(path)
    return path


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory) -> tuple[RunFolder, KeyVec]:
    """A run that was not stopped; tests must not write into it."""
    run = RunFolder(tmp_path_factory.mktemp("finished") / "run")
    options = {"seed": 3, "output": run.path, "verbose": 0}
    return run, dssm.train(folder, QUICK_KEYVEC, **options)


LOSSES = {1: 3.0, 2: 1.0, 3: 2.0}
"""Validation loss of each epoch: the second is the best."""


@pytest.fixture
def losses(monkeypatch) -> list[int]:
    """Gives the epochs the losses above; holds the epochs measured."""
    epochs: list[int] = []

    def metrics(self: ValidationLoss) -> dict[str, float]:
        steps = int(self.model.optimizer.iterations.numpy())
        epochs.append(steps // STEPS)
        return {"val_loss": LOSSES[epochs[-1]]}

    monkeypatch.setattr(ValidationLoss, "metrics", metrics)
    return epochs


def test_train_and_the_recipe_by_hand_give_one_model(folder, finished):
    """Vocabulary, skip-gram, targets, Adam, order; and by the table."""
    run, trained = finished
    documents = DocumentFolder(folder)
    train = documents.of("train")
    sentences = [text for one in train for text in one.sentences]
    vocabulary = vocabulary_of(sentences)
    model = QUICK_KEYVEC.build(
        3, vocabulary, skip_gram_vectors(sentences, vocabulary, 4, seed=3)
    )
    model.compile(keras.optimizers.Adam(0.001), dssm.KeyVecLoss())
    teacher, words = salience_teacher("bm25", train), KeyWords(train)
    targets = DocumentTargets.from_teacher(train, teacher, words)
    found = [word for one in train for word in targets.of(one).key_words]
    counts = np.array([found.count(word) for word in model.key_vocabulary])
    assert sum(counts) > len(set(found)) > 1  # some words occur repeatedly
    shares = (counts + 0.1) / np.sum(counts + 0.1)
    model.word_scores.bias.assign(np.log(shares))
    dev = DocumentTargets.from_teacher(
        documents.of("dev"), teacher, words, targets.counts.theta
    )
    kept = EpochWeights()
    fitted = model.fit(
        DocumentExamples(train, targets).batches(4, epochs=3, seed=3),
        epochs=3,
        steps_per_epoch=STEPS,
        validation_data=DocumentExamples(documents.of("dev"), dev).in_order(4),
        callbacks=[kept],
        verbose=0,
    ).history
    best = int(np.argmin(fitted["val_loss"])) + 1
    check_equal(trained.get_weights(), kept.of[best])
    for row in run.read_history():
        for name, values in fitted.items():
            assert row[name] == pytest.approx(values[int(row["epoch"]) - 1])
    assert "val_key_word_loss" in fitted and "read_loss" in fitted
    config = run.read_config()
    assert config["salience"] == "bm25" and config["pairs"] == 10
    settings = TableSettings(
        str(folder),
        epochs=3,
        batch_size=4,
        dev_evaluations=1,  # after the last epoch, which then is the best
        documents=True,
    )
    of_table = Neural(QUICK_KEYVEC).train(
        "a row", {"learning_rate": 0.001}, 3, open_data(settings, run.path)
    )
    texts = [one.sentences for one in documents.of("test")]
    np.testing.assert_array_equal(
        of_table.system.encode_document(["\n".join(text) for text in texts]),
        model.encode(texts),
    )
    stored = DocumentTargets.from_file(run.path / TARGETS_FILE)
    assert stored.targets == {**targets.targets, **dev.targets}


class StartBiases(keras.callbacks.Callback):
    """Keeps the biases of the key words with which a training starts."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.found = self.model.word_scores.bias.numpy()


def test_a_key_word_stands_for_the_words_of_its_stem(tmp_path):
    bodies = ["Hats heated.", "Hat of hats.", "Heating."]
    summaries = ["Hats heating.", "A heated hat.", "Lamps heat."]
    write_documents(
        tmp_path / "data",
        [
            Document(f"d{n}", "", [body], [summary], None, "train")
            for n, (body, summary) in enumerate(
                zip(bodies, summaries, strict=True)
            )
        ],
        {},
        {},
    )
    start = StartBiases()
    model = dssm.train(
        tmp_path / "data", QUICK_KEYVEC.replace(words="stems", epochs=1),
        output=tmp_path / "RUN", salience="lead", verbose=0, callbacks=[start],
    )  # fmt: skip
    # Of the words of a stem the most frequent one, else the first.
    assert model.key_vocabulary == ["hats", "heated", "of"]
    assert model.words.vocabulary == ["hat", "heat", "of"]
    # "hat" is a key word of two summaries, "heat" of all; "lamps" is unknown.
    shares = np.array([2.1, 3.1, 0.1]) / 5.3
    np.testing.assert_allclose(start.found, np.log(shares), rtol=1e-6)
    loaded = dssm.load_run(tmp_path / "RUN")
    assert loaded.key_vocabulary == model.key_vocabulary
    assert loaded.key_words("Heating hats.", 3) == model.key_words(
        "Heated hat.", 3
    )


def test_a_stopped_run_ends_as_an_undisturbed_one(folder, tmp_path, losses):
    """Before the loss of the best epoch is measured, and after it."""
    recipe = QUICK_KEYVEC.replace(dropout=0.5)
    towers = dssm.TwoTower(dssm.DSSMEncoder([3]), dssm.DSSMEncoder([3]))
    kept = EpochWeights()
    whole = dssm.train(
        folder, recipe, salience=towers, verbose=0, callbacks=[kept]
    )
    assert losses == [1, 2, 3]
    check_equal(whole.get_weights(), kept.of[2])
    run = RunFolder(tmp_path / "run")
    stops = {2 * STEPS: 1, 2 * STEPS + 1: 2}
    options = {"verbose": 0, "callbacks": [StopAt(step) for step in stops]}
    for step, best in stops.items():
        with pytest.raises(KeyboardInterrupt):
            if step == min(stops):
                dssm.train(
                    folder, recipe, salience=towers, output=run.path, **options
                )
            else:
                dssm.resume(run.path, **options)
        stopped = run.load_checkpoint()
        assert int(stopped.optimizer.iterations.numpy()) == step
        # What a user takes from the stopped run.
        check_equal(run.load_model().get_weights(), kept.of[best])
    targets = (run.path / TARGETS_FILE).rename(tmp_path / "targets")
    with pytest.raises(InputError, match="found no targets of documents"):
        dssm.resume(run.path, verbose=0)
    targets.rename(run.path / TARGETS_FILE)
    resumed = dssm.resume(run.path, verbose=0)
    check_equal(resumed.get_weights(), whole.get_weights())
    check_equal(run.load_model().get_weights(), whole.get_weights())
    check_equal(run.load_checkpoint().get_weights(), kept.of[3])
    assert losses == [1, 2, 3, 1, 2, 3]
    assert run.read_config()["salience"] == "a TwoTower"
    # Resumed once more, it is finished: nothing is trained or measured.
    again = dssm.resume(run.path, verbose=0)
    check_equal(again.get_weights(), whole.get_weights())
    assert losses == [1, 2, 3, 1, 2, 3]


def test_patience_ends_a_run_for_good(folder, tmp_path, losses):
    run = RunFolder(tmp_path / "run")
    recipe = QUICK_KEYVEC.replace(epochs=9)
    dssm.train(folder, recipe, output=run.path, patience=1, verbose=0)
    assert losses == [1, 2, 3]
    assert [row["val_loss"] for row in run.read_history()] == [3, 1, 2]
    # A value of the recipe, which `patience` changes.
    assert run.read_config()["recipe"]["patience"] == 1
    dssm.resume(run.path, verbose=0)
    assert losses == [1, 2, 3]


def test_without_patience_the_last_epoch_is_the_model(folder, tmp_path, losses):
    """The validation loss is measured, but chooses no epoch, resumed or not."""
    run = RunFolder(tmp_path / "run")
    recipe = QUICK_KEYVEC.replace(patience=0, excerpt=3, decay=True)
    kept = EpochWeights()
    whole = dssm.train(folder, recipe, verbose=0, callbacks=[kept])
    with pytest.raises(KeyboardInterrupt):
        stop = StopAt(2 * STEPS + 1)
        dssm.train(folder, recipe, output=run.path, verbose=0, callbacks=[stop])
    # What a user takes from the stopped run is its last training step.
    assert not np.array_equal(run.load_model().get_weights()[0], kept.of[2][0])
    resumed = dssm.resume(run.path, verbose=0)
    for model in whole, resumed, run.load_model():
        check_equal(model.get_weights(), kept.of[3])
    # The learning rate is 0 after the last training step, and not before.
    rate = whole.optimizer.get_config()["learning_rate"]["config"]
    assert rate["initial_learning_rate"] == recipe.learning_rate
    assert rate["decay_steps"] == 3 * STEPS == whole.optimizer.iterations
    assert losses == [1, 2, 3, 1, 2, 3]
    assert [row["val_loss"] for row in run.read_history()] == [3, 1, 2]
    assert run.read_config()["patience"] is None


def test_clusters_of_dev_choose_the_epoch(folder, tmp_path, monkeypatch):
    """Here of words that are read as letter trigrams."""
    monkeypatch.setattr(
        RankingEvaluation, "evaluate", lambda self: figures.pop(0)
    )
    figures, kept = [0.1, 0.9, 0.5], EpochWeights()
    run = RunFolder(tmp_path / "run")
    model = dssm.train(
        folder, QUICK_KEYVEC.replace(words="trigrams"), output=run.path,
        dev=folder, select="ari", salience="lead", verbose=0, callbacks=[kept],
    )  # fmt: skip
    check_equal(model.get_weights(), kept.of[2])
    rows = run.read_history()
    assert [row["dev_ari"] for row in rows] == [0.1, 0.9, 0.5]
    assert "val_loss" not in rows[0]
    assert run.read_config()["dev"] == str(folder)


def test_the_dev_task_is_that_of_the_measure(folder, tmp_path):
    write_documents(tmp_path / "data", documents(), {}, {})

    def dev_evaluation(**options: Any) -> Any:
        config = TrainingConfig(str(folder), QUICK_KEYVEC, **options)
        return KeyVecTraining(config, RunFolder(tmp_path)).best_epoch()

    for data, select, queries in (
        (folder, "map", 2),
        (folder, "ari", None),
        (tmp_path / "data", "ami", None),
    ):
        task = dev_evaluation(dev=str(data), select=select).task
        assert len(task.documents) == 4
        if queries:
            assert len(task.queries) == queries
        else:
            assert task.sizes["classes"] == 2
    with pytest.raises(
        InputError, match="no qrels/dev.tsv in the split dev, e"
    ):
        dev_evaluation(dev=str(tmp_path / "data"))


def test_a_trained_model_is_loaded_by_a_fresh_process(finished, fresh_process):
    run, model = finished
    text = "A wool hat. A nail."
    code = (
        "import json, sys, keras_lstm_dssm as dssm\n"
        "model = dssm.load_run(sys.argv[1])\n"
        f"found = model.encode([{text!r}])[0].tolist()\n"
        f"print(json.dumps([found, model.key_words({text!r}, 1)[0][0]]))"
    )
    vector, word = json.loads(fresh_process(code, run.path)[-1])
    np.testing.assert_allclose(vector, model.encode([text])[0], atol=1e-6)
    assert word == model.key_words(text, 1)[0][0]
    with pytest.raises(InputError, match="found a KeyVec, which has no enc"):
        run.load_towers()


def test_a_loss_that_is_no_number_stops_with_the_texts(folder, tmp_path):
    recipe = QUICK_KEYVEC.replace(learning_rate=1e38, skip_gram=False)
    with pytest.raises(FailedTraining, match=r"training step \d+: .* NaN") as e:
        dssm.train(folder, recipe, output=tmp_path / "run", verbose=0)
    assert "\n" not in str(e.value)
    assert any(one.sentences[0] in str(e.value) for one in documents())


def test_documents_that_have_changed_are_not_resumed(finished, tmp_path):
    run = RunFolder(shutil.copytree(finished[0].path, tmp_path / "run"))
    few = [one for one in documents() if one.id != "train-wear-0"]
    shorter = [
        one._replace(sentences=one.sentences[:3])
        if one.id == "train-tools-1"
        else one
        for one in few
    ]
    for changed, message in (
        (few, "found 9 documents and 0 bad lines, expected the 10 and 0"),
        (shorter, "document 'train-tools-1': found 3 sentences, expected 5"),
    ):
        data = tmp_path / message[:5]
        write_documents(data, changed, {}, {})
        write_json(run.config, {**run.read_config(), "data": str(data)})
        with pytest.raises(InputError, match=message):
            dssm.resume(run.path, verbose=0)

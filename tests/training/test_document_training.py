"""dssm.train of a KeyVec: by hand, its words, and what documents lack."""

from collections import Counter
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Document, DocumentFolder, write_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.word_builders import build_keyvec
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.text import vocabulary_of
from keras_lstm_dssm.training import (
    DocumentExamples,
    DocumentTargets,
    KeyWords,
    salience_teacher,
)
from keras_lstm_dssm.training.document_targets import TARGETS_FILE, Target
from keras_lstm_dssm.training.keyvec_training import KeyVecTraining
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from tests.kit.equal import check_equal
from tests.kit.kinds import KEYVEC, KINDS, STEPS
from tests.training.small_documents import documents
from tests.training.small_trainings import EpochWeights

pytest.importorskip("gensim")
pytest.importorskip("sklearn")


def test_train_and_the_recipe_by_hand_give_one_model(kinds_data):
    """Vocabulary, skip-gram, targets, Adam, order; and by the table."""
    run = RunFolder("run")
    trained = dssm.train(
        "documents", KEYVEC, seed=3, output=run.path, verbose=0
    )
    documents = DocumentFolder("documents")
    train = documents.of("train")
    sentences = [text for one in train for text in one.sentences]
    vocabulary = vocabulary_of(sentences)
    model = build_keyvec(
        KEYVEC,
        3,
        vocabulary,
        skip_gram_vectors(sentences, vocabulary, 4, seed=3),
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
        DocumentExamples(train, targets).batches(5, epochs=3, seed=3), epochs=3,
        steps_per_epoch=STEPS,
        validation_data=DocumentExamples(documents.of("dev"), dev).in_order(5),
        callbacks=[kept], verbose=0,
    ).history  # fmt: skip
    best = int(np.argmin(fitted["val_loss"])) + 1
    check_equal(trained, kept.of[best])
    for row in run.read_history():
        for name, values in fitted.items():
            assert row[name] == pytest.approx(values[int(row["epoch"]) - 1])
    assert "val_key_word_loss" in fitted and "read_loss" in fitted
    stored = DocumentTargets.from_file(run.path / TARGETS_FILE)
    assert stored.targets == {**targets.targets, **dev.targets}
    settings = TableSettings(
        "documents",
        epochs=3,
        batch_size=5,
        dev_evaluations=1,  # after the last epoch, which then is the best
        documents=True,
    )
    of_table = Neural(KEYVEC).train(
        "a row", {"learning_rate": 0.001}, 3, open_data(settings, run.path)
    )
    texts = [one.sentences for one in documents.of("test")]
    np.testing.assert_array_equal(
        of_table.system.encode_document(["\n".join(text) for text in texts]),
        model.encode(texts),
    )


def test_the_learning_rate_is_0_after_the_last_step(kinds_data, eager):
    kind = KINDS["a KeyVec of excerpts, without patience"]
    model = kind.train()
    rate = model.optimizer.get_config()["learning_rate"]["config"]
    assert rate["initial_learning_rate"] == kind.recipe.learning_rate
    assert rate["decay_steps"] == 3 * STEPS == model.optimizer.iterations


class StartBiases(keras.callbacks.Callback):
    """Keeps the biases of the key words with which a training starts."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.found = self.model.word_scores.bias.numpy()


def test_a_key_word_stands_for_the_words_of_its_stem(tmp_path, eager):
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
        tmp_path / "data", KEYVEC.replace(words="stems", epochs=1),
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


@pytest.mark.parametrize(("data", "select", "size"), [
    ("documents", "map", lambda task: len(task.queries)),
    ("documents", "ari", lambda task: task.sizes["classes"]),
    ("others", "ami", lambda task: task.sizes["classes"]),
])  # fmt: skip
def test_the_dev_task_is_that_of_the_measure(kinds_data, data, select, size):
    write_documents("others", documents(), {}, {})

    def dev_task(**options: Any) -> Any:
        config = TrainingConfig("documents", KEYVEC, **options)
        return KeyVecTraining(config, RunFolder(".")).best_epoch().task

    task = dev_task(dev=data, select=select)
    assert (len(task.documents), size(task)) == (4, 2)
    with pytest.raises(InputError, match="no qrels/dev.tsv in the split dev,"):
        dev_task(dev="others")


# --- what documents lack


def training_on(folder: Path, few: list[Document], **changes: Any) -> Any:
    """Opens the training of a KeyVec on documents."""
    write_documents(folder / "data", few, {}, {})
    recipe = KEYVEC.replace(skip_gram=False, **changes)
    config = TrainingConfig(str(folder / "data"), recipe, salience="bm25")
    return KeyVecTraining(config, RunFolder(folder))


def test_what_documents_lack_is_told(tmp_path, capsys, monkeypatch):
    """No summary, one of unknown words, no similar sentence, and no dev."""
    lookups: Counter[str] = Counter()
    target_of = DocumentTargets.of

    def of(self: DocumentTargets, document: Document) -> Target:
        lookups[document.id] += 1
        return target_of(self, document)

    monkeypatch.setattr(DocumentTargets, "of", of)
    few = documents({"train": 8})
    few[0] = few[0]._replace(summary=[])
    few[1] = few[1]._replace(summary=["unheard"])
    work = training_on(tmp_path, few)
    model = work.new_model()
    assert work.describe() == (
        "8 documents; salient: 20.5% of 39 sentences, theta 0.999995; 12.5% of"
        " 8 documents have no sentence above theta and keep the most"
        " similar sentence, 100.0% have the largest number of salient"
        " sentences; 1 have no summary: the first sentences are salient"
    )
    work.warn(model)
    lines = capsys.readouterr().err.splitlines()
    start = f"warning: {tmp_path / 'data'}: 12.5% of 8 documents to train on"
    assert lines[0].startswith(f"{start} have no summary: their first")
    assert lines[1].startswith(f"{start} have no key words: no word of the")
    assert lines[2].startswith(f"{start} have no sentence above theta (0.99")
    assert "found no document of the split dev: without" in lines[3]
    assert "all 3 epochs" in lines[3]
    assert len(lines) == 4
    # To count key words once, to train, and to find documents without any:
    # that without a summary is not one of these.
    assert lookups == {few[0].id: 2, **{one.id: 3 for one in few[1:]}}


def test_words_of_the_document_need_no_summary(tmp_path, capsys):
    few = documents({"train": 8, "dev": 2})
    few[0] = few[0]._replace(summary=[])
    few[1] = few[1]._replace(summary=["unheard"])
    work = training_on(tmp_path, few, key_words_of="document")
    assert all(target.key_words for target in work.targets.targets.values())
    work.warn(work.new_model())
    error = capsys.readouterr().err.splitlines()
    assert error[0].endswith("summary: their first sentences are salient")
    assert "above theta" in error[1] and len(error) == 2


def test_documents_without_any_summary(tmp_path, capsys):
    """A training reads them if key words are those of the whole text."""
    few = documents({"train": 4, "dev": 2})
    none = [one._replace(summary=[]) for one in few]
    work = training_on(tmp_path, none, key_words_of="document")
    work.warn(work.new_model())
    (line,) = capsys.readouterr().err.splitlines()
    assert "100.0% of 4 documents to train on have no summary" in line
    for target in work.targets.targets.values():
        assert target.salient == [0] and target.key_words
    with pytest.raises(InputError, match="no training document with a summ"):
        KeyVecTraining(work.config.replace(recipe=KEYVEC), work.run)

"""`KeyVecTraining` makes the model, targets and batches of a `KeyVec`."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.callbacks import BestEpoch, ValidationLoss
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.sources import open_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES, ClusterTask
from keras_lstm_dssm.evaluation.task import (
    CLUSTER,
    RETRIEVE,
    Task,
    document_tasks,
)
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.word_builders import build_keyvec, compile_keyvec
from keras_lstm_dssm.settings.recipes import KeyVecRecipe
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.text.vocabulary import vocabulary_of
from keras_lstm_dssm.text.word_hashing import normalize
from keras_lstm_dssm.training.document_targets import (
    TARGETS_FILE,
    DocumentExamples,
    DocumentTargets,
    KeyWords,
)
from keras_lstm_dssm.training.initial_model import InitialModel
from keras_lstm_dssm.training.salience import salience_teacher
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from keras_lstm_dssm.training.train import Training


def new_keyvec(
    recipe: KeyVecRecipe, seed: int, sentences: Sequence[str], documents: int
) -> KeyVec:
    """Builds and compiles a `KeyVec` with the vocabulary of `sentences`."""
    vocabulary = vocabulary_of(
        sentences, recipe.min_count, recipe.vocabulary_size
    )
    stems: Sequence[str] = ()
    if recipe.words == "stems":
        stems = vocabulary_of(
            sentences, recipe.min_count, recipe.vocabulary_size, recipe.split
        )
        # The key word of a stem is the most frequent word with this stem.
        key_words: dict[str, str] = {}
        normal = normalize(vocabulary, recipe.split)
        for stem, word in zip(normal, vocabulary, strict=True):
            key_words.setdefault(stem, word)
        vocabulary = list(key_words.values())
    train_vectors = partial(
        skip_gram_vectors, sentences, epochs=recipe.skip_gram_epochs, seed=seed
    )
    vectors = None
    if recipe.words != "trigrams" and recipe.skip_gram:
        words, width = stems or vocabulary, recipe.word_dimension
        vectors = train_vectors(words, width, split=recipe.split)
    model = build_keyvec(recipe, seed, vocabulary, vectors, stems)
    if recipe.key_word_start:
        # The vectors come from a cache if the call above had equal arguments.
        vectors = train_vectors(vocabulary, recipe.dimension)
        model.word_scores.kernel.assign(
            recipe.key_word_start * _directions(vectors).T
        )
    compile_keyvec(model, recipe, documents)
    return model


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Scales vectors to unit length, and subtracts the mean vector."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    # The mean vector would add the same number to the scores of all key words,
    # which does not change the words' probabilities.
    return directions - directions.mean(axis=0)


_UNSEEN = 0.1  # added to the count of each key word, so that no count is 0


class KeyVecTraining(Training):
    """Trains a `KeyVec` on the documents of the split `train`."""

    recipe: KeyVecRecipe

    examples_name = "documents"

    def open(self) -> None:
        """Opens the documents, and computes or reads their targets."""
        self.folder, self.spec = _open_folder(self.config)
        if not self.folder.count("train"):
            raise InputError(
                f"{self.folder.folder}: found no document of the split train,"
                " expected documents to train on: assign documents to train"
            )
        path = self.run.path / TARGETS_FILE
        if self.resumed:
            self.targets = DocumentTargets.from_file(path)
        else:
            self.targets = self.config.salience
            if not isinstance(self.targets, DocumentTargets):
                self.targets = targets_of(
                    self.folder, self.targets, self.recipe.key_words_of, "dev"
                )
            self.targets.write(path)

    def count(self) -> int:
        """Returns the number of documents in an epoch."""
        return len(self._documents)

    @cached_property
    def bad_lines(self) -> Mapping[str, int]:
        """The number of skipped lines of the data, for each reason."""
        return self.folder.counts.bad_lines

    @cached_property
    def _documents(self) -> DocumentExamples:
        return DocumentExamples(self.folder.of("train"), self.targets)

    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""
        return self._documents.batches(
            self.recipe.batch_size,
            epochs=self.recipe.epochs,
            seed=self.config.seed,
            first_step=first,
            excerpt=self.recipe.excerpt,
        )

    def describe(self) -> str:
        """Describes the numbers of documents and of salient sentences."""
        return f"{self.examples:,} documents; {self.targets.counts.describe()}"

    def dev_task(self, spec: str) -> Task | ClusterTask:
        """Opens the dev documents; returns the task for `config.select`."""
        config = self.config
        folder = open_documents(
            spec, config.max_bad_lines, self.recipe.max_sentences
        )
        tasks = document_tasks(folder, "dev", config.min_relevant)
        kind = CLUSTER if config.select in CLUSTER_MEASURES else RETRIEVE
        if kind not in tasks:
            needs = {CLUSTER: "two classes", RETRIEVE: "qrels/dev.tsv"}
            raise InputError(
                f"{spec}: found no {needs[kind]} in the split dev, "
                f"which {config.select} needs: choose another measure "
                "(select), or leave dev out to use the validation loss"
            )
        return tasks[kind]

    def new_model(self, initial: InitialModel | None = None) -> KeyVec:
        """Builds and compiles the model, with weights of `initial` if given."""
        recipe, seed = self.recipe, self.config.seed
        if initial is not None:
            initial.check(recipe)
            model = build_keyvec(
                recipe, seed, initial.vocabulary, stems=initial.stems
            )
            initial.copy_weights_to(model)
            compile_keyvec(model, recipe, self.folder.count("train"))
            return model
        train = self.folder.of("train")
        sentences = [text for document in train for text in document.sentences]
        model = new_keyvec(recipe, seed, sentences, self.folder.count("train"))
        # The biases start at the logarithms of the key words' frequencies. With
        # zero biases, the document vectors would first learn the frequencies:
        # after an epoch, all cosines of documents would be nearly 1.
        counts = self.key_word_counts
        shares = np.full(len(model.key_lookup) + 1, _UNSEEN)
        np.add.at(shares, model.key_word_ids(counts), list(counts.values()))
        shares = shares[1:]  # leaves out id 0: unknown words
        model.word_scores.bias.assign(np.log(shares / shares.sum()))
        return model

    @property
    def max_bad_lines(self) -> int:
        """Largest number of bad lines that are skipped without an error."""
        return self.folder.max_bad_lines

    def best_epoch(self) -> BestEpoch | None:
        """Returns the callback that chooses the best epoch, or `None`."""
        if self.config.dev is not None:
            return super().best_epoch()
        if not self.folder.count("dev"):
            return None
        # The validation loss rises long before the vectors stop improving. The
        # loss therefore chooses the epoch only if a `patience` is set.
        documents = DocumentExamples(self.folder.of("dev"), self.targets)
        return ValidationLoss(
            documents.in_order(self.recipe.batch_size),
            self.config.every,
            keep_best=self.config.patience is not None,
            patience=self.config.patience,
        )

    def warn(self, model: KeyVec) -> None:
        """Warns if documents lack summaries or targets, or if dev is empty."""
        counts = self.targets.counts
        consequence = source = ""
        if self.recipe.key_words_of == "summary":
            consequence = ", and they have no key words"
            source = " of the summary"
        for number, problem in (
            (
                counts.no_summary,
                "have no summary: their first sentences are salient"
                + consequence,
            ),
            (
                self._without_key_words(model),
                f"have no key words: no word{source} is in the vocabulary and"
                " can be a key word",
            ),
            (
                counts.none,
                f"have no sentence above theta ({counts.theta:g}): the sentence"
                " that is most similar to the summary is salient",
            ),
        ):
            if number:
                self.print_warning(
                    f"{number / counts.documents:.1%} of {counts.documents:,}"
                    f" documents to train on {problem}"
                )
        if self.recipe.patience and not self.folder.count("dev"):
            self.print_warning(
                "found no document of the split dev: without a validation"
                f" loss, all {self.recipe.epochs} epochs are trained, and the"
                " weights of the last epoch are kept"
            )

    def _without_key_words(self, model: KeyVec) -> int:
        """Counts training documents that have text, but no known key word."""
        words = list(self.key_word_counts)
        ids = model.key_word_ids(words).tolist()
        known_words = {word for word, i in zip(words, ids, strict=True) if i}
        return sum(
            not known_words.intersection(self.targets.of(document).key_words)
            for document in self.folder.of("train")
            if document.summary or self.recipe.key_words_of == "document"
        )

    @cached_property
    def key_word_counts(self) -> Counter[str]:
        """The number of training documents with each key word."""
        return Counter(
            word
            for document in self.folder.of("train")
            for word in self.targets.of(document).key_words
        )


def _open_folder(config: TrainingConfig) -> tuple[DocumentFolder, str]:
    data, max_sentences = config.data, config.recipe.max_sentences
    if isinstance(data, DocumentFolder):
        if data.max_sentences != max_sentences:
            data = DocumentFolder(
                data.folder, data.max_bad_lines, max_sentences
            )
        return data, data.folder
    if not isinstance(data, str | os.PathLike):
        raise InputError(
            f"a KeyVec learns from documents: found {type(data).__name__},"
            " expected a DocumentFolder, its path or 'api_documents'; clicks"
            " train other presets, such as best"
        )
    spec = os.fspath(data)
    return open_documents(spec, config.max_bad_lines, max_sentences), spec


def targets_of(
    folder: DocumentFolder, salience: Any, key_words_of: str, split: str
) -> DocumentTargets:
    """Computes targets of train and `split`, with train's threshold theta."""
    train = folder.of("train")
    teacher = salience_teacher(salience, train)
    key_words = KeyWords(train, source=key_words_of)
    targets = DocumentTargets.from_teacher(train, teacher, key_words)
    counts = targets.counts
    split_targets = DocumentTargets.from_teacher(
        folder.of(split), teacher, key_words, counts.theta
    )
    return DocumentTargets({**targets.targets, **split_targets.targets}, counts)

"""The training of a `KeyVec`: its model, its documents and their order."""

import math
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.callbacks.best_epoch import BestEpoch, ValidationLoss
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.sources import open_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.losses import KeyVecLoss
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.recipes import KeyVecRecipe
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.text.vocabulary import vocabulary_of
from keras_lstm_dssm.text.word_hashing import normalize
from keras_lstm_dssm.training.config import KEYVEC, DataOptions, TrainingData
from keras_lstm_dssm.training.document_targets import (
    TARGETS_FILE,
    DocumentExamples,
    DocumentTargets,
    KeyWords,
)
from keras_lstm_dssm.training.initial_model import Parent
from keras_lstm_dssm.training.salience import SalienceCounts, salience_teacher
from keras_lstm_dssm.training.session import BasePlan, BaseTraining
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors


@dataclass(frozen=True)
class DocumentPlan(BasePlan):
    """Describes the documents that a `KeyVec` is trained on, and their order.

    The counterpart of `TrainingPlan`.

    Attributes:
        documents: The documents with their targets.
        recipe: Epochs, batch size and excerpts.
        seed: Seed of the order of the documents.
        counts: How many of their sentences are salient.
        left_out: What is wrong -> number of lines that are left out.
    """

    documents: DocumentExamples
    recipe: KeyVecRecipe
    seed: int
    counts: SalienceCounts
    left_out: Mapping[str, int] = field(default_factory=dict)

    log = None
    examples_name = "documents"

    @property
    def examples(self) -> int:
        """Documents in an epoch."""
        return len(self.documents)

    @property
    def bad_lines(self) -> Mapping[str, int]:
        """What is wrong -> number of lines of the data that are left out."""
        return self.left_out

    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""
        return self.documents.batches(
            self.recipe.batch_size,
            epochs=self.recipe.epochs,
            seed=self.seed,
            first_step=first,
            excerpt=self.recipe.excerpt,
        )

    def describe(self) -> str:
        """Returns a line for users about the documents to train on.

        It states how many there are, and how many of their sentences the
        model is to find.
        """
        return f"{self.examples:,} documents; {self.counts.describe()}"


def new_keyvec(
    recipe: KeyVecRecipe, seed: int, sentences: Sequence[str], documents: int
) -> KeyVec:
    """Builds and compiles the model that a recipe describes.

    Args:
        recipe: The recipe.
        seed: Seed of the weights and of the skip-gram vectors.
        sentences: The sentences of the training documents, from which the
            vocabulary is taken, and the skip-gram vectors with which words
            and key words start.
        documents: The number of training documents; with `recipe.decay`, it
            gives the number of steps in which the learning rate falls to 0.

    Raises:
        InputError: No word is frequent enough, or gensim is not installed.
    """
    vocabulary = vocabulary_of(
        sentences, recipe.min_count, recipe.vocabulary_size
    )
    stems: Sequence[str] = ()
    if recipe.words == "stems":
        stems = vocabulary_of(
            sentences, recipe.min_count, recipe.vocabulary_size, recipe.split
        )
        # The most frequent word of each stem is its key word.
        key_words: dict[str, str] = {}
        normal = normalize(vocabulary, recipe.split)
        for stem, word in zip(normal, vocabulary, strict=True):
            key_words.setdefault(stem, word)
        vocabulary = list(key_words.values())
    vectors = None
    if recipe.words != "trigrams" and recipe.skip_gram:
        vectors = skip_gram_vectors(
            sentences,
            stems or vocabulary,
            recipe.word_dimension,
            epochs=recipe.skip_gram_epochs,
            seed=seed,
            split=recipe.split,
        )
    model = recipe.build(seed, vocabulary, vectors, stems)
    if recipe.key_word_start:
        # Often the same vectors; `skip_gram_vectors` then trains only once.
        vectors = skip_gram_vectors(
            sentences,
            vocabulary,
            recipe.dimension,
            epochs=recipe.skip_gram_epochs,
            seed=seed,
        )
        model.word_scores.kernel.assign(
            recipe.key_word_start * _directions(vectors).T
        )
    compile_keyvec(model, recipe, documents)
    return model


def compile_keyvec(model: KeyVec, recipe: KeyVecRecipe, documents: int) -> None:
    """Compiles a `KeyVec` with the optimizer and the loss of its recipe.

    Args:
        model: The model.
        recipe: The recipe.
        documents: The number of training documents. With `recipe.decay` the
            learning rate falls to 0 over `recipe.epochs` passes over them.
    """
    learning_rate: Any = recipe.learning_rate
    if recipe.decay:
        steps = recipe.epochs * math.ceil(documents / recipe.batch_size)
        learning_rate = keras.optimizers.schedules.CosineDecay(
            learning_rate, steps
        )
    model.compile(
        keras.optimizers.Adam(learning_rate),
        KeyVecLoss(recipe.read_weight, recipe.word_weight, recipe.normalize),
    )


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Scales vectors to unit length, and subtracts their mean.

    The skip-gram vectors of all words have a direction in common. In W_v it
    would change the scores of all key words by the same number.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return directions - directions.mean(axis=0)


_UNSEEN = 0.1  # the count of a word that is no key word of any document


@dataclass(frozen=True)
class DocumentTraining(BaseTraining):
    """Makes the model and the plan of a training of a `KeyVec`.

    The counterpart of `TowerTraining`. The model is trained on the documents
    of the split train, and its validation loss is that of dev.

    Attributes:
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        spec: Data specification from which `folder` can be opened again.
        folder: The documents.
        targets: The salient sentences and key words of the documents of train
            and of dev; its counts are those of train.
    """

    recipe: KeyVecRecipe
    seed: int
    spec: str
    folder: DocumentFolder
    targets: DocumentTargets

    log = None

    @classmethod
    def open(
        cls,
        recipe: KeyVecRecipe,
        seed: int,
        run: RunFolder,
        options: DataOptions,
    ) -> "DocumentTraining":
        """Opens the documents; computes their targets, or reads them again.

        `options.salience` is the teacher of salient sentences, or the
        targets. These are written into the run folder, so that a resumed
        run has the same ones, whatever has become of the teacher.

        Raises:
            InputError: The documents or the teacher are wrong, or options are
                given that only other models use.
        """
        options.check(KEYVEC)
        folder, spec = _open_folder(options, recipe)
        if not folder.count("train"):
            raise InputError(
                f"{folder.folder}: found no document of the split train,"
                " expected documents to learn from: give some the split train"
            )
        path = run.path / TARGETS_FILE
        if options.resumed:
            return cls(
                recipe, seed, spec, folder, DocumentTargets.from_file(path)
            )
        targets = options.salience
        if not isinstance(targets, DocumentTargets):
            targets = _targets(folder, targets, recipe.key_words_of)
        targets.write(path)
        return cls(recipe, seed, spec, folder, targets)

    def new_model(self, parent: Parent | None = None) -> KeyVec:
        """Builds and compiles the model; see `new_keyvec`.

        That of a parent has its words and its key words: others in the new
        documents stay unknown.

        The biases of the words start at the logarithms of their shares of all
        key words. From zeros, the vectors of all documents would first learn
        these shares together: after an epoch, their cosines are nearly 1.
        """
        if parent is not None:
            parent.check_kind(KeyVec)
            parent.check_words(self.recipe.words)
            model = self.recipe.build(
                self.seed, parent.vocabulary, stems=parent.stems
            )
            parent.give_weights(model)
            compile_keyvec(model, self.recipe, self.folder.count("train"))
            return model
        train = self.folder.of("train")
        sentences = [text for one in train for text in one.sentences]
        model = new_keyvec(
            self.recipe, self.seed, sentences, self.folder.count("train")
        )
        counts = self.key_word_counts
        shares = np.full(len(model.key_lookup) + 1, _UNSEEN)
        np.add.at(shares, model.key_word_ids(counts), list(counts.values()))
        shares = shares[1:]  # without that of unknown words
        model.word_scores.bias.assign(np.log(shares / shares.sum()))
        return model

    def plan(
        self, folder: Path, model: KeyVec, resumed: bool = False
    ) -> DocumentPlan:
        """Makes the plan."""
        return DocumentPlan(
            DocumentExamples(self.folder.of("train"), self.targets),
            self.recipe,
            self.seed,
            self.targets.counts,
            self.folder.counts.bad_lines,
        )

    @property
    def max_bad_lines(self) -> int:
        """Number of bad lines of the documents that may be left out."""
        return self.folder.max_bad_lines

    def best_epoch(self, data: TrainingData, dev: Any) -> BestEpoch | None:
        """Returns the callback that chooses the best epoch.

        Without a dev task, the loss on the documents of the split dev is
        measured (`None` if there are none); it chooses the epoch, and stops
        the training, only if there is a `patience`. It rises long before
        the vectors stop improving.
        """
        if dev is not None or data.dev is not None:
            return super().best_epoch(data, dev)
        if not self.folder.count("dev"):
            return None
        documents = DocumentExamples(self.folder.of("dev"), self.targets)
        return ValidationLoss(
            documents.in_order(self.recipe.batch_size),
            data.every,
            keep_best=data.patience is not None,
            patience=data.patience,
        )

    def warn(self, model: KeyVec) -> None:
        """Warns of documents without summary, key words or key sentences."""
        counts = self.targets.counts
        without, source = "", "no word"
        if self.recipe.key_words_of == "summary":
            without = ", and they have no key words"
            source = "a summary, but no word of it"
        for number, what in (
            (
                counts.no_summary,
                "have no summary: their first sentences are salient" + without,
            ),
            (
                self._without_key_words(model),
                f"have {source} that is in the vocabulary and can be a key"
                " word: they have none",
            ),
            (
                counts.none,
                f"have no sentence above theta ({counts.theta:g}): the one"
                " that is most similar to the summary is salient",
            ),
        ):
            if number:
                print(
                    f"warning: {self.spec}: {number / counts.documents:.1%} of"
                    f" {counts.documents:,} documents to train on {what}",
                    file=sys.stderr,
                )
        if self.recipe.patience and not self.folder.count("dev"):
            print(
                f"warning: {self.spec}: found no document of the split dev:"
                f" without a validation loss, all {self.recipe.epochs} epochs"
                " are trained, and the last one is the model",
                file=sys.stderr,
            )

    def _without_key_words(self, model: KeyVec) -> int:
        """Counts the training documents without a key word in the vocabulary.

        Documents without the text that key words are taken from, the summary
        or all sentences, are not counted.
        """
        words = list(self.key_word_counts)
        ids = model.key_word_ids(words).tolist()
        known = {word for word, i in zip(words, ids, strict=True) if i}
        return sum(
            not known.intersection(self.targets.of(one).key_words)
            for one in self.folder.of("train")
            if one.summary or self.recipe.key_words_of == "document"
        )

    @cached_property
    def key_word_counts(self) -> Counter[str]:
        """Maps each key word to its number of training documents."""
        return Counter(
            word
            for one in self.folder.of("train")
            for word in self.targets.of(one).key_words
        )


def _open_folder(
    options: DataOptions, recipe: KeyVecRecipe
) -> tuple[DocumentFolder, str]:
    """Opens the documents; returns them and their data specification."""
    data = options.data
    if isinstance(data, DocumentFolder):
        if data.max_sentences != recipe.max_sentences:
            data = DocumentFolder(
                data.folder, data.max_bad_lines, recipe.max_sentences
            )
        return data, data.folder
    if not isinstance(data, str | os.PathLike):
        raise InputError(
            f"a KeyVec learns from documents: found {type(data).__name__},"
            " expected a DocumentFolder, its path or 'api_documents'; clicks"
            " train other presets, such as best"
        )
    spec = os.fspath(data)
    folder = open_documents(spec, options.max_bad_lines, recipe.max_sentences)
    return folder, spec


def _targets(
    folder: DocumentFolder, salience: Any, key_words_of: str
) -> DocumentTargets:
    """Computes the targets of train, and of dev with the same threshold."""
    train = folder.of("train")
    teacher = salience_teacher(salience, train)
    key_words = KeyWords(train, source=key_words_of)
    targets = DocumentTargets.from_teacher(train, teacher, key_words)
    counts = targets.counts
    dev = DocumentTargets.from_teacher(
        folder.of("dev"), teacher, key_words, counts.theta
    )
    return DocumentTargets({**targets.targets, **dev.targets}, counts)

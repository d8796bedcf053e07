"""DocumentModel: the methods of `KeyVec` that take documents, such as fit."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.document_batches import (
    DocumentHasher,
    HashedDocuments,
    document_batches,
    sentence_batches,
    sentence_lists,
)
from keras_lstm_dssm.models.document_reading import DocumentReading
from keras_lstm_dssm.models.hashed_model import HashedModel, is_empty
from keras_lstm_dssm.text import Vocabulary


class DocumentModel(HashedModel):
    """Base of `KeyVec`: `fit`, `encode`, `key_sentences` and `key_words`.

    A subclass implements `call`, `batch_loss`, `read_sentences`,
    `word_probabilities` and `dimension`.

    Args:
        hasher: Turns batches of documents into the input of a training step.
        seed: Seed of the order of lists in `fit`.
        **kwargs: Arguments of `keras.Model`.
    """

    own_metrics = "four metrics, loss, accuracy, read_loss and key_word_loss"
    rankings_hint = "measure rankings with evaluation.evaluate_documents"
    export_hint = "encode(documents)"
    weights_hint = (
        "give x=(documents, salient, key_words), and further examples as "
        "validation_data"
    )

    key_lookup: Vocabulary
    """The words that can be key words, with their ids."""

    def __init__(
        self, hasher: DocumentHasher, seed: int, **kwargs: Any
    ) -> None:
        super().__init__(hasher, HashedDocuments, **kwargs)
        self.hasher = hasher
        self.seed = seed
        self._read_loss = keras.metrics.Mean(name="read_loss")
        self._key_word_loss = keras.metrics.Mean(name="key_word_loss")
        self._reading = DocumentReading(
            self.read_sentences, hasher.max_sentences
        )

    @property
    def dimension(self) -> int:
        """Width of the documents' vectors."""
        raise NotImplementedError(f"{type(self).__name__}.dimension")

    @property
    def key_vocabulary(self) -> list[str]:
        """The words that can be key words."""
        raise NotImplementedError(f"{type(self).__name__}.key_vocabulary")

    def read_sentences(
        self, sentences: tf.RaggedTensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors of documents, and the p_i of all sentences.

        Args:
            sentences: Ragged strings `(batch, None)`.

        Returns:
            Float `(batch, dimension)` and `(sentences,)`.
        """
        raise NotImplementedError(f"{type(self).__name__}.read_sentences")

    def word_probabilities(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the probabilities of key words, `(batch, vocabulary)`.

        Args:
            vectors: Float `(batch, dimension)`, vectors of documents.
        """
        raise NotImplementedError(f"{type(self).__name__}.word_probabilities")

    def compile(self, optimizer: Any, loss: Any, **kwargs: Any) -> None:
        """Sets optimizer and loss.

        Args:
            optimizer: Any Keras optimizer, such as Adam, or
                `NesterovMomentum`.
            loss: `KeyVecLoss`.
            **kwargs: See `keras.Model.compile`; loss, accuracy, read_loss and
                key_word_loss are the only metrics.

        Raises:
            InputError: Another loss, metrics, XLA or half precision are
                requested.
        """
        if not hasattr(loss, "read_costs"):
            raise InputError(f"the loss is {loss!r}: expected KeyVecLoss()")
        super().compile(optimizer, loss, **kwargs)

    def fit(
        self,
        x: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_data: Any = None,
        shuffle: bool = True,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on documents whose key sentences and key words are known.

        Args:
            x: `tf.data.Dataset` of batches `(documents, salient, key_words)`,
                each a `tf.RaggedTensor` `[batch, None]`: the sentences, a
                bool for each of them, and the key words of each document; or
                a tuple of three lists.
            batch_size: Documents in a batch, for lists; 32 by default.
            epochs: See `keras.Model.fit`.
            verbose: See `keras.Model.fit`.
            callbacks: See `keras.Model.fit`.
            validation_data: Documents like x, measured after each epoch.
            shuffle: Whether lists are shuffled, anew in each epoch.
            **kwargs: See `keras.Model.fit`: `initial_epoch`,
                `steps_per_epoch`, `validation_steps`, `validation_freq`.

        Returns:
            The history: loss, read_loss (-L_read), key_word_loss (-L_enc) and
            accuracy of each epoch, means over documents. Accuracy is the
            share of documents whose sentence of the largest p_i is a key
            sentence.

        Raises:
            InputError: x is neither a dataset of such batches nor three lists
                that fit each other, or weights are given.
            tf.errors.InvalidArgumentError: The loss is NaN or infinite, or the
                parts of a batch have different numbers of rows; the weights
                are those before the step.
        """
        return self._fit_examples(
            x,
            batch_size,
            shuffle,
            validation_data,
            callbacks,
            epochs=epochs,
            verbose=verbose,
            **kwargs,
        )

    def evaluate(
        self,
        x: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> Any:
        """Measures the loss, its parts and the accuracy; x as for `fit`."""
        batches = self._hashed(document_batches(x, batch_size))
        return super().evaluate(batches, verbose=verbose, **kwargs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> np.ndarray:
        """Returns the vectors of documents, `(documents, dimension)`.

        `encode` is faster for documents of different lengths.

        Args:
            x: Documents as for `encode`, or a dataset of batches of them.
            batch_size: Documents in a batch, for lists; 32 by default.
            verbose: See `keras.Model.predict`.
            **kwargs: See `keras.Model.predict`.
        """
        documents = sentence_batches(x, batch_size)
        if is_empty(documents):  # Keras would raise UnboundLocalError
            return np.zeros((0, self.dimension), self.compute_dtype)
        return super().predict(documents, verbose=verbose, **kwargs)

    def predict_on_batch(self, x: Any, y: Any = None) -> np.ndarray:
        """Returns the vectors of one batch of documents."""
        self._refuse(y=y)
        return self.predict(x, batch_size=max(1, len(x)), verbose=0)

    def predict_step(self, data: Any) -> tf.Tensor:
        """Returns the vectors of a batch of documents."""
        return self(data[0] if isinstance(data, tuple) else data)

    def encode(self, documents: Any, progress: bool = False) -> np.ndarray:
        """Returns the vectors of any number of documents.

        Documents of similar size are read together. A vector does not depend
        on the other documents. May be called from several threads.

        Args:
            documents: Any iterable of documents, each a string or a list of
                sentences.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            Float `[documents, dimension]`, in their order.

        Raises:
            InputError: `documents` is something else.

        Example:
        >>> model.encode(["First one. Long.", ["Second.", "Split."]]).shape
        (2, 100)
        """
        found = self._reading.read_all(sentence_lists(documents), progress)
        if not found:
            return np.zeros((0, self.dimension), self.compute_dtype)
        return np.stack([document.vector for document in found])

    def probabilities(
        self, documents: Any, progress: bool = False
    ) -> list[np.ndarray]:
        """Returns p_i, the probabilities that sentences of documents are key.

        Args:
            documents: As for `encode`.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            For each document float `[sentences]`, in the order of its
            sentences, of which at most `max_sentences` are read.

        Raises:
            InputError: `documents` is something else.
        """
        found = self._reading.read_all(sentence_lists(documents), progress)
        return [document.probabilities for document in found]

    def key_sentences(
        self, document: str | Sequence[str], n: int = 3
    ) -> list[tuple[str, float]]:
        """Returns the sentences of a document with the largest p_i.

        Args:
            document: A string or a list of sentences.
            n: Number of sentences, default 3; a short document has fewer.

        Returns:
            Pairs of a sentence and its p_i, the largest first; of equal ones,
            the first sentence first.

        Raises:
            InputError: `document` is something else, or n is below 1.

        Example:
        >>> model.key_sentences("Sorts a list. It is stable. See below.", 1)
        [('Sorts a list.', 0.81)]
        """
        _check_number(n)
        lists = sentence_lists([document])
        (found,) = self._reading.read_all(lists)
        sentences = lists[0] or [b""]
        best = np.argsort(-found.probabilities, kind="stable")[:n]
        return [
            (
                sentences[row].decode("utf-8", "replace"),
                float(found.probabilities[row]),
            )
            for row in best
        ]

    def key_words(
        self, document: str | Sequence[str], n: int = 10
    ) -> list[tuple[str, float]]:
        """Returns the words that the vector of a document predicts best.

        Args:
            document: A string or a list of sentences.
            n: Number of words, default 10.

        Returns:
            Pairs of a word and its probability, softmax(W_v d + b_v), the
            largest first.

        Raises:
            InputError: `document` is something else, or n is below 1.
        """
        _check_number(n)
        p = self.word_probabilities(self.encode([document]))[0].numpy()
        vocabulary = self.key_vocabulary
        best = np.argsort(-p, kind="stable")[:n]
        return [(vocabulary[word], float(p[word])) for word in best]

    def _batches(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | None = None,
        shuffle_seed: int | None = None,
    ) -> tf.data.Dataset:
        self._refuse(y=y)
        return document_batches(x, batch_size, shuffle_seed)

    def _record_parts(self, parts: tf.Tensor) -> None:
        """Updates read_loss and key_word_loss by parts, `(documents, 2)`."""
        self._read_loss.update_state(parts[:, 0])
        self._key_word_loss.update_state(parts[:, 1])


def _check_number(n: Any) -> None:
    if type(n) is not int or n < 1:
        raise InputError(f"n is {n!r}: expected a whole number of 1 or more")

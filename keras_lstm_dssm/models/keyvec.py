"""`KeyVec`: vectors, key sentences and key words of documents."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.layers.documents import (
    DocumentEncoder,
    SentenceEncoder,
    SentenceReader,
)
from keras_lstm_dssm.layers.word_vectors import VocabularyVectors, WordVectors
from keras_lstm_dssm.models.document_batch import (
    DocumentBatch,
    DocumentHasher,
    HashedDocuments,
    document_batches,
    sentence_batches,
    sentence_lists,
)
from keras_lstm_dssm.models.text_model import TextModel, is_empty
from keras_lstm_dssm.private_api import DirectedMean
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.many_texts import run_batches
from keras_lstm_dssm.text.sentences import graph_sentences
from keras_lstm_dssm.text.vocabulary import Vocabulary
from keras_lstm_dssm.text.word_hashing import as_strings, normalize
from lstm_dssm_client.signatures import slices_of_size

SENTENCES_AT_ONCE = 4096
DOCUMENTS_AT_ONCE = 256


@register
class KeyVec(TextModel):
    """Represents documents by vectors that preserve their key content.

    Bi and Ma 2017. A convolution represents each sentence. A bidirectional LSTM
    reads the sentences. The state h_i of the LSTM at sentence i gives p_i, the
    probability that sentence i is a key sentence. The vector of the document is
    tanh(W_d m + b_d), where m is the mean of the states h_i, weighted by p_i.

    In training, p_i learns to identify key sentences, and the vector learns to
    predict key words. In the paper, key sentences and key words come from
    summaries. A trained model needs no summary.

    A document is a list of sentences, or a string, which `split_sentences`
    splits. `words.max_words` limits the words of each sentence.

    `fit` takes the sentences of each document, whether each sentence is a key
    sentence (bool), and the key words of each document. Give a tuple of three
    lists, or a `tf.data.Dataset` of batches `(documents, salient, key_words)`,
    each a `tf.RaggedTensor` `[batch, None]`.

    The metrics are means over documents: loss, read_loss (-L_read of the
    paper), key_word_loss (-L_enc of the paper) and accuracy. Accuracy is the
    share of documents whose sentence with the largest p_i is a key sentence.

    Args:
        words: Layer that converts sentences to word vectors.
        key_vocabulary: The possible key words, normalised. Default `None`: the
            vocabulary of `words`. If `words` reads stems, a key word stands for
            all words with the same stem.
        filters: Number of filters of each window of the convolution. Default
            50.
        windows: The width of each window in words. Default 3, 4 and 5.
        units: Width of the LSTM of each direction. Default 100.
        dimension: Width of the documents' vectors. Default 100.
        weighted: Whether sentences are weighted by p_i. Default `True`. With
            `False`, all p_i are 1 and L_read is 0.
        dropout: Dropout rate of the sentences' vectors, as in Kim 2014.
            Default 0.
        max_sentences: Largest number of sentences that are read, from the start
            of a document. Default 250; `None` for all.
        seed: Seed of dropout and of the shuffling of lists by `fit`. Default 0.
        **kwargs: Arguments of `keras.Model`.

    Call arguments:
        inputs: Strings `(batch,)`, ragged strings `(batch, None)` of
            sentences, or `DocumentBatch`.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        Vectors `(batch, dimension)`, each number between -1 and 1. Compare
        vectors by cosine.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> model = KeyVec(VocabularyVectors(vocabulary, 100, max_words=60))
    >>> model.compile(keras.optimizers.Adam(), KeyVecLoss())
    >>> model.fit((documents, salient, key_words), epochs=5)
    >>> model.encode(["A document. It has two sentences."]).shape
    (1, 100)
    """

    hasher: DocumentHasher

    batches_of = staticmethod(document_batches)
    kind = "keyvec"
    own_metrics = "four metrics, loss, accuracy, read_loss and key_word_loss"
    rankings_hint = "measure rankings with evaluation.evaluate_systems"
    weights_hint = (
        "give x=(documents, salient, key_words), and further examples as "
        "validation_data"
    )

    def __init__(
        self,
        words: WordVectors,
        key_vocabulary: Sequence[str] | None = None,
        filters: int = 50,
        windows: Sequence[int] = (3, 4, 5),
        units: int = 100,
        dimension: int = 100,
        weighted: bool = True,
        dropout: float = 0.0,
        max_sentences: int | None = 250,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        check_at_least(1, optional=True, max_sentences=max_sentences)
        if not 0 <= dropout < 1:
            raise InputError(
                f"dropout must be at least 0 and less than 1, not {dropout}"
            )
        vocabulary = _key_vocabulary(words, key_vocabulary)
        super().__init__(
            DocumentHasher(words, vocabulary, max_sentences), seed, **kwargs
        )
        self._read_loss = DirectedMean("read_loss", grows=False)
        self._key_word_loss = DirectedMean("key_word_loss", grows=False)
        self.words = words
        self.key_lookup = vocabulary
        self._key_words = " ".join(key_vocabulary or vocabulary.words)
        self.weighted = weighted
        self.dropout = dropout
        self.max_sentences = max_sentences
        policy = {"dtype": words.dtype_policy}
        self.sentence_encoder = SentenceEncoder(
            words.dimension, filters, windows, name="sentence_encoder", **policy
        )
        self.reader = SentenceReader(
            self.sentence_encoder.dimension,
            units,
            weighted,
            name="reader",
            **policy,
        )
        self.document_encoder = DocumentEncoder(
            2 * units, dimension, name="document_encoder", **policy
        )
        self.word_scores = keras.layers.Dense(
            len(vocabulary), name="word_scores", **policy
        )
        self.word_scores.build((None, dimension))

    @property
    def dimension(self) -> int:
        """Width of the documents' vectors."""
        return self.document_encoder.dimension

    @property
    def key_vocabulary(self) -> list[str]:
        """The possible key words."""
        return self._key_words.split(" ")

    def key_word_ids(self, words: Iterable[str]) -> np.ndarray:
        """Looks up key words after normalising them, int32 `(words,)`.

        The id of `key_vocabulary[i]` is i + 1; any other word has the id 0.
        """
        normal = normalize(words, self.key_lookup.split)
        return self.key_lookup.ids(tf.constant(normal, tf.string)).numpy()

    def compile(self, optimizer: Any, loss: Any, **kwargs: Any) -> None:
        """Sets any Keras optimizer, and a `KeyVecLoss`.

        Raises:
            InputError: The loss is not a `KeyVecLoss`, or metrics, XLA or half
                precision are requested.
        """
        if not hasattr(loss, "read_costs"):
            raise InputError(f"the loss is {loss!r}: expected KeyVecLoss()")
        super().compile(optimizer, loss, **kwargs)

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the vectors of documents."""
        if not isinstance(inputs, DocumentBatch):
            inputs = self.hash_documents(inputs)
        vectors, _ = self.vectors_and_logits(inputs, training)
        return vectors

    def hash_documents(self, documents: Any) -> DocumentBatch:
        """Hashes documents, in a graph or eagerly.

        `documents` are strings `(batch,)`, which are split into sentences, or
        ragged strings `(batch, None)` of sentences.
        """
        if not isinstance(documents, tf.RaggedTensor):
            documents = graph_sentences(as_strings(documents))
        return self.hasher.documents(documents)

    def vectors_and_logits(
        self,
        documents: DocumentBatch,
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors of documents, and the logits of the p_i.

        Vectors are float `(documents, dimension)`, logits float `(sentences,)`.
        `dropout_seed` is int32 `(2,)`, or `None` for no dropout.
        """
        sentences = self.sentence_encoder(
            self.words.embedding(documents.sentences, training=training),
            documents.sentences,
            training=training,
        )
        if dropout_seed is not None and self.dropout:
            sentences = tf.nn.experimental.stateless_dropout(
                sentences, self.dropout, dropout_seed
            )
        states, logits = self.reader(
            sentences,
            documents.sentences.text_index,
            documents.lengths,
            training=training,
        )
        vectors = self.document_encoder(states, logits, documents.document)
        return vectors, logits

    def batch_loss(self, batch: HashedDocuments, training: bool) -> tf.Tensor:
        """Returns the loss of eq. (4), and updates the metrics."""
        documents, document = batch.documents, batch.documents.document
        # The seed depends on the training step, so that a resumed run drops the
        # same elements as an uninterrupted run.
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        seed = tf.stack([self.seed, step]) if training else None
        vectors, logits = self.vectors_and_logits(documents, training, seed)
        read_costs = self.loss.read_costs(logits, batch.salient, document)
        if not self.weighted:
            read_costs = tf.zeros_like(read_costs)
        word_costs = self.loss.word_costs(
            self.word_scores(vectors), batch.key_words, batch.key_word_document
        )
        key_word_counts = tf.math.unsorted_segment_sum(
            tf.ones_like(batch.key_words),
            batch.key_word_document,
            tf.size(documents.lengths),
        )
        costs = tf.stack([read_costs, word_costs], axis=1)
        counts = tf.cast(
            tf.stack([documents.lengths, key_word_counts], 1), costs.dtype
        )
        loss = self.compute_loss(y=counts, y_pred=costs, training=training)
        losses = self.loss.parts(counts, costs)
        self._read_loss.update_state(losses[:, 0])
        self._key_word_loss.update_state(losses[:, 1])
        self._record(loss, _best_is_salient(logits, batch.salient, document))
        return loss

    def read_sentences(
        self, sentences: tf.RaggedTensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors of documents, and the p_i of all sentences.

        `sentences` are ragged strings `(batch, None)`. The results are float
        `(batch, dimension)` and `(sentences,)`.
        """
        vectors, logits = self.vectors_and_logits(
            self.hash_documents(sentences)
        )
        p = tf.sigmoid(logits) if self.weighted else tf.ones_like(logits)
        return vectors, p

    def word_probabilities(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns each key word's probability, float `(batch, vocabulary)`.

        The probabilities of a vector d are softmax(W_v d + b_v).
        """
        return tf.nn.softmax(self.word_scores(vectors))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        shared = self.key_lookup is getattr(self.words, "lookup", None)
        return {
            "name": self.name,
            "words": keras.saving.serialize_keras_object(self.words),
            "key_vocabulary": None if shared else self._key_words,
            "filters": self.sentence_encoder.filters,
            "windows": self.sentence_encoder.windows,
            "units": self.reader.units,
            "dimension": self.dimension,
            "weighted": self.weighted,
            "dropout": self.dropout,
            "max_sentences": self.max_sentences,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "KeyVec":
        """Rebuilds the model with its layers."""
        words = keras.saving.deserialize_keras_object(config["words"])
        vocabulary = config["key_vocabulary"]
        vocabulary = vocabulary and vocabulary.split(" ")
        return cls(**{**config, "words": words, "key_vocabulary": vocabulary})

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> np.ndarray:
        """Returns the vectors of documents, `(documents, dimension)`.

        x is a list of documents, or a dataset of batches of documents. `encode`
        is faster for documents of different lengths. For the other arguments
        see `keras.Model.predict`; `batch_size` is 32 by default.
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

        Several threads may call this method.

        Args:
            documents: Any iterable of documents, each a string or a list of
                sentences.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            Float `[documents, dimension]`, in the order of the documents.

        Raises:
            InputError: `documents` is a string or not iterable, or an element
                is neither a string nor a list of sentences.

        Example:
        >>> model.encode(["First one. Long.", ["Second.", "Split."]]).shape
        (2, 100)
        """
        results = self._read_in_batches(sentence_lists(documents), progress)
        if not results:
            return np.zeros((0, self.dimension), self.compute_dtype)
        return np.stack([vector for vector, _ in results])

    def probabilities(
        self, documents: Any, progress: bool = False
    ) -> list[np.ndarray]:
        """Returns the p_i of each document, float `[sentences]`.

        Sentences after the first `max_sentences` are not read. For the
        arguments see `encode`.
        """
        results = self._read_in_batches(sentence_lists(documents), progress)
        return [probabilities for _, probabilities in results]

    def key_sentences(
        self, document: str | Sequence[str], n: int = 3
    ) -> list[tuple[str, float]]:
        """Returns the document's n sentences with the largest p_i.

        The result has pairs of a sentence and its p_i, the largest p_i first.
        Sentences with equal p_i keep their order.

        Raises:
            InputError: `document` is neither a string nor a list of sentences,
                or n is below 1.

        Example:
        >>> model.key_sentences("Sorts a list. It is stable. See below.", 1)
        [('Sorts a list.', 0.81)]
        """
        check_at_least(1, n=n)
        lists = sentence_lists([document])
        ((_, p),) = self._read_in_batches(lists)
        sentences = lists[0] or [b""]
        best = np.argsort(-p, kind="stable")[:n]
        return [
            (sentences[index].decode("utf-8", "replace"), float(p[index]))
            for index in best
        ]

    def key_words(
        self, document: str | Sequence[str], n: int = 10
    ) -> list[tuple[str, float]]:
        """Returns the n most probable key words of a document.

        The result has pairs of a word and its probability, see
        `word_probabilities`. The most probable word comes first.

        Raises:
            InputError: `document` is neither a string nor a list of sentences,
                or n is below 1.
        """
        check_at_least(1, n=n)
        p = self.word_probabilities(self.encode([document]))[0].numpy()
        vocabulary = self.key_vocabulary
        best = np.argsort(-p, kind="stable")[:n]
        return [(vocabulary[index], float(p[index])) for index in best]

    @cached_property
    def _read_in_graph(self) -> Any:
        return tf.function(
            lambda sentences, lengths: self.read_sentences(
                tf.RaggedTensor.from_row_lengths(
                    sentences, lengths, validate=False
                )
            ),
            autograph=False,
        ).get_concrete_function(
            tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int64)
        )

    def _read_in_batches(
        self, documents: list[list[bytes]], progress: bool = False
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns the vector and the p_i, `[sentences]`, of each document."""
        documents = [
            sentences[: self.max_sentences] or [b""] for sentences in documents
        ]
        sizes = np.array([len(sentences) for sentences in documents], int)
        order = np.argsort(sizes, kind="stable")
        batches = [
            order[rows].tolist()
            for rows in slices_of_size(
                sizes[order], DOCUMENTS_AT_ONCE, SENTENCES_AT_ONCE
            )
        ]

        def read(batch: list[int]) -> Any:
            vectors, probabilities = self._read_in_graph(
                tf.constant([text for i in batch for text in documents[i]]),
                tf.constant(sizes[batch], tf.int64),
            )
            ends = np.cumsum(sizes[batch])[:-1]
            return zip(
                vectors.numpy(),
                np.split(probabilities.numpy(), ends),
                strict=True,
            )

        results: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for batch, outputs in run_batches(read, batches, "read", progress):
            results.update(zip(batch, outputs, strict=True))
        return [results[i] for i in range(len(documents))]


def _key_vocabulary(
    words: WordVectors, key_vocabulary: Sequence[str] | None
) -> Vocabulary:
    if key_vocabulary is not None:
        if words.split == "stems":
            key_vocabulary = normalize(key_vocabulary, "stems")
        return Vocabulary(key_vocabulary, words.split)
    if not isinstance(words, VocabularyVectors):
        raise InputError(
            "words has no vocabulary: give key_vocabulary, the possible key "
            "words, for example vocabulary_of(texts)"
        )
    return words.lookup


def _best_is_salient(
    logits: tf.Tensor, salient: tf.Tensor, document: tf.Tensor
) -> tf.Tensor:
    largest = tf.math.segment_max(logits, document)
    rows = tf.range(tf.size(logits))
    is_largest = tf.equal(logits, tf.gather(largest, document))
    first = tf.math.segment_min(
        tf.where(is_largest, rows, tf.size(logits) - 1), document
    )
    return tf.gather(salient, first)

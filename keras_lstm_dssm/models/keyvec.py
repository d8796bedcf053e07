"""KeyVec: documents -> vectors, key sentences and key words."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import (
    DocumentEncoder,
    SentenceEncoder,
    SentenceReader,
    VocabularyVectors,
    WordVectors,
)
from keras_lstm_dssm.models.document_batches import (
    DocumentBatch,
    DocumentHasher,
    HashedDocuments,
)
from keras_lstm_dssm.models.document_model import DocumentModel
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import (
    Vocabulary,
    as_strings,
    graph_sentences,
    normalize,
)


@register
class KeyVec(DocumentModel):
    """Represents documents by vectors that preserve their key content.

    Bi and Ma 2017: a convolution represents each sentence, a bidirectional
    LSTM reads the sentences and computes the probability p_i that sentence i
    is key, and the vector of the document is made of their mean weighted by
    p_i. In training, the p_i are to find the key sentences, and the vector is
    to predict the key words, both derived from a summary. A trained model
    needs the document alone.

    A document is a string, which is split by `split_sentences`, or a list of
    sentences. Each sentence is read up to `words.max_words`.

    Args:
        words: Layer that turns sentences into word vectors.
        key_vocabulary: The words that can be key words, normalised. Default
            `None`: the vocabulary of `words`. If `words` reads stems, a key
            word stands for all words of its stem.
        filters: Number of filters of each window of the convolution. Default
            50.
        windows: Numbers of words in a window. Default 3, 4 and 5.
        units: Width of the LSTM of each direction. Default 100.
        dimension: Width of the documents' vectors. Default 100.
        weighted: Whether sentences are weighted by p_i. Default `True`; with
            `False` all p_i are 1, and L_read is 0.
        dropout: Share of the numbers of the sentences' vectors that a
            training step sets to 0, at random, as in Kim 2014. Default 0.
        max_sentences: Number of sentences to read of each document, from its
            start. Default 250; `None` for all.
        seed: Seed of the order of lists in `fit`, and of dropout. Default 0.
        **kwargs: Arguments of `keras.Model`.

    Call arguments:
        inputs: Strings `(batch,)`, ragged strings `(batch, None)` of
            sentences, or `DocumentBatch`.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        Vectors `(batch, dimension)`, each number between -1 and 1. Compare
        them by their cosine.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> model = KeyVec(VocabularyVectors(vocabulary, 100, max_words=60))
    >>> model.compile(keras.optimizers.Adam(), KeyVecLoss())
    >>> model.fit((documents, salient, key_words), epochs=5)
    >>> model.encode(["A document. It has two sentences."]).shape
    (1, 100)
    """

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
        if max_sentences is not None and max_sentences < 1:
            raise InputError(
                f"max_sentences must be at least 1 or None, not {max_sentences}"
            )
        if not 0 <= dropout < 1:
            raise InputError(
                f"dropout must be at least 0 and less than 1, not {dropout}"
            )
        vocabulary = _key_vocabulary(words, key_vocabulary)
        super().__init__(
            DocumentHasher(words, vocabulary, max_sentences), seed, **kwargs
        )
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
        """The words that can be key words."""
        return self._key_words.split(" ")

    def key_word_ids(self, words: Iterable[str]) -> np.ndarray:
        """Looks up key words.

        Args:
            words: Any words; they are normalised.

        Returns:
            int32 `(words,)`, from 1 in the order of `key_vocabulary`; 0 for a
            word that is none of them.
        """
        normal = normalize(words, self.key_lookup.split)
        return self.key_lookup.ids(tf.constant(normal, tf.string)).numpy()

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the vectors of documents."""
        if not isinstance(inputs, DocumentBatch):
            inputs = self.hash_documents(inputs)
        vectors, _ = self.read(inputs, training)
        return vectors

    def hash_documents(self, documents: Any) -> DocumentBatch:
        """Splits and hashes documents, in the graph.

        Args:
            documents: Strings `(batch,)`, or ragged strings `(batch, None)`
                of sentences.
        """
        if not isinstance(documents, tf.RaggedTensor):
            documents = graph_sentences(as_strings(documents))
        return self.hasher.documents(documents)

    def read(
        self,
        documents: DocumentBatch,
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors of documents, and the logits of all p_i.

        Args:
            documents: The result of `hash_documents`.
            training: Whether a gradient will be computed. Default `False`.
            dropout_seed: int32 `(2,)`, the seed of dropout. Default `None`
                for no dropout.

        Returns:
            Float `(documents, dimension)`, eq. (3); and float
            `(sentences,)`, of which p_i is the sigmoid, eq. (2).
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
        # A function of the training step, so that a resumed run draws the
        # same numbers.
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        seed = tf.stack([self.seed, step]) if training else None
        vectors, logits = self.read(documents, training, seed)
        read = self.loss.read_costs(logits, batch.salient, document)
        if not self.weighted:
            read = tf.zeros_like(read)
        key_words = self.loss.word_costs(
            self.word_scores(vectors), batch.key_words, batch.key_word_document
        )
        known = tf.math.unsorted_segment_sum(
            tf.ones_like(batch.key_words),
            batch.key_word_document,
            tf.size(documents.lengths),
        )
        counts = tf.cast(tf.stack([documents.lengths, known], 1), read.dtype)
        costs = tf.stack([read, key_words], axis=1)
        loss = self.compute_loss(y=counts, y_pred=costs, training=training)
        self._record_parts(self.loss.parts(counts, costs))
        self._record(loss, _first_is_salient(logits, batch.salient, document))
        return loss

    def read_sentences(
        self, sentences: tf.RaggedTensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors of documents, and all p_i.

        Args:
            sentences: Ragged strings `(batch, None)`.

        Returns:
            Float `(batch, dimension)` and `(sentences,)`.
        """
        vectors, logits = self.read(self.hash_documents(sentences))
        p = tf.sigmoid(logits) if self.weighted else tf.ones_like(logits)
        return vectors, p

    def word_probabilities(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns softmax(W_v d + b_v), `(batch, vocabulary)`.

        Args:
            vectors: Float `(batch, dimension)`, the d of documents.
        """
        return tf.nn.softmax(self.word_scores(vectors))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`.

        The vocabulary of key words is one string, see `VocabularyVectors`.
        """
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
        if vocabulary is not None:
            vocabulary = vocabulary.split(" ")
        return cls(**{**config, "words": words, "key_vocabulary": vocabulary})


def _key_vocabulary(
    words: WordVectors, key_vocabulary: Sequence[str] | None
) -> Vocabulary:
    if key_vocabulary is not None:
        if words.split == "stems":
            key_vocabulary = normalize(key_vocabulary, "stems")
        return Vocabulary(key_vocabulary, words.split)
    if not isinstance(words, VocabularyVectors):
        raise InputError(
            "words has no vocabulary: give the words that can be key words as "
            "key_vocabulary; vocabulary_of(texts) makes it"
        )
    return words.lookup


def _first_is_salient(
    logits: tf.Tensor, salient: tf.Tensor, document: tf.Tensor
) -> tf.Tensor:
    """Returns for each document whether its sentence of largest p_i is key."""
    largest = tf.math.segment_max(logits, document)
    rows = tf.range(tf.size(logits))
    is_largest = tf.equal(logits, tf.gather(largest, document))
    first = tf.math.segment_min(
        tf.where(is_largest, rows, tf.size(logits) - 1), document
    )
    return tf.gather(salient, first)

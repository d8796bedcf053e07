"""The graph of a KeyVec: vectors, key sentences and key words of documents."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.export.bulk.documents import Documents
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.export.graphs.request_limits import refuse_many_hits
from keras_lstm_dssm.export.graphs.retriever import retriever_graph
from keras_lstm_dssm.export.graphs.saved_module import (
    EncodingModule,
    Graphs,
    signature,
)
from keras_lstm_dssm.layers import unit
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.text.sentences import graph_sentences
from keras_lstm_dssm.text.word_hashing import as_strings

MAX_N = 250
"""Maximum number of sentences, and of words, that `keys` returns for a text."""


class KeyVecModule(EncodingModule):
    """A trained KeyVec, float32 or float64, that reads documents as strings."""

    reads_sentences = True

    def __init__(self, model: KeyVec) -> None:
        super().__init__(model, model.words.resources)
        self.vocabulary = tf.Variable(
            as_strings(model.key_vocabulary), trainable=False
        )
        # The module has methods of the model. If the model were an attribute,
        # TensorFlow would save the model, too.
        self._read_sentences = model.read_sentences
        self._word_probabilities = model.word_probabilities
        self._encode_documents = model.encode
        self._max_sentences = model.max_sentences

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Returns the documents' vectors, scaled to length 1, as float32."""
        _, vectors, _ = self._read(text)
        return tf.cast(unit(vectors)[: tf.shape(text)[0]], tf.float32)

    def _encode_distinct(
        self, texts: Sequence[Any], progress: bool
    ) -> np.ndarray:
        """Encodes documents: strings or lists of sentences."""
        vectors = self._encode_documents(texts, progress)
        return unit(tf.constant(vectors)).numpy().astype(np.float32)

    @signature(text=tf.string, n=tf.int32)
    def keys(self, text: tf.Tensor, n: tf.Tensor) -> dict[str, tf.Tensor]:
        """Signature `keys`: finds key sentences and key words of documents.

        `n`, `[batch]`, is the number of key sentences, and of key words, to
        return for each document. The outputs have shape `[batch, width]`, where
        width is the largest n, but at most `MAX_N`. The most probable sentence
        or word is first. The padding is "" or 0.
        """
        width = tf.reduce_max(tf.concat([n, [0]], axis=0))
        width = tf.minimum(width, MAX_N)
        text, width = refuse_many_hits(text, width, MAX_N, "n")
        sentences, vectors, p = self._read(text)
        texts, probabilities = self._key_sentences(sentences, p, width)
        words = self._key_words(vectors, width)
        is_result = tf.range(width) < n[:, tf.newaxis]
        shape = [tf.shape(text)[0], width]

        def padded(values: tf.Tensor, fill: str | float) -> tf.Tensor:
            """Pads to `width`, and fills the columns beyond each row's n."""
            missing = [[0, 0], [0, width - tf.shape(values)[1]]]
            values = tf.pad(values, missing, constant_values=fill)
            return tf.where(is_result, tf.slice(values, [0, 0], shape), fill)

        return {
            "sentences": padded(texts, ""),
            "probabilities": padded(tf.cast(probabilities, tf.float32), 0.0),
            "words": padded(words, ""),
        }

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    def _read(
        self, text: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
        """Reads documents, for all signatures.

        Returns the documents' sentences, the documents' vectors d of eq. (3) of
        Bi and Ma 2017, and the probability p_i of each sentence.
        """
        # An empty batch gets an empty document, because the LSTM needs one row.
        extra = tf.cast(tf.equal(tf.shape(text)[0], 0), tf.int32)
        texts = tf.concat([text, tf.fill([extra], "")], axis=0)
        sentences = graph_sentences(texts)
        with self._served.reading():
            return sentences, *self._read_sentences(sentences)

    def _key_sentences(
        self, sentences: tf.RaggedTensor, p: tf.Tensor, width: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns each document's most probable sentences, and their p_i."""
        lengths = sentences.row_lengths()
        if self._max_sentences is not None:
            lengths = tf.minimum(lengths, self._max_sentences)
        by_document = tf.RaggedTensor.from_row_lengths(
            p, lengths, validate=False
        ).to_tensor(-1.0)
        largest, index = tf.math.top_k(
            by_document, tf.minimum(width, tf.shape(by_document)[1])
        )
        is_sentence = largest >= 0
        starts = tf.cast(sentences.row_starts(), tf.int32)[:, tf.newaxis]
        rows = tf.where(is_sentence, starts + index, 0)
        texts = tf.gather(sentences.flat_values, rows)
        return (
            tf.where(is_sentence, texts, ""),
            tf.where(is_sentence, largest, 0.0),
        )

    def _key_words(self, vectors: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """Returns each document's most probable key words, at most `width`."""
        p = self._word_probabilities(vectors)
        _, index = tf.math.top_k(p, tf.minimum(width, tf.shape(p)[1]))
        return tf.gather(self.vocabulary, index)


def keyvec_graphs(
    model: KeyVec, documents: Documents | EncodedParts | None, *options: Any
) -> Graphs:
    """Returns the functions that make the exported models of a KeyVec."""
    module = KeyVecModule(model)
    return {
        "keyvec": lambda: module,
        **retriever_graph(module, module, documents, *options),
    }

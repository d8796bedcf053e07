"""The networks of Skip-Thought: a sentence encoder and two decoders."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.baselines.skip_thought.triples import END, NEIGHBOURS


def sentence_encoder(
    vocabulary: int, embedding: int, units: int, bidirectional: bool
) -> keras.Model:
    """Makes an encoder that returns the last state of a GRU over words.

    Padding (id 0) after a sentence is masked.

    Args:
        vocabulary: Number of word ids.
        embedding: Width of the word vectors.
        units: Width of the sentence vector; half of it for each direction if
            `bidirectional`.
        bidirectional: Whether a second GRU reads right to left.

    Returns:
        A functional model of stock layers, word ids `(batch, words)` ->
        `(batch, units)`; its layer `words` has the word vectors.
    """
    ids = keras.Input((None,), dtype="int64")
    words = keras.layers.Embedding(
        vocabulary,
        embedding,
        # With the paper's uniform (-0.1, 0.1), the states of a small encoder
        # are so near 0 that decoders cannot distinguish sentences at first.
        keras.initializers.RandomNormal(stddev=1.0),
        mask_zero=True,
        name="words",
    )(ids)
    if bidirectional:
        layer = keras.layers.Bidirectional(_gru(units // 2))
    else:
        layer = _gru(units)
    return keras.Model(ids, layer(words))


class SkipThought(keras.Model):
    """Trains a sentence encoder with two decoders.

    Each decoder is a language model of a neighbouring sentence, a GRU whose
    input at every time step is the previous word's vector x and the sentence's
    vector h_i: with the input [x; h_i], the matrices [W, C] of a stock GRU are
    those of equations (5)-(7). The decoders use the encoder's word vectors,
    and share the output layer.

    Args:
        encoder: The encoder from `sentence_encoder`.
        sampled: Number of negative words of the sampled softmax, drawn
            log-uniformly by rank for each batch; 0 for the full softmax.

    Call arguments:
        inputs: Word ids by name, int64 `(batch, words)`, 0 after the end:
            `sentence`, `previous`, `next`. A missing neighbour is all 0.

    Returns:
        float32 `(n,)`, -log P of each of the n words of the neighbours.

    Reference: Kiros et al. 2015, "Skip-Thought Vectors", section 2.1.
    """

    def __init__(self, encoder: keras.Model, sampled: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        self.sampled = sampled
        self.word_vectors = encoder.get_layer("words")
        units = encoder.output_shape[-1]
        self.vocabulary = self.word_vectors.input_dim
        self.decoders = {
            name: _gru(units, return_sequences=True) for name in NEIGHBOURS
        }
        for decoder in self.decoders.values():
            decoder.build((None, None, self.word_vectors.output_dim + units))
        self.output_words = self.add_weight(
            (self.vocabulary, units), "zeros", name="output_words"
        )
        self.output_bias = self.add_weight(
            (self.vocabulary,), "zeros", name="output_bias"
        )
        self.per_word = keras.metrics.Mean("nats_per_word")

    def call(
        self, inputs: Mapping[str, tf.Tensor], training: bool = False
    ) -> tf.Tensor:
        """Returns -log P of the words of both neighbours."""
        vector = self.encoder(inputs["sentence"])
        return tf.concat(
            [
                self._decode(decoder, vector, inputs[name], training)
                for name, decoder in self.decoders.items()
            ],
            axis=0,
        )

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> tf.Tensor:
        """Returns -log P of both neighbours, averaged over the sentences."""
        self.per_word.update_state(y_pred)
        batch = tf.shape(x["sentence"])[0]
        return tf.reduce_sum(y_pred) / tf.cast(batch, y_pred.dtype)

    def _decode(
        self,
        decoder: keras.layers.GRU,
        vector: tf.Tensor,
        words: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        # The first word is predicted from an end mark.
        last = tf.pad(words[:, :-1], [[0, 0], [1, 0]], constant_values=END)
        steps = tf.shape(words)[1]
        condition = tf.repeat(vector[:, None], steps, axis=1)
        inputs = tf.concat([self.word_vectors(last), condition], axis=-1)
        real = words != 0
        states = tf.boolean_mask(decoder(inputs), real)
        return self._cross_entropy(
            states, tf.boolean_mask(words, real), training
        )

    def _cross_entropy(
        self, states: tf.Tensor, words: tf.Tensor, training: bool
    ) -> tf.Tensor:
        table = tf.convert_to_tensor(self.output_words)
        bias = tf.convert_to_tensor(self.output_bias)
        if training and self.sampled:
            return tf.nn.sampled_softmax_loss(
                table, bias, words[:, None], states, self.sampled,
                self.vocabulary,
            )  # fmt: skip
        logits = tf.matmul(states, table, transpose_b=True) + bias
        return tf.nn.sparse_softmax_cross_entropy_with_logits(words, logits)


def _gru(units: int, return_sequences: bool = False) -> keras.layers.GRU:
    # As in the paper, the reset gate acts before the matrix product.
    return keras.layers.GRU(
        units, reset_after=False, return_sequences=return_sequences
    )

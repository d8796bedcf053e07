"""Layers of KeyVec, from the words of a document to the document's vector."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import (
    InputError,
    check_at_least,
    check_each_at_least,
)
from keras_lstm_dssm.layers.bidirectional_recurrence import (
    FlatSequences,
    run_on_rows,
)
from keras_lstm_dssm.layers.recurrent import PeepholeLSTM
from keras_lstm_dssm.ops import custom_gradient
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import Configured, register
from keras_lstm_dssm.text.word_hashing import WordBatch


@register
class SentenceEncoder(Configured, keras.layers.Layer):
    """Represents sentences by convolutions and a maximum over time.

        s_f = relu(max_t (W_f [w_t; ..; w_{t+k-1}]) + b_f)

    Eq. (1) of Bi and Ma 2017, with `filters` filters f for each width k in
    `windows`. Takes the vectors of a batch's distinct words; returns
    `(sentences, filters * len(windows))`.
    """

    def __init__(
        self,
        word_dimension: int = 100,
        filters: int = 50,
        windows: Sequence[int] = (3, 4, 5),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, word_dimension=word_dimension, filters=filters)
        check_each_at_least(1, windows=windows)
        if not windows:
            raise InputError(
                "windows is empty: expected the width of at least one"
                " convolution"
            )
        self.word_dimension = word_dimension
        self.filters = filters
        self.windows = list(windows)
        self.dimension = filters * len(self.windows)
        self.kernels = [
            self.add_weight(
                shape=(width, word_dimension, filters),
                initializer="glorot_uniform",
                name=f"kernel_{width}",
            )
            for width in self.windows
        ]
        self.bias = self.add_weight(
            shape=(self.dimension,), initializer="zeros", name="bias"
        )
        accept_any_inputs(self)
        self.built = True

    def call(
        self, vectors: tf.Tensor, words: WordBatch, training: bool = False
    ) -> tf.Tensor:
        """Encodes the distinct sentences of a batch."""
        flat, _ = words.flat()
        largest = []
        for width, kernel in zip(self.windows, self.kernels, strict=True):
            # `products` has each word's product with the kernel at each offset
            # of a window: word j at offset o in row j * width + o. The last row
            # is 0, for words past the end of a sentence.
            by_offset = tf.transpose(tf.convert_to_tensor(kernel), [1, 0, 2])
            products = tf.matmul(
                vectors, tf.reshape(by_offset, [self.word_dimension, -1])
            )
            products = tf.reshape(products, [-1, self.filters])
            products = tf.pad(products, [[0, 1], [0, 0]])
            offsets = tf.range(width)
            position, sentence, inside = windows_of(words.lengths, width)
            rows = tf.gather(flat, position) * width + offsets
            rows = tf.where(inside, rows, tf.shape(products)[0] - 1)
            largest.append(_largest_sums(products, rows, sentence, training))
        return tf.nn.relu(tf.concat(largest, axis=1) + self.bias)


def windows_of(
    lengths: tf.Tensor, width: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Lists the windows of `width` words in concatenated sentences.

    A sentence of fewer than `width` words has one window. Returns the positions
    of each window's words, `(windows, width)`; the index of each window's
    sentence, `(windows,)`; and whether each position is inside the sentence,
    `(windows, width)`. Positions outside are set to 0.
    """
    counts = tf.maximum(lengths - width + 1, 1)
    sentence = tf.repeat(tf.range(tf.size(lengths)), counts)
    # The sentences before sentence s together have `shift[s]` more words than
    # windows.
    shift = tf.cumsum(lengths - counts, exclusive=True)
    first = tf.range(tf.size(sentence)) + tf.gather(shift, sentence)
    position = first[:, tf.newaxis] + tf.range(width)
    end = tf.gather(tf.cumsum(lengths), sentence)
    inside = position < end[:, tf.newaxis]
    return tf.where(inside, position, 0), sentence, inside


def _largest_sums(
    values: tf.Tensor, rows: tf.Tensor, segment: tf.Tensor, training: bool
) -> tf.Tensor:
    """Sums rows of `values` for each window w; returns maxima by sentence s.

    y[s, f] = max over w with segment[w] = s of sum_o values[rows[w, o], f]
    """

    def sums_of(values: tf.Tensor) -> tf.Tensor:
        terms = tf.unstack(rows, axis=1)
        return tf.add_n([tf.gather(values, term) for term in terms])

    if not training:
        return tf.math.segment_max(sums_of(values), segment)

    @custom_gradient
    def forward(values: tf.Tensor) -> Any:
        sums = sums_of(values)
        largest = tf.math.segment_max(sums, segment)

        def gradient(error: tf.Tensor) -> tf.Tensor:
            # Of several equal largest sums, only the first has a gradient.
            count, columns = tf.unstack(tf.shape(sums))
            is_largest = tf.equal(sums, tf.gather(largest, segment))
            position = tf.range(count)[:, tf.newaxis]
            # If the largest sum of a segment is NaN, no sum equals the largest
            # sum, and `first` is `count - 1`, a valid index.
            first = tf.math.segment_min(
                tf.where(is_largest, position, count - 1), segment
            )
            index = tf.gather(rows, first) * columns
            index += tf.range(columns)[:, tf.newaxis]
            errors = tf.broadcast_to(error[:, :, tf.newaxis], tf.shape(index))
            total = tf.math.unsorted_segment_sum(errors, index, tf.size(values))
            return tf.reshape(total, tf.shape(values))

        return largest, gradient

    return forward(values)


@register
class SentenceReader(Configured, keras.layers.Layer):
    """Computes states and probabilities of sentences by a bidirectional LSTM.

        h_i = [h_forward(i); h_backward(i)]
        p_i = sigmoid(w_l' h_i + b_l)

    Eq. (2) of Bi and Ma 2017; p_i is the probability that sentence i is a key
    sentence. Returns, for n sentences, h `(n, 2 * units)` and the logits of p
    `(n,)`. With `scores=False`, all logits are 0.
    """

    def __init__(
        self,
        sentence_dimension: int = 150,
        units: int = 100,
        scores: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, sentence_dimension=sentence_dimension, units=units)
        self.sentence_dimension = sentence_dimension
        self.units = units
        self.scores = scores
        self.forward_lstm, self.backward_lstm = (
            PeepholeLSTM(
                units, peephole=None, dtype=self.dtype_policy, name=name
            )
            for name in ("forward", "backward")
        )
        for layer in (self.forward_lstm, self.backward_lstm):
            layer.build((None, None, sentence_dimension))
        if scores:
            self.score = keras.layers.Dense(
                1, dtype=self.dtype_policy, name="score"
            )
            self.score.build((None, 2 * units))
        accept_any_inputs(self)
        self.built = True

    def call(
        self,
        sentences: tf.Tensor,
        index: tf.Tensor,
        lengths: tf.Tensor,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads the sentences of each document.

        `index` lists rows of `sentences`: first the rows of the first document,
        etc. `lengths` are the documents' numbers of sentences.
        """
        layers = self.forward_lstm, self.backward_lstm
        rows = FlatSequences(
            sentences,
            tf.convert_to_tensor(index, tf.int32),
            tf.convert_to_tensor(lengths, tf.int32),
        )
        states = run_on_rows(layers, rows, training)
        if not self.scores:
            return states, tf.zeros(tf.shape(states)[:1], states.dtype)
        return states, self.score(states)[:, 0]


def sentence_weights(logits: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes p_i / sum_j p_j within each document, from the logits of p."""
    # The softmax of log p_i gives these weights, and does not underflow.
    log_p = tf.math.log_sigmoid(logits)
    largest = tf.stop_gradient(tf.math.segment_max(log_p, document))
    terms = tf.exp(log_p - tf.gather(largest, document))
    return terms / tf.gather(tf.math.segment_sum(terms, document), document)


@register
class DocumentEncoder(Configured, keras.layers.Layer):
    """Represents documents by a weighted mean of LSTM states.

        d = tanh(W_d (sum_i p_i / (sum_j p_j) h_i) + b_d)

    Eq. (3) of Bi and Ma 2017. The inputs, for n sentences, are h; the logits of
    p; and the index of each sentence's document, int32 `(n,)`. The indices
    ascend without gaps. Returns `(documents, dimension)`.
    """

    def __init__(
        self, state_dimension: int = 200, dimension: int = 100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, state_dimension=state_dimension, dimension=dimension)
        self.state_dimension = state_dimension
        self.dimension = dimension
        self.dense = keras.layers.Dense(
            dimension, "tanh", dtype=self.dtype_policy, name="dense"
        )
        self.dense.build((None, state_dimension))
        accept_any_inputs(self)
        self.built = True

    def call(
        self, states: tf.Tensor, logits: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        """Encodes documents from weighted means of sentences' states."""
        weights = sentence_weights(logits, document)[:, tf.newaxis]
        return self.dense(tf.math.segment_sum(weights * states, document))

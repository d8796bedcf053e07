"""RAE compares the phrases of two texts; a phrase is a node of a tree."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least, check_choice
from keras_lstm_dssm.layers.convolution import ScoringMLP
from keras_lstm_dssm.layers.interactions import sums_of_squares
from keras_lstm_dssm.layers.pooling import DynamicPooling
from keras_lstm_dssm.layers.word_vectors import (
    VocabularyVectors,
    WordSequences,
    WordVectors,
)
from keras_lstm_dssm.matchers.matcher import Matcher, check_pairs, rows_of
from keras_lstm_dssm.matchers.recursive_autoencoder import (
    RecursiveAutoencoder,
    clip,
    pretrain_autoencoder,
)
from keras_lstm_dssm.registration import register


def distances(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes Euclidean distances between vectors, `(pairs, m, n)`."""
    squares = sums_of_squares(query, document)
    difference = squares - 2 * tf.matmul(query, document, transpose_b=True)
    # A squared distance below the rounding error counts as 0: the square root
    # of a rounding error would be large, and would depend on the batch.
    error = 64 * np.finfo(query.dtype.as_numpy_dtype).eps
    positive = difference > error * squares
    return tf.sqrt(tf.where(positive, difference, tf.zeros_like(difference)))


def same_numbers(
    query: tf.Tensor, document: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Compares the numerals, such as `12`, in the two texts of each pair.

    `query` and `document` have the ids of numerals, and 0 for all other words.
    Returns three bools for each pair: whether the sets of numerals are equal;
    whether they are equal and not empty; and whether one set contains the
    other.
    """
    equal = tf.equal(query[:, :, tf.newaxis], document[:, tf.newaxis])
    is_subset = tf.reduce_all(tf.reduce_any(equal, 2) | (query <= 0), 1)
    is_superset = tf.reduce_all(tf.reduce_any(equal, 1) | (document <= 0), 1)
    same = is_subset & is_superset
    return same, same & tf.reduce_any(query > 0, 1), is_subset | is_superset


class Phrases(NamedTuple):
    """Represents texts for the head `"pool"` of `RAE`."""

    # `[texts, 2 * time - 1, dimension]`: for each text, the vectors of the
    # words, then the vectors of the inner nodes, then zeros.
    nodes: tf.Tensor
    lengths: tf.Tensor  # number of words of each text
    # `[texts, time]`: id of each word that is a numeral, 0 for other words.
    numbers: tf.Tensor


def phrases_of(
    nodes: tf.Tensor,
    lengths: tf.Tensor,
    words: tf.Tensor,
    number_words: tf.Tensor,
) -> Phrases:
    """Arranges the nodes of each text, and finds its numerals."""
    time = tf.shape(words)[1]
    # In the argument `nodes`, the inner nodes of all texts start at `time`. In
    # the result, the inner nodes of a text follow the text's last word.
    position = tf.range(2 * time - 1)[tf.newaxis]
    length = tf.convert_to_tensor(lengths)[:, tf.newaxis]
    source = tf.where(
        position < length,
        position,
        tf.minimum(position - length + time, 2 * time - 2),
    )
    real = tf.cast(position < 2 * length - 1, nodes.dtype)
    nodes = tf.gather(nodes, source, batch_dims=1) * real[:, :, tf.newaxis]
    # `searchsorted` works because the ids in `number_words` are ascending.
    row = tf.searchsorted(number_words, tf.reshape(words, [-1]))
    row = tf.minimum(row, tf.size(number_words) - 1)
    nearest = tf.reshape(tf.gather(number_words, row), tf.shape(words))
    is_number = tf.equal(nearest, words)
    return Phrases(nodes, lengths, tf.where(is_number, words, 0))


HEADS = ("pool", "root")

_FEATURES = 4  # number of features in addition to the pooled distances
_SAMPLE = 2000  # largest number of pairs whose distances are measured
_BATCH = 128  # number of pairs that are measured at once
_NO_WORD = np.iinfo(np.int32).max  # fills `number_words` after the last id
_NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+")


@register
class RAE(Matcher):
    """Scores a pair of texts by the vectors of a recursive autoencoder.

    The autoencoder merges the words of a text into a binary tree. Each node of
    the tree is the vector of a phrase. The published model uses the trees of a
    parser. RAE needs no parser: trees are greedy or balanced.

    `pretrain` trains the autoencoder on the unfolding error of the training
    texts. After that, the autoencoder and the word vectors are constants; only
    the head is trained.

    The head `"pool"` computes the Euclidean distances between all 2 m - 1 nodes
    of a query of m words and all 2 n - 1 nodes of a document of n words.
    Dynamic minimum pooling reduces the distances to `size` rows and columns.
    Pooled distances are standardised, clipped at three standard deviations, and
    scaled to [0.1, 0.9]. Four features are added: whether both texts have the
    same set of numerals, such as `12`; whether the sets are the same and not
    empty; whether one set contains the other; and the standardised difference
    of lengths |m - n|. Only words in the vocabulary of `VocabularyVectors` can
    be numerals. The score is a linear function of the pooled distances and the
    features. The programs that Socher et al. published have more features: the
    shares of equal words and phrases.

    The head `"root"` is an MLP on the roots of both trees. See `Matcher` for
    the call arguments and the scores.

    Args:
        word_dimension: Width of the word vectors and of all nodes. Default
            50.
        head: `"pool"` (default) or `"root"`.
        tree: `"greedy"` (default): the two neighbours with the smallest
            reconstruction error are merged first; `"balanced"`: the text is
            halved recursively.
        size: Number of rows and columns after pooling. Default 15.
        hidden: Widths of the hidden layers of the head `"root"`. Default
            200.
        max_words: Number of words to read of each text. Default 50.
        numbers: Maximum size of the list of numerals. The list has the most
            frequent numerals of the vocabulary. Default 1,000.
        epochs: Passes of `pretrain` over the texts. Default 5.
        learning_rate: Learning rate of `pretrain`. Default 0.003.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        InputError: An argument is not supported.

    Reference: Socher et al. 2011, "Dynamic Pooling and Unfolding Recursive
        Autoencoders for Paraphrase Detection"; greedy trees after Socher et al.
        2011, "Semi-Supervised Recursive Autoencoders for Predicting Sentiment
        Distributions"; the head `"root"` after Hu et al. 2014, "Convolutional
        Neural Network Architectures for Matching Natural Language Sentences".

    Example:
    >>> RAE(word_dimension=50, head="root").needs_pretraining
    True
    """

    trains_words = False

    def __init__(
        self,
        word_dimension: int = 50,
        head: str = "pool",
        tree: str = "greedy",
        size: int = 15,
        hidden: Sequence[int] = (200,),
        max_words: int = 50,
        numbers: int = 1000,
        epochs: int = 5,
        learning_rate: float = 3e-3,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        check_choice(HEADS, head=head)
        check_at_least(1, numbers=numbers, epochs=epochs)
        if not learning_rate > 0:
            raise InputError(
                f"learning_rate must be above 0, not {learning_rate}"
            )
        self.head = head
        self.tree = tree
        self.size = size
        self.hidden = list(hidden)
        self.max_words = max_words
        self.numbers = numbers
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.autoencoder = RecursiveAutoencoder(
            word_dimension,
            tree,
            max_words,
            dtype=self.dtype_policy,
            name="autoencoder",
        )
        self.autoencoder.trainable = False
        if head == "pool":
            self.pooling = DynamicPooling(
                size, mode="min", repeat="double", dtype=self.dtype_policy
            )
            width = size * size + _FEATURES
        else:
            width = 2 * word_dimension
        self.mlp = ScoringMLP(
            self.hidden if head == "root" else [],
            dtype=self.dtype_policy,
            name="mlp",
        )
        self.mlp.build((None, width))
        # Mean and deviation of pooled distances, then of length differences.
        self.statistics = self.add_weight(
            (4,), "zeros", trainable=False, name="statistics"
        )
        self.number_words = self.add_weight(
            (numbers,),
            "zeros",
            dtype="int32",
            trainable=False,
            name="number_words",
        )
        self.pretrained = self.add_weight(
            (), "zeros", dtype="int32", trainable=False, name="pretrained"
        )

    @property
    def needs_pretraining(self) -> bool:
        """Whether the autoencoder is still untrained."""
        return not self.pretrained.numpy()

    def pretrain(
        self,
        words: WordVectors,
        queries: Sequence[str],
        documents: Sequence[str],
        seed: int = 0,
    ) -> None:
        """Trains the autoencoder, and measures distances of training pairs.

        For the head `"pool"`, up to 2,000 pairs give the means and the
        deviations that standardise distances and differences of lengths. Half
        of the pairs are training pairs. The other half are pairs of a query and
        the document of the next training pair.

        Args:
            words: The word vectors that the matcher will read; `fit` does
                not change them.
            queries: The queries of the positive training pairs.
            documents: The documents of these pairs.
            seed: Seed of all random numbers. Default 0.

        Raises:
            InputError: There is no pair, or no text has two words.
        """
        check_pairs(queries, documents)
        pretrain_autoencoder(
            self.autoencoder,
            words,
            [*queries, *documents],
            self.epochs,
            self.learning_rate,
            seed,
        )
        number_ids: list[int] = []
        if isinstance(words, VocabularyVectors):
            number_ids = [
                number
                for number, word in enumerate(words.vocabulary, 1)
                if _NUMBER.fullmatch(word)
            ][: self.numbers]
        missing = self.numbers - len(number_ids)
        self.number_words.assign([*number_ids, *[_NO_WORD] * missing])
        if self.head == "pool":
            self.statistics.assign(self._measure(words, queries, documents))
        self.pretrained.assign(1)

    def _measure(
        self,
        words: WordVectors,
        queries: Sequence[str],
        documents: Sequence[str],
    ) -> list[float]:
        pairs = list(zip(queries, documents, strict=True))
        next_documents = [*documents[1:], documents[0]]
        pairs += list(zip(queries, next_documents, strict=True))
        if len(pairs) > _SAMPLE:
            step = len(pairs) / _SAMPLE
            pairs = [pairs[int(i * step)] for i in range(_SAMPLE)]

        def phrases(texts: Sequence[str], side: str) -> Phrases:
            batch = words.distinct(tf.constant(texts))
            distinct = self.represent(words(batch), side)
            return rows_of(distinct, batch.text_index)

        entries, differences = [], []
        for start in range(0, len(pairs), _BATCH):
            texts = zip(*pairs[start : start + _BATCH], strict=True)
            query, document = map(phrases, texts, ("query", "document"))
            entries.append(self._pooled(query, document))
            differences.append(tf.abs(query.lengths - document.lengths))
        return [
            statistic
            for values in map(np.concatenate, (entries, differences))
            # `match` divides by the deviations, so none may be 0.
            for statistic in (np.mean(values), np.std(values) or 1.0)
        ]

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> Any:
        """Returns `Phrases`; for `"root"`, roots `(texts, word_dimension)`."""
        vectors, lengths = clip(texts, self.max_words)
        nodes = tf.stop_gradient(self.autoencoder(vectors, lengths))
        time = tf.shape(vectors)[1]
        if self.head == "root":
            root = tf.where(lengths > 1, time + lengths - 2, 0)
            return tf.gather(nodes, root, batch_dims=1)
        numbers = tf.convert_to_tensor(self.number_words)
        return phrases_of(nodes, lengths, texts.words[:, :time], numbers)

    def match(
        self, query: Any, document: Any, training: bool = False
    ) -> tf.Tensor:
        """Scores pairs by their roots, or by pooled distances and features."""
        if self.head == "root":
            return self.mlp(tf.concat([query, document], 1))
        mean, deviation, mean_length, deviation_length = tf.unstack(
            tf.convert_to_tensor(self.statistics)
        )
        entries = (self._pooled(query, document) - mean) / (3 * deviation)
        entries = 0.5 + 0.4 * tf.clip_by_value(entries, -1, 1)
        length = tf.abs(query.lengths - document.lengths)
        length = tf.cast(length, entries.dtype) - mean_length
        features = [
            tf.cast(feature, entries.dtype)
            for feature in same_numbers(query.numbers, document.numbers)
        ]
        features.append(length / deviation_length)
        return self.mlp(tf.concat([entries, tf.stack(features, 1)], 1))

    def _pooled(self, query: Phrases, document: Phrases) -> tf.Tensor:
        cells = distances(query.nodes, document.nodes)[..., tf.newaxis]
        sizes = 2 * query.lengths - 1, 2 * document.lengths - 1
        pooled = self.pooling(cells, *sizes)
        return tf.reshape(pooled, [-1, self.size * self.size])

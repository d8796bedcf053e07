"""DeepMatch compares texts by their topics.

A patch is a set of query words and document words of the same topic.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least, import_optional
from keras_lstm_dssm.layers.convolution import ScoringMLP, small_uniform
from keras_lstm_dssm.layers.word_vectors import (
    VocabularyVectors,
    WordSequences,
    WordVectors,
)
from keras_lstm_dssm.matchers.matcher import SIDES, Matcher, check_pairs
from keras_lstm_dssm.registration import register

SMALL_LEVELS = (20, 50, 100)
LARGE_LEVELS = (50, 100, 200)
"""Numbers of topics by level; `LARGE_LEVELS` is for more than 20,000 pairs."""

_BATCH = 1024  # number of texts whose words are looked up at once


class Patches(NamedTuple):
    """Holds word ids of patches, int32 `[patches, largest]`, padded with 0."""

    query: np.ndarray
    document: np.ndarray


def topic_levels(pairs: int) -> tuple[int, ...]:
    """Chooses the numbers of topics by the number of training pairs."""
    return LARGE_LEVELS if pairs > 20_000 else SMALL_LEVELS


def text_ids(words: WordVectors, texts: Sequence[str]) -> list[np.ndarray]:
    """Lists the vocabulary ids of each text's words; unknown words are 0."""
    ids: list[np.ndarray] = []
    for start in range(0, len(texts), _BATCH):
        batch = words.distinct(tf.constant(texts[start : start + _BATCH]))
        sequences = words(batch)
        lengths = sequences.lengths.numpy()
        rows = sequences.words.numpy()
        ids += [rows[i, : lengths[i]] for i in batch.text_index.numpy()]
    return ids


def find_patches(
    queries: Sequence[np.ndarray],
    documents: Sequence[np.ndarray],
    topics: int,
    largest: int = 200,
    mass: float = 0.9,
    passes: int = 10,
    seed: int = 0,
) -> Patches:
    """Finds the patches of one level by latent Dirichlet allocation."""
    models = import_optional("gensim.models", "baselines")
    # A query and its document are one text of the topic model. A word of both
    # sides has two numbers. The numbers of query words are the smaller numbers.
    query_ids = _known(queries, "query")
    document_ids = _known(documents, "document")
    texts = []
    for query, document in zip(queries, documents, strict=True):
        word_numbers = np.concatenate(
            [
                np.searchsorted(query_ids, query[query > 0]),
                np.searchsorted(document_ids, document[document > 0])
                + len(query_ids),
            ]
        )
        numbers, counts = np.unique(word_numbers, return_counts=True)
        texts.append(list(zip(numbers.tolist(), counts.tolist(), strict=True)))
    size = len(query_ids) + len(document_ids)
    # gensim uses variational inference; the paper used sampling.
    model = models.LdaModel(
        [text for text in texts if text],
        num_topics=topics,
        id2word={number: str(number) for number in range(size)},
        passes=passes,
        eval_every=None,
        random_state=seed,
    )
    probabilities: Any = model.get_topics()
    split = len(query_ids)
    return Patches(
        probable_words(probabilities[:, :split], query_ids, largest, mass),
        probable_words(probabilities[:, split:], document_ids, largest, mass),
    )


def _known(texts: Sequence[np.ndarray], side: str) -> np.ndarray:
    ids = np.unique(np.concatenate([*texts, np.zeros(1, np.int32)]))[1:]
    if not len(ids):
        raise InputError(
            f"no {side} has a word of the vocabulary; make the vocabulary"
            " from the training texts"
        )
    return ids


def probable_words(
    probabilities: np.ndarray, ids: np.ndarray, largest: int, mass: float
) -> np.ndarray:
    """Lists the most probable words of each topic, int32 `[topics, largest]`.

    Each row of `probabilities` belongs to a topic. Words of the topic are
    listed until the sum of their probabilities reaches `mass` times the row's
    sum, or until there are `largest` words. The rest of the result is 0.
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    shares = np.take_along_axis(probabilities, order, axis=1).astype("float64")
    shares /= shares.sum(axis=1, keepdims=True)
    before = np.cumsum(shares, axis=1) - shares
    # The tolerance keeps rounding errors from adding a word.
    words = np.where(before < mass - 1e-9, ids[order], 0)[:, :largest]
    missing = max(0, largest - words.shape[1])
    return np.pad(words, [(0, 0), (0, missing)]).astype("int32")


def overlapping(coarse: Patches, fine: Patches, overlap: float) -> np.ndarray:
    """Returns which patches overlap, bool `[coarse patches, fine patches]`."""
    connected = np.ones((len(coarse.query), len(fine.query)), bool)
    for coarse_ids, fine_ids in zip(coarse, fine, strict=True):
        size = 1 + max(coarse_ids.max(), fine_ids.max())
        in_coarse = _members(coarse_ids, size)
        in_fine = _members(fine_ids, size)
        smaller = np.minimum(in_coarse.sum(1)[:, np.newaxis], in_fine.sum(1))
        common = in_coarse @ in_fine.T
        connected &= (common >= overlap * smaller) & (common > 0)
    return connected


def _members(ids: np.ndarray, size: int) -> np.ndarray:
    members = np.zeros((len(ids), size), np.float32)
    np.put_along_axis(members, ids, 1, axis=1)
    members[:, 0] = 0  # id 0 is not a word
    return members


@register
class DeepMatch(Matcher):
    """Matches the words of a query and of a document within topics.

    `pretrain` finds topics in the training pairs, on several levels. Each level
    has more topics than the level before. The patch of a topic is the set of
    the topic's probable query words and document words. The network has

    - layer I, `units` units for each patch:
        z = sigmoid(sum over r of (x' a_r) (y' b_r) + b), r = 1 to `rank`;
        x is 1 for words of the patch that the query contains, else 0; y is 1
        for words of the patch that the document contains, else 0;
    - layer II, a sigmoid unit for each patch, except on the last level.
        The unit reads layer I of the patch, and layer I of all patches of the
        next level that overlap the patch;
    - a committee layer of sigmoid units, and a linear output.

    Of `WordSequences`, the matcher reads only `mask` and `words`, which must be
    vocabulary ids. Word order and unknown words have no effect. `pretrain`
    needs the extra `[baselines]`.

    The connections of layer II, the number of units and the rank are not stated
    in the paper. See `Matcher` for the call arguments and the scores.

    Args:
        word_dimension: Width of the word vectors, which are not used.
            Default 50.
        topics: Numbers of topics on two or more levels, ascending. Default 20,
            50 and 100. If a recipe has no `topics`, `dssm.train` takes 50, 100
            and 200 for more than 20,000 training pairs.
        units: Number of units of layer I for each patch. Default 3.
        rank: Rank of the bilinear match. Default 3.
        committee: Number of units of the committee layer. Default 50.
        largest: Largest number of words of a patch on one side. Default 200.
        mass: Share of a topic's probability on one side. A patch gets the most
            probable words of the side, until the words have this share, or
            until there are `largest` words. Default 0.9.
        overlap: Least share of common words for two patches to overlap. On each
            side, the share is the number of common words, divided by the number
            of words of the patch with fewer words. Default 0.2. With 0, one
            common word on each side is enough.
        passes: Number of passes of the topic model over the pairs. Default 10.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        InputError: An argument is not supported.

    Reference: Lu and Li 2013, "A Deep Architecture for Matching Short Texts".

    Example:
    >>> matcher = DeepMatch(topics=[2, 3], largest=10)
    >>> matcher.needs_pretraining
    True
    """

    trains_words = False

    def __init__(
        self,
        word_dimension: int = 50,
        topics: Sequence[int] = SMALL_LEVELS,
        units: int = 3,
        rank: int = 3,
        committee: int = 50,
        largest: int = 200,
        mass: float = 0.9,
        overlap: float = 0.2,
        passes: int = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        self.topics = list(topics)
        if len(self.topics) < 2 or min(self.topics) < 1:
            raise InputError(
                "topics must be the numbers of topics on two or more levels,"
                f" not {topics}"
            )
        self.units = units
        self.rank = rank
        self.committee = committee
        self.largest = largest
        self.mass = mass
        self.overlap = overlap
        self.passes = passes
        check_at_least(
            1, units=units, rank=rank, committee=committee, largest=largest,
            passes=passes,
        )  # fmt: skip
        if not 0 <= overlap <= 1:
            raise InputError(f"overlap must be from 0 to 1, not {overlap}")
        if not 0 < mass <= 1:
            raise InputError(f"mass must be above 0, up to 1, not {mass}")
        patches, coarse = sum(self.topics), sum(self.topics[:-1])
        # An entry is a word of a patch. Entries are sorted by word, so that
        # `represent` finds the entries of a word by binary search.
        entries = patches * largest
        self.entry_words: dict[str, keras.Variable] = {}
        self.entry_patches: dict[str, keras.Variable] = {}
        self.kernels = {}
        for side in SIDES:
            for store, name in (
                (self.entry_words, "words"),
                (self.entry_patches, "patches"),
            ):
                store[side] = self.add_weight(
                    (entries,),
                    "zeros",
                    dtype="int32",
                    trainable=False,
                    name=f"{side}_{name}",
                )
            self.kernels[side] = self.add_weight(
                (entries, units * rank), small_uniform(), name=f"{side}_kernel"
            )
        self.bias = self.add_weight((patches, units), "zeros", name="bias")
        self.edges = self.add_weight(
            (patches, coarse), "zeros", trainable=False, name="edges"
        )
        self.second_kernel = self.add_weight(
            (patches, units, coarse), small_uniform(), name="second_kernel"
        )
        self.second_bias = self.add_weight(
            (coarse,), "zeros", name="second_bias"
        )
        self.output_layers = ScoringMLP(
            [committee], "sigmoid", dtype=self.dtype_policy
        )
        self.output_layers.build((None, coarse))

    @property
    def needs_pretraining(self) -> bool:
        """Whether the patches are missing."""
        return not np.any(self.entry_words["query"])

    def pretrain(
        self,
        words: WordVectors,
        queries: Sequence[str],
        documents: Sequence[str],
        seed: int = 0,
    ) -> None:
        """Finds the patches of all levels in positive training pairs.

        Args:
            words: Word vectors of a vocabulary.
            queries: The queries of the pairs.
            documents: The documents of the pairs.
            seed: Seed of the topics. Default 0.

        Raises:
            InputError: `words` has no vocabulary, there is no pair, or gensim
                is not installed.
        """
        if not isinstance(words, VocabularyVectors):
            raise InputError(
                "DeepMatch reads the ids of a vocabulary, and"
                f' {type(words).__name__} has none: use words="vocabulary"'
            )
        check_pairs(queries, documents)
        query_ids = text_ids(words, queries)
        document_ids = text_ids(words, documents)
        self.set_patches(
            [
                find_patches(
                    query_ids,
                    document_ids,
                    topics,
                    self.largest,
                    self.mass,
                    self.passes,
                    seed,
                )
                for topics in self.topics
            ]
        )

    def set_patches(self, levels: Sequence[Patches]) -> None:
        """Sets the patches of each level, and connects neighbouring levels."""
        for side in SIDES:
            ids = np.concatenate([getattr(level, side) for level in levels])
            order = np.argsort(ids.ravel(), kind="stable")
            self.entry_words[side].assign(ids.ravel()[order])
            self.entry_patches[side].assign(order // self.largest)
        edges = np.zeros(self.edges.shape)
        np.fill_diagonal(edges, 1)
        end = np.cumsum(self.topics)
        for level, number in enumerate(self.topics[:-1]):
            edges[
                end[level] : end[level + 1], end[level] - number : end[level]
            ] = overlapping(levels[level], levels[level + 1], self.overlap).T
        self.edges.assign(edges)

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> tf.Tensor:
        """Computes x' a_r or y' b_r, `(texts, patches, units, rank)`."""
        position = tf.range(tf.shape(texts.words)[1])
        equal = tf.equal(
            texts.words[:, :, tf.newaxis], texts.words[:, tf.newaxis]
        )
        repeated = tf.reduce_any(
            equal & (position[:, tf.newaxis] > position), axis=2
        )
        # In texts id 0 is an unknown word, but in patches id 0 is padding.
        is_counted = texts.mask & ~repeated & (texts.words > 0)
        word = tf.boolean_mask(texts.words, is_counted)
        text = tf.cast(tf.where(is_counted)[:, 0], tf.int32)
        # `tf.searchsorted` does not take variables.
        entry_words = tf.convert_to_tensor(self.entry_words[side])
        start = tf.searchsorted(entry_words, word, side="left")
        end = tf.searchsorted(entry_words, word, side="right")
        entry = tf.ragged.range(start, end).flat_values
        patch = tf.gather(tf.convert_to_tensor(self.entry_patches[side]), entry)
        patches, count = sum(self.topics), tf.shape(texts.words)[0]
        sums = tf.math.unsorted_segment_sum(
            tf.gather(self.kernels[side].value, entry),
            tf.repeat(text, end - start) * patches + patch,
            count * patches,
        )
        return tf.reshape(sums, [count, patches, self.units, self.rank])

    def match(
        self, query: tf.Tensor, document: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Scores pairs by two layers of patches and the output layers."""
        first = tf.sigmoid(tf.reduce_sum(query * document, -1) + self.bias)
        kernel = self.second_kernel * self.edges[:, tf.newaxis]
        second = tf.sigmoid(
            tf.tensordot(first, kernel, [[1, 2], [0, 1]]) + self.second_bias
        )
        return self.output_layers(second)

"""Sentences and their neighbours, from text to batches of word ids."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.baselines.tokenizers import alphanumeric
from keras_lstm_dssm.errors import InputError

MAX_WORDS = 30
END_WORD = "</s>"
END = 2
"""The id of the end of a sentence; 0 is padding, 1 any unknown word."""

NEIGHBOURS = ("previous", "next")


def check_paragraphs(paragraphs: Sequence[Sequence[str]]) -> None:
    """Checks that there are sentences with neighbours.

    Raises:
        InputError: They are not lists of strings, or no paragraph has two
            sentences.
    """
    for number, paragraph in enumerate(paragraphs, 1):
        if isinstance(paragraph, str) or not all(
            isinstance(sentence, str) for sentence in paragraph
        ):
            raise InputError(
                f"paragraph {number}: found {paragraph!r:.40}, expected a list"
                " of sentences"
            )
    if max(map(len, paragraphs), default=0) < 2:
        raise InputError(
            f"found {len(paragraphs)} paragraphs of one sentence or none,"
            " expected sentences with neighbours: give contiguous text"
        )


def mark(text: str) -> str:
    """Joins the first `MAX_WORDS` words of a text and the end mark.

    >>> mark("Angle-Bracket, 12 Gauge")
    'angle bracket 12 gauge </s>'
    """
    return " ".join([*alphanumeric(text)[:MAX_WORDS], END_WORD])


def word_ids(
    sentences: Iterable[str], size: int
) -> keras.layers.TextVectorization:
    """Makes the layer that maps the most frequent words to ids.

    Args:
        sentences: Sentences from `mark`.
        size: Largest number of ids, including those of padding, of unknown
            words and of the end mark.

    Returns:
        A stock layer, strings `(batch,)` -> ids int64 `(batch, words)`. More
        frequent words have smaller ids; words of the same frequency are in
        alphabetical order.
    """
    counts = Counter(chain.from_iterable(map(str.split, sentences)))
    del counts[END_WORD]
    common = sorted(counts, key=lambda word: (-counts[word], word))
    return keras.layers.TextVectorization(
        standardize=None, vocabulary=[END_WORD, *common[: size - END - 1]]
    )


def triples(
    paragraphs: Sequence[Sequence[str]],
    lookup: keras.layers.TextVectorization,
    batch_size: int,
    seed: int,
) -> tf.data.Dataset:
    """Batches every sentence with the sentences before and after it.

    Args:
        paragraphs: The sentences of each paragraph, from `mark`. The first
            and the last one have only one neighbour; a paragraph of one
            sentence is left out.
        lookup: The layer from `word_ids`.
        batch_size: Number of sentences in a batch.
        seed: Seed of the order, which differs between epochs.

    Returns:
        Batches of inputs of `SkipThought`, each of texts of similar length.
    """
    contiguous = [paragraph for paragraph in paragraphs if len(paragraph) > 1]
    texts = {
        "sentence": chain.from_iterable(contiguous),
        "previous": chain.from_iterable(["", *p[:-1]] for p in contiguous),
        "next": chain.from_iterable([*p[1:], ""] for p in contiguous),
    }
    ids = {name: lookup(list(t)).numpy() for name, t in texts.items()}
    lengths = {name: np.count_nonzero(rows, 1) for name, rows in ids.items()}
    longest = np.max(list(lengths.values()), axis=0)
    random = np.random.default_rng(seed)

    def epoch() -> Iterator[dict[str, np.ndarray]]:
        order = random.permutation(len(longest))
        order = order[np.argsort(longest[order], kind="stable")]
        starts = np.arange(0, len(order), batch_size)
        for start in random.permutation(starts):
            rows = order[start : start + batch_size]
            # The decoder needs one time step even without a neighbour.
            yield {
                name: word_ids[rows, : max(1, lengths[name][rows].max())]
                for name, word_ids in ids.items()
            }

    spec = tf.TensorSpec([None, None], tf.int64)
    return (
        tf.data.Dataset.from_generator(
            epoch, output_signature=dict.fromkeys(ids, spec)
        )
        .apply(
            tf.data.experimental.assert_cardinality(
                -(-len(longest) // batch_size)
            )
        )
        .prefetch(2)
    )

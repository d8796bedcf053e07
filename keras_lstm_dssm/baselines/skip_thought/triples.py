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
        InputError: Not lists of strings, or no two sentences in a row.
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
    """Returns the first words of a text and the end, between spaces.

    >>> mark("Angle-Bracket, 12 Gauge")
    'angle bracket 12 gauge </s>'
    """
    return " ".join([*alphanumeric(text)[:MAX_WORDS], END_WORD])


def word_ids(
    sentences: Iterable[str], size: int
) -> keras.layers.TextVectorization:
    """Makes the layer that looks words up, with the most frequent ones.

    Args:
        sentences: What `mark` returns.
        size: Ids at most, padding, unknown words and the end counted.

    Returns:
        A stock layer, strings `(batch,)` -> ids int64 `(batch, words)`. The
        ids ascend as frequency falls; equals are in alphabetical order.
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
    """Batches every sentence with the ones before and after it.

    Args:
        paragraphs: Marked sentences. One at the start or end of its
            paragraph has one neighbour; one that stands alone is left out.
        lookup: From `word_ids`.
        batch_size: Sentences in a batch.
        seed: Of the order, which is another one in every epoch.

    Returns:
        Batches of `SkipThought`'s inputs, texts of like length together.
    """
    kept = [paragraph for paragraph in paragraphs if len(paragraph) > 1]
    texts = {
        "sentence": chain.from_iterable(kept),
        "previous": chain.from_iterable(["", *p[:-1]] for p in kept),
        "next": chain.from_iterable([*p[1:], ""] for p in kept),
    }
    ids = {name: lookup(list(t)).numpy() for name, t in texts.items()}
    lengths = {name: np.count_nonzero(found, 1) for name, found in ids.items()}
    longest = np.max(list(lengths.values()), axis=0)
    random = np.random.default_rng(seed)

    def epoch() -> Iterator[dict[str, np.ndarray]]:
        order = random.permutation(len(longest))
        order = order[np.argsort(longest[order], kind="stable")]
        starts = np.arange(0, len(order), batch_size)
        for start in random.permutation(starts):
            rows = order[start : start + batch_size]
            # One step stays where no neighbour is there, for the decoder.
            yield {
                name: found[rows, : max(1, lengths[name][rows].max())]
                for name, found in ids.items()
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

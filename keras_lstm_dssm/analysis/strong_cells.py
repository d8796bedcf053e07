"""The words of a query and a document that MV-LSTM finds to match best."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.matchers import MVLSTM
from keras_lstm_dssm.models import PairScorer
from keras_lstm_dssm.text import as_strings
from keras_lstm_dssm.text.word_hashing import split_words


class StrongCell(NamedTuple):
    """One of the largest values of an interaction matrix.

    Attributes:
        query_word: The query's word, as the model reads it.
        document_word: The document's word.
        value: The value of the interaction at these positions.
        slice: The number of the slice, from 0; a matrix of cosines has one.
        query_position: The position of the query's word, from 0.
        document_position: The position of the document's word, from 0.
        contribution: What the cell adds to the score, see `WordMatrix`.

    Example:
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> matcher = dssm.matchers.MVLSTM(word_dimension=4, units=3, hidden=5, k=1)
    >>> scorer = dssm.PairScorer(words, matcher)
    >>> cell = compare_words(scorer, "hex bolt", "steel bolt").strongest[0]
    >>> cell.query_word in ("hex", "bolt")
    True
    """

    query_word: str
    document_word: str
    value: float
    slice: int
    query_position: int
    document_position: int
    contribution: float


class WordMatrix(NamedTuple):
    """The interaction matrix of a pair of texts, and its strongest cells.

    The score is a function of the pooled cells that is linear in pieces, if
    the hidden layer has relus: it is the sum of each cell times its
    derivative, the contribution of the cell, and of a rest from the biases.

    Attributes:
        query_words: The words of the query that the model reads.
        document_words: The words of the document that it reads.
        unknown: Those of both that are not in the vocabulary, in order; they
            share one word vector.
        cells: float `[query words, document words, slices]`.
        score: The score of the pair.
        rest: The part of the score that no cell contributes.
        strongest: The k largest cells of each slice, the largest first; all
            cells where there are fewer.

    Example:
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> matcher = dssm.matchers.MVLSTM(word_dimension=4, units=3, slices=2)
    >>> matrix = compare_words(
    ...     dssm.PairScorer(words, matcher), "hex bolt", "desk lamp oak"
    ... )
    >>> matrix.cells.shape, matrix.document_words
    ((2, 3, 2), ('desk', 'lamp', 'oak'))
    """

    query_words: tuple[str, ...]
    document_words: tuple[str, ...]
    unknown: tuple[str, ...]
    cells: np.ndarray
    score: float
    rest: float
    strongest: list[StrongCell]


def compare_words(scorer: PairScorer, query: str, document: str) -> WordMatrix:
    """Compare all words of a query with all words of a document.

    Args:
        scorer: A `PairScorer` whose matcher is an `MVLSTM`.
        query: The query's text.
        document: The document's text.

    Raises:
        InputError: The matcher has no interaction matrix.

    Example:
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> matcher = dssm.matchers.MVLSTM(word_dimension=4, units=3, k=2, slices=1)
    >>> scorer = dssm.PairScorer(words, matcher)
    >>> len(compare_words(scorer, "hex bolt", "steel bolt").strongest)
    2
    """
    matcher = check_matrix(scorer)
    texts = [
        scorer.words(scorer.words.distinct([text]))
        for text in (query, document)
    ]
    lengths = [text.lengths for text in texts]
    cells = matcher.comparison(
        matcher.represent(texts[0], "query")[0],
        matcher.represent(texts[1], "document")[0],
    )
    pool = matcher.dynamic if matcher.pooling == "dynamic" else matcher.k_max
    with tf.GradientTape() as tape:
        tape.watch(cells)
        score = matcher.mlp(tf.reshape(pool(cells, *lengths), [1, -1]))
    # A cell of dynamic pooling may occur in several regions, or in none.
    contributions = (cells * tape.gradient(score, cells)).numpy()[0]
    words = [_words_of(scorer, text) for text in (query, document)]
    values, *positions = (part.numpy()[0] for part in matcher.explain(*texts))
    strongest = []
    for (number, rank), row in np.ndenumerate(positions[0]):
        if row < 0:  # there are fewer than k cells
            continue
        column = positions[1][number, rank]
        strongest.append(
            StrongCell(
                words[0][row],
                words[1][column],
                float(values[number, rank]),
                number,
                int(row),
                int(column),
                float(contributions[row, column, number]),
            )
        )
    return WordMatrix(
        words[0],
        words[1],
        _unknown(scorer, words),
        cells.numpy()[0],
        float(score[0]),
        float(score[0]) - float(contributions.sum()),
        strongest,
    )


def strongest_words(
    scorer: PairScorer, query: str, document: str
) -> list[StrongCell]:
    """List the words that match best, as in the case study of Wan et al. 2016.

    Args:
        scorer: A `PairScorer` whose matcher is an `MVLSTM`.
        query: The query's text.
        document: The document's text.

    Returns:
        For each slice of the interaction, its k largest cells, the largest
        first. The first three fields of a cell are what the paper prints:
        the query's word, the document's word and the value.

    Raises:
        InputError: The matcher has no interaction matrix.

    Example:
    >>> scorer = dssm.load_run("RUN")  # of --preset=mv_lstm_cosine
    >>> cells = strongest_words(scorer, "memory stick error", "memory error")
    >>> [cell[:3] for cell in cells[:2]]
    [('memory', 'memory', 0.84), ('error', 'error', 0.81)]
    """
    return compare_words(scorer, query, document).strongest


def check_matrix(scorer: PairScorer) -> MVLSTM:
    """Return the matcher of a pair scorer, if it has an interaction matrix.

    Raises:
        InputError: It has none.
    """
    if not isinstance(scorer.matcher, MVLSTM):
        raise InputError(
            f"{type(scorer.matcher).__name__} has no interaction matrix of "
            "words: expected a pair scorer with MVLSTM, such as those of "
            "--preset=mv_lstm_cosine, mv_lstm_bilinear or mv_lstm_tensor"
        )
    return scorer.matcher


def _words_of(scorer: PairScorer, text: str) -> tuple[str, ...]:
    layer = scorer.words
    (words,) = split_words(as_strings([text]), layer.max_words, layer.split)
    return tuple(word.decode() for word in words.numpy().tolist())


def _unknown(
    scorer: PairScorer, words: list[tuple[str, ...]]
) -> tuple[str, ...]:
    if not isinstance(scorer.words, VocabularyVectors):
        return ()
    known = set(scorer.words.vocabulary)
    distinct = dict.fromkeys(word for side in words for word in side)
    return tuple(word for word in distinct if word not in known)

"""The report of an MV-LSTM: matching words, and statistics over all queries."""

import os
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.analysis.drawing import (
    drawing,
    heat_map,
    label_height,
    label_words,
    short,
)
from keras_lstm_dssm.analysis.report import (
    Report,
    measured_sections,
    report_data,
    training_sections,
)
from keras_lstm_dssm.data.sources import (
    is_collection,
    open_collection,
    open_log,
)
from keras_lstm_dssm.data.triples import JudgedList, judged_lists
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.bm25 import bm25_neighbours
from keras_lstm_dssm.evaluation.significance import randomisation_test
from keras_lstm_dssm.layers.word_vectors import VocabularyVectors, WordVectors
from keras_lstm_dssm.matchers.matcher import rows_of
from keras_lstm_dssm.matchers.mv_lstm import MVLSTM
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.pages import (
    BulletList,
    Cell,
    Picture,
    Section,
    Strong,
    Table,
)
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.programs import ReportSettings
from keras_lstm_dssm.text import normalize
from keras_lstm_dssm.text.word_hashing import as_strings, normalize_and_split

_PAIRS_AT_ONCE = 256


class BestPositions(NamedTuple):
    """Where in their texts the two words of the largest cells stand."""

    pairs: int  # number of pairs of a query and a right answer
    # Share of the pairs in which the query's word is neither first nor last.
    query: float
    document: float  # the same share for the answer's word
    both: float  # share of the pairs in which neither word is first or last
    chance: float  # the value of `both` expected for words drawn at random
    last: float  # share of the pairs in which both words are last words


def best_positions(
    layer: WordVectors, matcher: MVLSTM, lists: Sequence[JudgedList]
) -> BestPositions:
    """Computes `BestPositions` of all pairs of a query and a right answer."""
    pairs = [
        (judged.query, right) for judged in lists for right in judged.positives
    ]
    shares_of_batches: list[np.ndarray] = []
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        batch = zip(*pairs[start : start + _PAIRS_AT_ONCE], strict=True)
        sides = []
        for side, texts in zip(("query", "document"), batch, strict=True):
            words = layer.distinct(texts)
            represented = matcher.represent(layer(words), side)
            sides.append(rows_of(represented, words.text_index))
        (_, query, m), (_, document, n) = sides
        cells = matcher.k_max.strongest_of_rows(
            matcher.comparison.compare_rows(query, document), m, n
        )
        # `best` is the slice of the largest cell; `position` is `[2, pairs]`.
        best = np.argmax(cells.values[:, :, 0], axis=1)
        rows = np.arange(len(best))
        position = np.stack([part.numpy()[rows, best, 0] for part in cells[1:]])
        length = np.stack([m, n])
        inside = (position > 0) & (position < length - 1)
        chance = (np.maximum(length - 2, 0) / length).prod(axis=0)
        last = (position == length - 1).all(axis=0)
        shares_of_batches.append(
            np.stack([*inside, inside.all(axis=0), chance, last])
        )
    shares = np.concatenate(shares_of_batches, axis=1).mean(axis=1)
    return BestPositions(len(pairs), *map(float, shares))


class TwoScorers(NamedTuple):
    """Compares two scorers by the numbers of queries that they answer right.

    A scorer answers a query right if a right answer has the highest score.
    """

    queries: int
    both: int  # answered right by both scorers
    only_this: int  # answered right by the first scorer only
    only_other: int  # answered right by the second scorer only
    neither: int  # answered right by neither scorer
    p: float  # p-value of the test that both scorers have the same P@1


def compare_scorers(
    scorer: PairScorer, other: PairScorer, lists: Sequence[JudgedList]
) -> tuple[TwoScorers, list[JudgedList]]:
    """Compares the P@1 of two scorers.

    Returns the comparison, and the lists that only `scorer` answers right. In
    these lists, the only negative is the negative that `other` scores highest.
    """
    lists = [
        judged for judged in lists if judged.positives and judged.negatives
    ]
    if not lists:
        raise InputError(
            "found no query with a right and a wrong answer, expected judged"
            " lists to compare two scorers on: give other --data"
        )
    (first, _), (second, preferred) = (
        _right_answers(model, lists) for model in (scorer, other)
    )
    alone = first & ~second
    comparison = TwoScorers(
        len(lists),
        int((first & second).sum()),
        int(alone.sum()),
        int((second & ~first).sum()),
        int((~first & ~second).sum()),
        float(randomisation_test(first.astype(float) - second)[0]),
    )
    return comparison, [
        lists[row]._replace(negatives=[preferred[row]])
        for row in np.flatnonzero(alone)
    ]


def _right_answers(
    scorer: PairScorer, lists: Sequence[JudgedList]
) -> tuple[np.ndarray, list[str]]:
    """Finds the lists answered right, and each list's top-scored negative."""
    answers = [[*judged.positives, *judged.negatives] for judged in lists]
    scores = scorer.score_pairs(
        [
            judged.query
            for judged, texts in zip(lists, answers, strict=True)
            for _ in texts
        ],
        [text for texts in answers for text in texts],
    )
    ends = np.cumsum([len(texts) for texts in answers])[:-1]
    right, negatives = [], []
    for judged, answer_scores in zip(
        lists, np.split(scores, ends), strict=True
    ):
        positive, negative = np.split(answer_scores, [len(judged.positives)])
        right.append(positive.max() > negative.max())
        negatives.append(judged.negatives[int(negative.argmax())])
    return np.array(right), negatives


_CLICKS = 60_000  # largest number of clicks to read from a log
_DEPTH = 100  # number of BM25's top titles that the scorer reorders
_NEIGHBOURS = 4


class ComparedQuery(NamedTuple):
    """A query, and the documents that it is compared with."""

    query: str
    documents: dict[str, str]  # description, such as "right answer" -> text


def example_answers(
    scorer: PairScorer,
    lists: Sequence[JudgedList],
    titles: list[str],  # BM25 searches these if a list has no negatives
    count: int = 3,
) -> list[ComparedQuery]:
    """Picks random queries, with a right answer and the top-scored negative."""
    order = np.random.default_rng(0).permutation(len(lists))
    drawn = _with_negatives((lists[row] for row in order), titles)
    examples = []
    for query, positives, negatives, _ in islice(drawn, count):
        wrong = negatives[int(np.argmax(scorer.score(query, negatives)))]
        answers = {"right answer": positives[0], "wrong answer": wrong}
        examples.append(ComparedQuery(query, answers))
    return examples


def lists_and_titles(
    data: str, min_relevant: int = 1, max_bad_lines: int = 0
) -> tuple[list[JudgedList], list[str]]:
    """Returns lists that have a right answer, and the distinct titles."""
    if is_collection(data):
        collection = open_collection(data)
        lists = judged_lists(collection, collection.last_split, min_relevant)
        titles = list(collection.documents.values())
    else:
        log = open_log(os.fspath(data), max_bad_lines=max_bad_lines)
        clicked: dict[str, list[str]] = {}
        for query, title in islice(log, _CLICKS):
            clicked.setdefault(query, []).append(title)
        lists = (
            JudgedList(query, clicks, []) for query, clicks in clicked.items()
        )
        titles = [
            title for query_titles in clicked.values() for title in query_titles
        ]
    with_positive = [judged for judged in lists if judged.positives]
    return with_positive, list(dict.fromkeys(titles))


def _with_negatives(
    lists: Iterator[JudgedList], titles: list[str]
) -> Iterator[JudgedList]:
    for judged in lists:
        negatives = judged.negatives
        if not negatives:
            depth = _NEIGHBOURS + len(judged.positives)
            (rows,) = bm25_neighbours([judged.query], titles, depth)
            near = [titles[row] for row in rows]
            right = set(normalize(judged.positives, "alphanumeric"))
            words = normalize(near, "alphanumeric")
            negatives = [
                title
                for title, title_words in zip(near, words, strict=True)
                if title_words not in right
            ]
        if negatives:
            yield judged._replace(negatives=negatives)


class WordMatch(NamedTuple):
    """A cell of the interaction matrix, and its two words.

    Attributes:
        query_word: The query's word, as the model reads it.
        document_word: The document's word, as the model reads it.
        value: The value of the cell.
        slice: The index of the slice, 0 unless the interaction is a tensor.
        query_position: The position of the query's word, from 0.
        document_position: The position of the document's word, from 0.
        contribution: What the cell adds to the score, see `WordMatrix`.

    Example:
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> matcher = dssm.matchers.MVLSTM(word_dimension=4, units=3, hidden=5, k=1)
    >>> scorer = dssm.PairScorer(words, matcher)
    >>> match = compare_words(scorer, "hex bolt", "steel bolt").strongest[0]
    >>> match.query_word in ("hex", "bolt")
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

    The contribution of a cell is its value times the derivative of the score by
    the cell. The score is piecewise linear in the cells, because the hidden
    layer has relus. The score is therefore the sum of all contributions plus
    `rest`. The biases cause `rest`.

    Attributes:
        query_words: The words of the query that the model reads.
        document_words: The words of the document that the model reads.
        unknown: Words of either text that are not in the vocabulary.
        cells: float `[query words, document words, slices]`.
        score: The score of the pair.
        rest: The part of the score that no cell contributes.
        strongest: The k largest cells of each slice, or all cells of a slice
            with fewer than k cells. The cells are sorted by slice, and the
            cells of a slice by value, the largest first.

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
    strongest: list[WordMatch]


def compare_words(scorer: PairScorer, query: str, document: str) -> WordMatrix:
    """Compares all words of a query with all words of a document.

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
    contributions = (cells * tape.gradient(score, cells)).numpy()[0]
    layer = scorer.words
    split = normalize_and_split(
        as_strings([query, document]), layer.max_words, layer.split
    )
    words = [tuple(w.decode() for w in row) for row in split.to_list()]
    unknown: tuple[str, ...] = ()
    if isinstance(layer, VocabularyVectors):
        known = set(layer.vocabulary)
        distinct = dict.fromkeys(chain(*words))
        unknown = tuple(word for word in distinct if word not in known)
    values, *positions = (part.numpy()[0] for part in matcher.explain(*texts))
    strongest = []
    for (number, rank), row in np.ndenumerate(positions[0]):
        if row < 0:  # the slice has fewer than k cells
            continue
        column = positions[1][number, rank]
        strongest.append(
            WordMatch(
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
        unknown,
        cells.numpy()[0],
        float(score[0]),
        float(score[0]) - float(contributions.sum()),
        strongest,
    )


def strongest_words(
    scorer: PairScorer, query: str, document: str
) -> list[WordMatch]:
    """Lists the words that match best, as in the case study of Wan et al. 2016.

    Args:
        scorer: A `PairScorer` whose matcher is an `MVLSTM`.
        query: The query's text.
        document: The document's text.

    Returns:
        `WordMatrix.strongest`, the k largest cells of each slice. The paper
        prints the first three fields of a cell: the query's word, the
        document's word and the value.

    Raises:
        InputError: The matcher has no interaction matrix.

    Example:
    >>> scorer = dssm.load_run("RUN")  # trained with --preset=mv_lstm_cosine
    >>> cells = strongest_words(scorer, "memory stick error", "memory error")
    >>> [cell[:3] for cell in cells[:2]]
    [('memory', 'memory', 0.84), ('error', 'error', 0.81)]
    """
    return compare_words(scorer, query, document).strongest


def check_matrix(scorer: PairScorer) -> MVLSTM:
    """Returns a scorer's matcher; raises `InputError` if it is no `MVLSTM`."""
    if not isinstance(scorer.matcher, MVLSTM):
        raise InputError(
            f"{type(scorer.matcher).__name__} has no interaction matrix of "
            "words: expected a pair scorer with MVLSTM, trained with "
            "--preset=mv_lstm_cosine, mv_lstm_bilinear or mv_lstm_tensor"
        )
    return scorer.matcher


def report_on_scorer(
    scorer: PairScorer, run: RunFolder, settings: ReportSettings, pictures: Path
) -> Report:
    """Reports on the words that an MV-LSTM matches: examples and statistics."""
    matcher = check_matrix(scorer)
    data, max_bad_lines, min_relevant = report_data(run, settings)
    lists, titles = lists_and_titles(data, min_relevant, max_bad_lines)
    positions = best_positions(scorer.words, matcher, lists)
    statistics = {"positions": positions._asdict()}
    results: dict[str, Any] = {}
    measured: list[Section] = []
    if is_collection(data):
        results, measured = measured_sections(
            scorer, open_collection(data), min_relevant, _DEPTH
        )
    examples = lists
    if settings.against:
        other = RunFolder(settings.against).load_model("scorer")
        answered, examples = compare_scorers(scorer, other, lists)
        statistics["against"] = answered._asdict()
    queries = example_answers(scorer, examples, titles, settings.examples)
    if not queries and not settings.against:
        raise InputError(
            f"{data}: found no query with a right and a wrong answer: give "
            "other --data"
        )
    training = training_sections(
        run, pictures / "loss.png", {"loss": "training"},
        "mean loss of a triple", caption="Training loss by epoch",
    )  # fmt: skip
    if settings.query is not None or settings.document is not None:
        query, document = settings.pair
        queries.insert(0, ComparedQuery(query, {"document": document}))
    sections, pairs = [], []
    for number, example in enumerate(queries, 1):
        matrices = {
            kind: compare_words(scorer, example.query, document)
            for kind, document in example.documents.items()
        }
        picture = pictures / f"matrix_{number}.png"
        sections.append(_query_section(picture, example, matrices))
        pairs += [
            {
                "query": example.query,
                "document": example.documents[kind],
                "kind": kind,
                "score": matrix.score,
                "cells": [match._asdict() for match in matrix.strongest],
            }
            for kind, matrix in matrices.items()
        ]
    tables = [
        Table(
            ["", "Value"],
            [[k.replace("_", " "), f"{v:,.4g}"] for k, v in values.items()],
            _STATISTICS[name],
        )
        for name, values in statistics.items()
    ]
    return Report(
        "Which words MV-LSTM matches",
        f"{len(queries)} queries; {matcher.interaction} interaction, "
        f"the {matcher.k} strongest cells of each slice, "
        f"{'k-max' if matcher.pooling == 'k_max' else 'dynamic'} pooling. "
        "A cell compares a word of the query with a word of the document. Each "
        "word is read in its context, from the left and from the right.",
        [
            *measured,
            *training,
            Section("All queries of the data", tables),
            *sections,
        ],
        {"pairs": pairs, **statistics, **results},
    )


_STATISTICS = {
    "positions": "Where the two words of the largest cell stand, in pairs of a"
    " query and a right answer. Row query: share of the pairs in which the"
    " query's word is neither the first nor the last word of its text. Row"
    " document: the same share for the answer's word. Row both: share of the"
    " pairs in which this is true of both words. Row chance: the value of row"
    " both that is expected for words drawn at random. Row last: share of the"
    " pairs in which each word is the last word of its text",
    "against": "Numbers of queries that are answered right by both scorers, by"
    " only this one, by only the other one, or by neither. p is the p-value of"
    " the test that both scorers have the same P@1",
}


def _query_section(
    path: Path, example: ComparedQuery, matrices: dict[str, WordMatrix]
) -> Section:
    titles = [
        f"{kind}\nscore {matrix.score:.2f}" for kind, matrix in matrices.items()
    ]
    draw_matrices(path, list(matrices.values()), titles)
    unknown = dict.fromkeys(w for m in matrices.values() for w in m.unknown)
    texts = [f"{kind}: {text}" for kind, text in example.documents.items()]
    if unknown:
        texts.append(
            "not in the vocabulary (all have the same word vector): "
            + ", ".join(unknown)
        )
    tables = [
        Table(
            ["Rank", "Query", "Document", "Value", "Adds to the score"],
            list(_table_rows(matrix)),
            f"The strongest cells, {kind}",
            text_columns=[1, 2],
        )
        for kind, matrix in matrices.items()
    ]
    caption = "Interaction matrices with the strongest cells"
    return Section(
        example.query,
        [BulletList(texts), Picture(caption, path), *tables],
        "The picture has a row for each word of the query and a column for "
        "each word of the document that the model reads. Frames and ranks mark "
        "the largest cells. A cell adds its value times the derivative of the "
        "score by the cell. The row `other` of a table is the sum of what "
        "the biases and the cells without a rank add.",
    )


def _table_rows(matrix: WordMatrix) -> Iterator[list[Cell]]:
    several = matrix.cells.shape[2] > 1
    for rank, match in _ranked(matrix):
        yield [
            f"slice {match.slice + 1}, {rank}" if several else str(rank),
            match.query_word,
            match.document_word,
            f"{match.value:.2f}",
            f"{match.contribution:+.3f}",
        ]
    contributed = sum(match.contribution for match in matrix.strongest)
    yield ["other", "", "", "", f"{matrix.score - contributed:+.3f}"]
    yield [Strong("score"), "", "", "", Strong(f"{matrix.score:+.3f}")]


def _ranked(matrix: WordMatrix) -> Iterator[tuple[int, WordMatch]]:
    """Yields (rank from 1, cell) for the strongest cells of each slice."""
    for _, matches in groupby(matrix.strongest, lambda match: match.slice):
        yield from enumerate(matches, 1)


def draw_matrices(
    path: Path, matrices: Sequence[WordMatrix], titles: Sequence[str]
) -> None:
    """Draws the matrices of one query, with ranks of the strongest cells."""
    query, slices = matrices[0].query_words, matrices[0].cells.shape[2]
    # With several slices, the row above each slice is for the slice's name.
    height = len(query) + (slices > 1)
    limit = max(np.abs(matrix.cells).max() for matrix in matrices)
    # The title needs the width of six columns.
    widths = [max(len(matrix.document_words), 6) for matrix in matrices]
    label_width = 0.1 * max(len(short(word)) for word in (*query, "slice 1"))
    size = (
        1.6 + label_width + 0.32 * sum(widths),
        1.0 + 0.26 * height * slices
        + label_height(*(matrix.document_words for matrix in matrices)),
    )  # fmt: skip
    patches = import_optional("matplotlib.patches", "analysis")
    with drawing(path, len(matrices), widths, figsize=size) as axes:
        for axis, matrix, title in zip(axes, matrices, titles, strict=True):
            shape = slices, height, len(matrix.document_words)
            rows = np.full(shape, np.nan)
            rows[:, -len(query) :] = matrix.cells.transpose(2, 0, 1)
            image = heat_map(
                axis, rows.reshape(-1, shape[2]), vmin=-limit, vmax=limit
            )
            label_words(axis, matrix.document_words)
            axis.set_title(title, fontsize=10)
            for rank, match in _ranked(matrix):
                column = match.document_position
                row = (
                    (match.slice + 1) * height - len(query)
                    + match.query_position
                )  # fmt: skip
                corner = column - 0.5, row - 0.5
                axis.add_patch(
                    patches.Rectangle(corner, 1, 1, fill=False, clip_on=False)
                )
                dark = abs(match.value) > 0.6 * limit
                axis.text(
                    column, row, str(rank), fontsize=8,
                    ha="center", va="center", color="w" if dark else "k",
                )  # fmt: skip
        labels: list[str] = []
        for number in range(1, slices + 1):
            labels += [*[f"slice {number}"] * (slices > 1), *map(short, query)]
        axes[0].set_yticks(range(len(labels)), labels)
        bar = axis.figure.colorbar(image, ax=axes, aspect=30, label="value")
        if all(matrix.cells.min() >= 0 for matrix in matrices):
            bar.ax.set_ylim(0, limit)

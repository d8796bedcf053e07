"""The words that a vector depends on: keywords, topics, effects of words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.encoders.activations import (
    Activations,
    each_activations,
    words_of,
)
from keras_lstm_dssm.encoders.text_encoder import WHOLE_VECTOR, TextEncoder
from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.settings.programs import (
    ACTIVE_CELLS,
    KEYWORD_SHARE,
    LEAST_CHANGE,
    TOPIC_CELLS,
)

SIDES = ("query", "document")
"""What the two encoders of a `TwoTower` read."""


class VectorPart(NamedTuple):
    """A range of the components of a text's vector.

    Attributes:
        name: What the components are, such as "LSTM output".
        start: The index of the first component, from 0.
        stop: The index after the last component.

    Example:
    >>> vector_parts(dssm.LSTMEncoder(cells=4))[0][1:]
    (0, 4)
    """

    name: str
    start: int
    stop: int


def vector_parts(encoder: TextEncoder) -> list[VectorPart]:
    """Returns the parts of the vectors that an encoder computes.

    Vectors of a `CombinedEncoder` have four parts: the final output of the
    LSTM, the sum of trained trigram rows, the sketch of the words, and one
    number. The sketch and this number together have a fixed norm. If `shares`
    has four numbers, the sum of the word vectors is the fifth part. Vectors of
    other encoders have one part.

    Example:
    >>> encoder = dssm.CombinedEncoder(cells=32, bag=32, sketch=63)
    >>> vector_parts(encoder)[1]
    VectorPart(name='trigram sum', start=32, stop=64)
    """
    widths = encoder.parts()
    stops = np.cumsum(list(widths.values())).tolist()
    return [
        VectorPart(name, stop - width, stop)
        for (name, width), stop in zip(widths.items(), stops, strict=True)
    ]


def common_parts(model: Any) -> list[VectorPart]:
    """Returns the encoders' parts, or the whole vector if the parts differ."""
    parts = vector_parts(model.query_encoder)
    if parts == vector_parts(model.document_encoder):
        return parts
    return [VectorPart(WHOLE_VECTOR, 0, model.query_encoder.dimension)]


def part_products(
    parts: list[VectorPart], vectors: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """Returns what each part adds to `vectors @ other`, `[n, parts]`."""
    return np.stack(
        [vectors[:, p.start : p.stop] @ other[p.start : p.stop] for p in parts],
        axis=1,
    )


def cell_note(encoder: TextEncoder) -> str:
    """Returns a note on which components of a vector are cells, or ""."""
    lstm, *others = encoder.parts().values()
    if others:
        return (
            f" Only the LSTM has cells: the first {lstm} of the "
            f"vector's {encoder.dimension} numbers."
        )
    if len(encoder.networks) > 1:
        return (
            f" Cells from {encoder.dimension // 2} on belong to the network "
            "that reads from right to left: its final output is at the first "
            "word."
        )
    return ""


class Growth(NamedTuple):
    """The cosines of a text's first 1, 2, 3, ... words with the other text.

    Attributes:
        query_words: The words of the query.
        query_cosines: float `[query words]`, the cosine of the whole title with
            the query up to each word.
        document_words: The words of the document's title.
        document_cosines: float `[document words]`, the cosine of the whole
            query with the title up to each word.
        parts: The names of the parts of the vectors, see `vector_parts`.
        query_parts: What each part adds to `query_cosines`, float `[query
            words, parts]`.
        document_parts: What each part adds to `document_cosines`, float
            `[document words, parts]`.

    Example:
    >>> model = dssm.TwoTower(dssm.LSTMEncoder(4), dssm.LSTMEncoder(4))
    >>> pair = growth(model, "hex bolt", "steel hex bolt")
    >>> pair.document_words, pair.query_cosines.shape
    (('steel', 'hex', 'bolt'), (2,))
    >>> bool(np.isclose(pair.query_cosines[-1], pair.document_cosines[-1]))
    True
    """

    query_words: tuple[str, ...]
    query_cosines: np.ndarray
    document_words: tuple[str, ...]
    document_cosines: np.ndarray
    parts: tuple[str, ...]
    query_parts: np.ndarray
    document_parts: np.ndarray

    def columns(self) -> dict[str, list[Any]]:
        """Returns the columns of a data frame: side, word and cosine."""
        sides = len(self.query_words), len(self.document_words)
        return {
            "side": np.repeat(SIDES, sides).tolist(),
            "word": [*self.query_words, *self.document_words],
            "cosine": [
                *self.query_cosines.tolist(),
                *self.document_cosines.tolist(),
            ],
        }


def growth(model: Any, query: str, document: str) -> Growth:
    """Computes the cosine of a query and a title after each word of each text.

    The first 1, 2, 3, ... words of each text are encoded as separate texts. The
    encoders may be of any kind.

    Args:
        model: A `TwoTower`.
        query: A query.
        document: The title of a document.

    Example:
    >>> growth(model, "hotels in shanghai", "shanghai hotels").query_cosines
    array([0.61, 0.6, 0.93], dtype=float32)
    """
    query_words = words_of(model.query_encoder, [query])[0]
    document_words = words_of(model.document_encoder, [document])[0]
    queries = model.query_encoder.encode(_beginnings(query_words))
    documents = model.document_encoder.encode(_beginnings(document_words))
    parts = common_parts(model)
    return Growth(
        query_words,
        queries @ documents[-1],
        document_words,
        documents @ queries[-1],
        tuple(part.name for part in parts),
        part_products(parts, queries, documents[-1]),
        part_products(parts, documents, queries[-1]),
    )


def _beginnings(words: Sequence[str]) -> list[str]:
    return [" ".join(words[: end + 1]) for end in range(len(words))]


class WordEffect(NamedTuple):
    """The effect of one word on the vector of its text.

    Attributes:
        word: The word.
        change: 1 - cosine of the vectors with and without the word, from 0 to
            2. If the change is small, the encoder attenuates the word.
        cosine: What the word adds to the inner product of the text's vector and
            another vector. None if no other vector is given.

    Example:
    >>> effects = attenuation(dssm.LSTMEncoder(4), "hotels in shanghai")
    >>> [effect.word for effect in effects]
    ['hotels', 'in', 'shanghai']
    """

    word: str
    change: float
    cosine: float | None


def attenuation(
    encoder: TextEncoder, text: str, other: np.ndarray | None = None
) -> list[WordEffect]:
    """Measures the effect of leaving out each word of a text, one at a time.

    Args:
        encoder: The encoder of the text.
        text: The text.
        other: Float `[dimension]`, the unit vector of another text, to compute
            `WordEffect.cosine`. Default None: `WordEffect.cosine` is None.

    Returns:
        A `WordEffect` for each word, in the order of the words.

    Example:
    >>> attenuation(encoder, "hotels in shanghai")[1]
    WordEffect(word='in', change=0.013, cosine=None)
    """
    words = words_of(encoder, [text])[0]
    whole, *without_word = encoder.encode([" ".join(words), *_without(words)])
    return [
        WordEffect(
            word,
            float(1 - whole @ vector),
            None if other is None else float((whole - vector) @ other),
        )
        for word, vector in zip(words, without_word, strict=True)
    ]


def each_change(
    encoder: TextEncoder, texts: Sequence[Sequence[str]]
) -> list[np.ndarray]:
    """Returns a float array `[words]` of `WordEffect.change` for each text."""
    whole = encoder.encode([" ".join(words) for words in texts])
    without = encoder.encode([t for words in texts for t in _without(words)])
    ends = np.cumsum([len(words) for words in texts])
    return [
        1 - vectors @ vector
        for vectors, vector in zip(
            np.split(without, ends[:-1]), whole, strict=True
        )
    ]


def _without(words: Sequence[str]) -> list[str]:
    """Returns the text without word 0, without word 1, and so on."""
    return [
        " ".join([*words[:index], *words[index + 1 :]])
        for index in range(len(words))
    ]


def frame(result: Any) -> Any:
    """Converts a result of this package into a pandas data frame.

    Args:
        result: The result of `activations`, `active_cells`, `keywords`,
            `topics`, `attenuation` or `growth`; or a list in an
            `ExplainedDocument`, such as `sentences`.

    Returns:
        A `pandas.DataFrame` with a row for each record and a column for each
        field. Activations have a row for each cell at each word, in each
        direction of reading. The columns of activations are `reverse` (whether
        the network reads from right to left), `position` (of the word), `word`,
        `cell`, and each of `i`, `f`, `c`, `o`, `y` that the network has. The
        result of `topics` has the columns `cell`, `word`, `query`. The result
        of `growth` has the columns `side`, `word`, `cosine`.

    Raises:
        InputError: pandas is not installed.

    Example:
    >>> states = activations(encoder, "hotels in shanghai")
    >>> frame(states).pivot(
    ...     index="cell", columns=["position", "word"], values="y"
    ... )
    """
    pandas = import_optional("pandas", "analysis")
    if isinstance(result, Activations | Growth):
        return pandas.DataFrame(result.columns())
    if isinstance(result, Mapping):
        return pandas.DataFrame(
            [(cell, *word) for cell, words in result.items() for word in words],
            columns=["cell", "word", "query"],
        )
    return pandas.DataFrame(result)


class ActiveCell(NamedTuple):
    """A cell, counted from 0 within its network, and its final output y.

    Example:
    >>> from keras_lstm_dssm.analysis import activations
    >>> states = activations(dssm.LSTMEncoder(cells=4), "hotels in shanghai")
    >>> first, second = active_cells(states, cells=2)
    >>> abs(first.y) >= abs(second.y)
    True
    """

    cell: int
    y: float


class Keyword(NamedTuple):
    """A word of a text, as in Tables I and II of Palangi et al. 2016.

    Attributes:
        word: The word.
        counts: The number of active cells that the word is assigned to, for
            each direction of reading; None if the word is the first word read.
        keyword: Whether every count exceeds `share` times the number of active
            cells, see `keywords`. A word without a count is not a keyword.

    Example:
    >>> from keras_lstm_dssm.analysis import activations
    >>> states = activations(dssm.LSTMEncoder(cells=4), "hotels in shanghai")
    >>> [(word.word, word.keyword) for word in keywords(states)][0]
    ('hotels', False)
    """

    word: str
    counts: tuple[int | None, ...]
    keyword: bool


def active_cells(
    states: Activations, cells: int = ACTIVE_CELLS
) -> list[ActiveCell]:
    """Returns the most active cells of one network at the end of a text.

    Cells are ranked by the absolute value of y, because strongly negative
    outputs add as much to a cosine as strongly positive outputs.

    Args:
        states: The result of `activations`. For a bidirectional encoder, give
            `states` for the network that reads from left to right, and
            `states.backward` for the network that reads from right to left.
        cells: The number of cells, by default 10. If the network has fewer
            cells, all are returned.

    Returns:
        The cells, the most active cell first.

    Example:
    >>> active_cells(activations(encoder, "hotels in shanghai"), 2)
    [ActiveCell(cell=17, y=0.81), ActiveCell(cell=3, y=-0.78)]
    """
    order = np.argsort(-np.abs(states.final_y), kind="stable")[:cells]
    return [
        ActiveCell(int(cell), float(states.final_y[cell])) for cell in order
    ]


def assigned(
    states: Activations, cells: int = ACTIVE_CELLS, change: float = LEAST_CHANGE
) -> np.ndarray:
    """Returns whether words are assigned to cells, bool `[words, cells]`.

    A word is assigned to an active cell if |y(t) - y(t-1)| >= change |y(T)|,
    where y(t) is the cell's output after the word, and y(T) the final output.
    Section V-A2 of Palangi et al. 2016 asks for "a large enough change".
    """
    active = [cell for cell, _ in active_cells(states, cells)]
    result = np.zeros(states.y.shape, bool)
    changes = np.abs(states.change[:, active])
    result[:, active] = changes >= change * np.abs(states.final_y[active])
    result[states.first_read] = False  # this word changes all cells from zero
    return result


def keywords(
    states: Activations,
    cells: int = ACTIVE_CELLS,
    change: float = LEAST_CHANGE,
    share: float = KEYWORD_SHARE,
) -> list[Keyword]:
    """Counts the active cells that each word is assigned to.

    Tables I and II of Palangi et al. 2016 have these counts.

    Args:
        states: The result of `activations`.
        cells: The number of most active cells, in each direction of reading.
            Default 10.
        change: A word is assigned to a cell if it changes the cell's output by
            at least this share of the final output. Default 0.25.
        share: A word is a keyword if it is assigned to more than this share of
            the active cells, in each direction of reading. Default 0.4.

    Returns:
        A `Keyword` for each word, in the order of the words.

    Example:
    >>> keywords(activations(encoder, "hotels in shanghai"))[1]
    Keyword(word='in', counts=(0,), keyword=False)
    """
    columns = []
    for network in states.directions:
        counts = assigned(network, cells, change).sum(axis=1)
        column: list[int | None] = list(map(int, counts))
        column[network.first_read] = None
        columns.append(column)
    least = share * min(cells, states.y.shape[1])
    words = []
    for word, *row in zip(states.words, *columns, strict=True):
        known = [count for count in row if count is not None]
        keyword = min(known, default=0) > least
        words.append(Keyword(word, tuple(row), keyword))
    return words


class TopicWord(NamedTuple):
    """A word that is assigned to a cell.

    Attributes:
        word: The word.
        query: The index of the query that has the word.

    Example:
    >>> words = topics(dssm.LSTMEncoder(cells=4), ["hex bolt", "wood glue"])
    >>> texts = {word for pairs in words.values() for word, _ in pairs}
    >>> texts <= {"hex", "bolt", "wood", "glue"}
    True
    """

    word: str
    query: int


def topics(
    encoder: TextEncoder,
    queries: Sequence[str],
    cells: int = TOPIC_CELLS,
    change: float = LEAST_CHANGE,
) -> dict[int, list[TopicWord]]:
    """Collects the words that are assigned to the active cells of queries.

    See section V-A3 and Table III of Palangi et al. 2016.

    Args:
        encoder: A recurrent encoder.
        queries: The texts to read.
        cells: The number of most active cells of each query, in each direction
            of reading. Default 5.
        change: A word is assigned to a cell if it changes the cell's output by
            at least this share of the final output. Default 0.25.

    Returns:
        Cell -> the words assigned to the cell, the cell with the most words
        first. A cell is the index of a component of the text's vector. In a
        bidirectional encoder the cells of the backward network follow the cells
        of the forward network.

    Raises:
        InputError: The encoder is not recurrent (DSSM, CLSM).

    Example:
    >>> topics(encoder, ["fried chicken", "torre de pizza"])
    {26: [TopicWord(word='chicken', query=0), TopicWord(word='pizza', query=1)]}
    """
    topic_words: dict[int, list[TopicWord]] = {}
    for query, states in enumerate(each_activations(encoder, queries)):
        words = [assigned(n, cells, change) for n in states.directions]
        for position, cell in np.argwhere(np.hstack(words)):
            word = TopicWord(states.words[position], query)
            topic_words.setdefault(int(cell), []).append(word)
    return dict(sorted(topic_words.items(), key=lambda item: -len(item[1])))


def distinctive_words(
    groups: Sequence[Iterable[str]], most: int
) -> list[list[tuple[str, int]]]:
    """Returns up to `most` words that distinguish each group, with counts."""
    counts = [Counter(group) for group in groups]
    total: Counter[str] = sum(counts, Counter())

    def rank(item: tuple[str, int]) -> tuple[float, str]:
        # The first words are frequent in the group, and rare in other groups.
        word, count = item
        return -(count**2) / (total[word] + 5), word

    return [sorted(group.items(), key=rank)[:most] for group in counts]

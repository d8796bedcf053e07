"""MV-LSTM of Wan et al. 2016, and the baseline LSTM-RNN."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import check_choice
from keras_lstm_dssm.layers.bidirectional_recurrence import (
    FlatSequences,
    run_by_numpy,
    run_on_rows,
)
from keras_lstm_dssm.layers.convolution import ScoringMLP, small_uniform
from keras_lstm_dssm.layers.interactions import (
    BilinearInteraction,
    CosineInteraction,
    DotInteraction,
    Interaction,
    TensorInteraction,
)
from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.layers.pooling import (
    DynamicPooling,
    KMaxPooling,
    StrongestCells,
    strongest_of_columns,
)
from keras_lstm_dssm.layers.recurrent import PeepholeLSTM
from keras_lstm_dssm.layers.word_vectors import WordSequences
from keras_lstm_dssm.matchers.matcher import Matcher, Texts, as_rows
from keras_lstm_dssm.ops import cosine_pairs, unit
from keras_lstm_dssm.registration import Configured, register
from lstm_dssm_client import local_encoder

# A batch of pairs is divided into 4 quarters by the length of the document, and
# each quarter into 2 groups by the length of the query.
_DOCUMENT_PARTS = 4
_QUERY_PARTS = 2


class PairedTexts(NamedTuple):
    """Holds the queries, or the documents, of a batch of pairs."""

    vectors: tf.Tensor  # vectors of all words of the texts, `(positions, d)`
    starts: tf.Tensor  # row in `vectors` of each text's first word, `(texts,)`
    lengths: tf.Tensor  # number of words of each text, `(texts,)`
    rows: tf.Tensor  # index of the text of each pair, `(pairs,)`

    @property
    def pair_lengths(self) -> tf.Tensor:
        """Length of each pair's text, int32 `(pairs,)`."""
        return tf.gather(self.lengths, self.rows)

    def take(self, order: tf.Tensor) -> "PairedTexts":
        """Returns the pairs in the order of the indices `order`, `(pairs,)`."""
        return self._replace(rows=tf.gather(self.rows, order))

    def groups(self) -> Iterator["PairedTexts"]:
        """Divides the pairs into groups of consecutive pairs."""
        # Without groups, most cells of the batch would be padding.
        pairs, count = tf.size(self.rows), _DOCUMENT_PARTS * _QUERY_PARTS
        for number in range(count):
            start, end = number * pairs // count, (number + 1) * pairs // count
            yield self._replace(rows=self.rows[start:end])

    def vector_rows(self, positions: tf.Tensor) -> tf.Tensor:
        """Converts positions in texts, `(pairs, slices, k)`, to vector rows."""
        # A missing cell has the position -1. It gets the row of position 0; the
        # result for this cell is discarded.
        first = tf.gather(self.starts, self.rows)
        return first[:, tf.newaxis, tf.newaxis] + tf.maximum(positions, 0)

    def padded(self, parts: Sequence[tf.Tensor]) -> tuple[tf.Tensor, ...]:
        """Gathers the text of each pair from every tensor of `parts`.

        A tensor `(positions, ..)` becomes `(pairs, longest, ..)`. A text is
        padded with its last row.
        """
        # The length of a group without pairs is set to 1.
        longest = tf.reduce_max(
            tf.pad(self.pair_lengths, [[1, 0]], constant_values=1)
        )
        starts = tf.gather(self.starts, self.rows)[:, tf.newaxis]
        last = self.pair_lengths[:, tf.newaxis] - 1
        index = starts + tf.minimum(tf.range(longest), last)
        return tuple(tf.gather(part, index) for part in parts)


def order_by_length(
    query_lengths: tf.Tensor, document_lengths: tf.Tensor
) -> tf.Tensor:
    """Orders pairs so that each of `PairedTexts.groups` has similar lengths."""
    by_document = tf.argsort(document_lengths, stable=True)
    rank = tf.math.invert_permutation(by_document)
    quarter = rank * _DOCUMENT_PARTS // tf.maximum(tf.size(rank), 1)
    longest = tf.reduce_max(tf.pad(query_lengths, [[1, 0]]))
    return tf.argsort(quarter * (longest + 1) + query_lengths, stable=True)


@register
class PositionalBiLSTM(Configured, keras.layers.Layer):
    """Computes p_t = [h_forward(t); h_backward(t)], Wan et al. 2016."""

    def __init__(
        self,
        word_dimension: int = 50,
        units: int = 50,
        include_word: bool = False,
        unit_length: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.word_dimension = word_dimension
        self.units = units
        self.include_word = include_word
        self.unit_length = unit_length
        self.dimension = 2 * units + (word_dimension if include_word else 0)
        # The weights of queries and of documents need different names.
        with keras.name_scope(self.name):
            self.forward_lstm, self.backward_lstm = (
                lstm(
                    word_dimension,
                    units,
                    dtype=self.dtype_policy,
                    name=name,
                )
                for name in ("forward", "backward")
            )
        self.built = True

    def flat(self, texts: FlatSequences, training: bool = False) -> tf.Tensor:
        """Returns p_t of all words, `(words, dimension)`."""
        layers = self.forward_lstm, self.backward_lstm
        outputs = run_on_rows(layers, texts, training)
        if self.include_word:
            words = gather_sum(texts.table, texts.index, training=training)
            outputs = tf.concat([words, outputs], axis=1)
        return unit(outputs) if self.unit_length else outputs

    def flat_by_numpy(self, texts: FlatSequences) -> np.ndarray:
        """Computes `flat` by NumPy; `texts.lengths` must be descending."""
        parts = [
            run_by_numpy(self.forward_lstm, texts),
            run_by_numpy(self.backward_lstm, texts, reverse=True),
        ]
        if self.include_word:
            parts.insert(0, np.asarray(texts.table)[texts.index])
        outputs = np.concatenate(parts, axis=1)
        return local_encoder.unit(outputs) if self.unit_length else outputs


def lstm(
    word_dimension: int,
    units: int,
    forget_bias: float = 0.0,
    **kwargs: Any,
) -> PeepholeLSTM:
    """Creates and builds an LSTM, by default the LSTM of Wan et al. 2016."""
    layer = PeepholeLSTM(
        units,
        peephole=None,
        kernel_initializer=small_uniform(),
        recurrent_initializer=small_uniform(),
        **kwargs,
    )
    layer.build((None, None, word_dimension))
    bias = layer.cell.bias  # starts at 1 for the forget gate, else at 0
    bias.assign(forget_bias * bias)
    return layer


INTERACTIONS = ("tensor", "bilinear", "cosine", "dot")
POOLINGS = ("k_max", "dynamic")


@register
class MVLSTM(Matcher):
    """Computes the score of MV-LSTM, Wan et al. 2016.

    A bidirectional LSTM represents each position of both texts. An interaction
    compares all positions of the query with all positions of the document. Each
    pair of positions gives a cell in each slice. An MLP scores the k largest
    cells of each slice. As in the authors' programs, `dssm.train` reduces the
    learning rate of the interaction:
    `Adagrad(0.03, multipliers=scorer.matcher.multipliers)`.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        units: Width of the LSTM of each direction. Default 50.
        interaction: `"tensor"` (default), `"bilinear"`, `"cosine"` or
            `"dot"`; see `TensorInteraction`, `BilinearInteraction`,
            `CosineInteraction` and `DotInteraction`.
        slices: Number of slices of the tensor interaction. Default 5.
        k: Number of cells of each slice for k-max pooling and `explain`.
            Default 5.
        hidden: Width of the hidden layer of the MLP. Default 200.
        share: Whether queries and documents share the LSTMs, as in the
            authors' programs. Default `True`.
        include_word: Whether the representation of a position includes its
            word vector. Default `False`.
        pooling: `"k_max"` (default), or `"dynamic"` for the maxima of a grid
            of regions, as in the authors' later programs.
        grid: Rows and columns of the grid of dynamic pooling. Default 5 by 5.
        rank: See `BilinearInteraction`. Default 150, as in the authors'
            programs.
        unit_length: Whether representations of positions are scaled to norm 1.
            Default `False`, as in the paper. The presets of the bilinear and
            tensor interactions have `True`, because any comparison with a
            vector of large norm would give a large cell.
        **kwargs: Arguments of `keras.layers.Layer`.

    See `Matcher` for the call arguments.

    Returns:
        Scores `(pairs,)`; before training, all scores are 0.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> texts = words(words.distinct(["hex bolt", "steel bolt"]))
    >>> MVLSTM(word_dimension=4, units=3, hidden=5)(texts, texts).shape
    TensorShape([2])
    """

    reads_flat = True

    def __init__(
        self,
        word_dimension: int = 50,
        units: int = 50,
        interaction: str = "tensor",
        slices: int = 5,
        k: int = 5,
        hidden: int = 200,
        share: bool = True,
        include_word: bool = False,
        pooling: str = "k_max",
        grid: tuple[int, int] = (5, 5),
        rank: int | None = 150,
        unit_length: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        check_choice(INTERACTIONS, interaction=interaction)
        check_choice(POOLINGS, pooling=pooling)
        self.units = units
        self.interaction = interaction
        self.slices = slices
        self.rank = rank
        self.k = k
        self.hidden = hidden
        self.share = share
        self.include_word = include_word
        self.unit_length = unit_length
        self.pooling = pooling
        self.grid = list(grid)
        self.query_positions = self._positions("positions")
        self.document_positions = (
            self.query_positions
            if share
            else self._positions("document_positions")
        )
        self.comparison = self._comparison()
        self.k_max = KMaxPooling(k, dtype=self.dtype_policy)
        rows, columns = grid
        self.dynamic = DynamicPooling(rows, columns, dtype=self.dtype_policy)
        features = k if pooling == "k_max" else rows * columns
        self.mlp = ScoringMLP([hidden], dtype=self.dtype_policy, name="mlp")
        self.mlp.build((None, features * self.comparison.slices))
        self.built = True

    def represent(self, texts: Texts, side: str, training: bool = False) -> Any:
        """Represents each position, and prepares the comparison.

        Returns the vectors of the positions, `(texts, time, dimension)`; the
        result of `Interaction.prepare_query` or `prepare_document`; and the
        lengths of the texts.
        """
        rows = as_rows(texts)
        if side == "query":
            layer, prepare = self.query_positions, self.comparison.prepare_query
        else:
            layer = self.document_positions
            prepare = self.comparison.prepare_document
        positions = rows.padded(layer.flat(rows, training))
        return positions, prepare(positions), rows.lengths

    def match(
        self, query: Any, document: Any, training: bool = False
    ) -> tf.Tensor:
        """Compares all positions, pools the cells, and computes the score."""
        if self.pooling == "dynamic":
            cells = self.comparison.compare(query[1], document[1])
            return self._score(self.dynamic(cells, query[2], document[2]))
        return self._score(self._strongest(query, document).values)

    @property
    def scores_by_numpy(self) -> bool:  # type: ignore[override]
        """Whether NumPy can compute the scores: only with k-max pooling."""
        return self.pooling == "k_max"

    def represent_by_numpy(
        self, texts: FlatSequences, side: str
    ) -> list[np.ndarray]:
        """Represents each position; see `Matcher.represent_by_numpy`."""
        query = side == "query"
        layer = self.query_positions if query else self.document_positions
        rows = layer.flat_by_numpy(texts)
        ends = np.cumsum(texts.lengths).tolist()
        return [rows[i:j] for i, j in zip([0, *ends], ends, strict=False)]

    def score_query(
        self, query: np.ndarray, documents: np.ndarray, lengths: np.ndarray
    ) -> np.ndarray:
        """Scores documents for one query; see `Matcher.score_query`."""
        # The documents are compared as one long text.
        cells = self.comparison.compare_rows(
            self.comparison.prepare_query(tf.constant(query[np.newaxis])),
            self.comparison.prepare_document(
                tf.constant(documents[np.newaxis])
            ),
        )[0]
        strongest = strongest_of_columns(cells.numpy(), lengths, self.k)
        return self.mlp.by_numpy(strongest.reshape(len(strongest), -1))

    def score_rows(
        self,
        query: Texts,
        document: Texts,
        query_rows: tf.Tensor,
        document_rows: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Scores pairs of texts; see `Matcher.score_rows`."""
        rows = query_rows, document_rows
        if not training or self.pooling == "dynamic":
            return super().score_rows(query, document, *rows, training)
        u_rows, v_rows = as_rows(query), as_rows(document)
        if self.share:
            # One loop over time encodes queries and documents.
            all_rows = u_rows.joined(v_rows)
            p = self.query_positions.flat(all_rows, training=True)
            texts = p, all_rows.starts, all_rows.lengths
            return self._score_chosen(
                p[: tf.size(u_rows.index)],
                PairedTexts(*texts, query_rows),
                PairedTexts(*texts, tf.size(u_rows.lengths) + document_rows),
            )
        u = self.query_positions.flat(u_rows, training=True)
        v = self.document_positions.flat(v_rows, training=True)
        return self._score_chosen(
            u,
            PairedTexts(u, u_rows.starts, u_rows.lengths, query_rows),
            PairedTexts(v, v_rows.starts, v_rows.lengths, document_rows),
        )

    @property
    def multipliers(self) -> dict[str, float]:
        """Factor of the learning rate: 0.1 for weights of the interaction."""
        return {"interaction": 0.1} if self.comparison.variables else {}

    def explain(
        self, query: WordSequences, document: WordSequences
    ) -> StrongestCells:
        """Finds, in each slice, the k cells with the largest values.

        Args:
            query: `WordSequences` of `pairs` queries.
            document: `WordSequences` of `pairs` documents.

        Returns:
            Descending values, positions in queries, and positions in documents,
            each `(pairs, slices, k)`. If a pair has fewer than k cells, the
            remaining values are 0, and the remaining positions are -1.
            `query.words` and `document.words` have the words at the positions.
        """
        return self._strongest(
            self.represent(query, "query"),
            self.represent(document, "document"),
        )

    def _strongest(self, query: Any, document: Any) -> StrongestCells:
        _, prepared_query, query_lengths = query
        _, prepared_document, document_lengths = document
        rows = self.comparison.compare_rows(prepared_query, prepared_document)
        return self.k_max.strongest_of_rows(
            rows, query_lengths, document_lengths
        )

    def _score_chosen(
        self,
        query_vectors: tf.Tensor,
        query: PairedTexts,
        document: PairedTexts,
    ) -> tf.Tensor:
        # The strongest cells are found without a gradient, and then computed
        # again with a gradient, which is faster than a gradient through all
        # cells. With shared LSTMs, `query.vectors` also has the vectors of
        # documents. `query_vectors` has only the vectors of queries.
        order = order_by_length(query.pair_lengths, document.pair_lengths)
        u, v = query.take(order), document.take(order)
        prepared_query, prepared_document = (
            [part[0] for part in prepare(tf.stop_gradient(vectors)[None])]
            for prepare, vectors in (
                (self.comparison.prepare_query, query_vectors),
                (self.comparison.prepare_document, v.vectors),
            )
        )
        groups = [
            self.k_max.strongest_of_rows(
                self.comparison.compare_rows(
                    u_group.padded(prepared_query),
                    v_group.padded(prepared_document),
                ),
                u_group.pair_lengths,
                v_group.pair_lengths,
            )
            for u_group, v_group in zip(u.groups(), v.groups(), strict=True)
        ]
        values, rows, columns = (
            tf.concat(parts, axis=0) for parts in zip(*groups, strict=True)
        )
        chosen = self.comparison.compare_at(
            u.vectors, v.vectors, u.vector_rows(rows), v.vector_rows(columns)
        )
        # If a pair has fewer than k cells, the missing cells are 0 in `values`.
        values = tf.stop_gradient(values)
        scores = self._score(tf.where(rows >= 0, chosen, values))
        return tf.gather(scores, tf.math.invert_permutation(order))

    def _score(self, pooled: tf.Tensor) -> tf.Tensor:
        width = pooled.shape[1:].num_elements()
        return self.mlp(tf.reshape(pooled, [-1, width]))

    def _positions(self, name: str) -> PositionalBiLSTM:
        return PositionalBiLSTM(
            self.word_dimension,
            self.units,
            self.include_word,
            self.unit_length,
            dtype=self.dtype_policy,
            name=name,
        )

    def _comparison(self) -> Interaction:
        policy = {"dtype": self.dtype_policy, "name": "interaction"}
        width = self.query_positions.dimension
        if self.interaction == "tensor":
            return TensorInteraction(width, self.slices, self.rank, **policy)
        if self.interaction == "bilinear":
            return BilinearInteraction(width, self.rank, **policy)
        if self.interaction == "cosine":
            return CosineInteraction(**policy)
        return DotInteraction(**policy)


@register
class RecurrentCosine(Matcher):
    """Computes the scaled cosine of the last outputs of LSTMs.

        s = scale * cos(h_X(m), h_Y(n))

    h_X(m) is the last output for a query of m words, and h_Y(n) is the last
    output for a document of n words. This is LSTM-RNN of Palangi et al. 2016
    with a forget gate and no peepholes, like the baseline of Wan et al. 2016.
    With two directions (Bi-LSTM-RNN), h_X is [h_forward(m); h_backward(1)].

    Args:
        word_dimension: Width of the word vectors. Default 50.
        units: Width of the LSTM of each direction. Default 50.
        bidirectional: Whether there is a second LSTM, which reads the words
            from last to first. Default `False`.
        share: Whether queries and documents share the LSTMs. Default `True`.
        scale: Factor of the cosine. Default 5. The hinge loss asks for a margin
            of 1. With `scale=1`, scores are only from -1 to 1, and training
            learns little.
        forget_bias: Initial bias of the forget gates. Default 3: the gates
            start near 1, and the vector of a text depends on all words of the
            text. With 0, each further word halves the weight of all earlier
            words.
        **kwargs: Arguments of `keras.layers.Layer`.

    See `Matcher` for the call arguments.

    Returns:
        Scores `(pairs,)`, from -scale to scale.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> words = dssm.layers.TrigramVectors(dimension=4)
    >>> texts = words(words.distinct(["hex bolt", "steel bolt"]))
    >>> RecurrentCosine(word_dimension=4, units=3)(texts, texts).shape
    TensorShape([2])
    """

    reads_flat = True
    scores_by_numpy = True

    def __init__(
        self,
        word_dimension: int = 50,
        units: int = 50,
        bidirectional: bool = False,
        share: bool = True,
        scale: float = 5.0,
        forget_bias: float = 3.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        self.units = units
        self.bidirectional = bidirectional
        self.share = share
        self.scale = scale
        self.forget_bias = forget_bias
        self.query_lstms = self._lstms("")
        self.document_lstms = (
            self.query_lstms if share else self._lstms("document_")
        )
        self.built = True

    def represent(
        self, texts: Texts, side: str, training: bool = False
    ) -> tf.Tensor:
        """Encodes texts; the width is `units`, or `2 * units` for two LSTMs."""
        layers = self.query_lstms if side == "query" else self.document_lstms
        rows = as_rows(texts)
        outputs = run_on_rows(layers, rows, training)
        # The forward LSTM ends at the last word, the backward at the first.
        ends = [rows.starts + rows.lengths - 1, rows.starts]
        return tf.concat(
            [
                tf.gather(part, end)
                for part, end in zip(
                    tf.split(outputs, len(layers), axis=1), ends, strict=False
                )
            ],
            axis=-1,
        )

    def score_rows(
        self,
        query: Texts,
        document: Texts,
        query_rows: tf.Tensor,
        document_rows: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Scores pairs of texts; see `Matcher.score_rows`."""
        if not self.share:
            rows = query_rows, document_rows
            return super().score_rows(query, document, *rows, training)
        # One loop over time encodes queries and documents.
        texts = as_rows(query).joined(as_rows(document))
        vectors = self.represent(texts, "query", training)
        queries = tf.size(query.lengths)
        return self.match(
            tf.gather(vectors, query_rows),
            tf.gather(vectors, queries + document_rows),
            training,
        )

    def represent_by_numpy(
        self, texts: FlatSequences, side: str
    ) -> list[np.ndarray]:
        """Encodes each text as one row; see `Matcher.represent_by_numpy`."""
        layers = self.query_lstms if side == "query" else self.document_lstms
        ends = [
            run_by_numpy(layer, texts, reverse, last=True)
            for layer, reverse in zip(layers, (False, True), strict=False)
        ]
        return [*local_encoder.unit(np.concatenate(ends, axis=1))[:, None]]

    def score_query(
        self, query: np.ndarray, documents: np.ndarray, lengths: np.ndarray
    ) -> np.ndarray:
        """Scores documents for one query; see `Matcher.score_query`."""
        return self.scale * (documents @ query[0])

    def match(
        self, query: tf.Tensor, document: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Computes the score of each pair."""
        return self.scale * cosine_pairs(query, document)

    def _lstms(self, prefix: str) -> list[PeepholeLSTM]:
        names = ["forward", "backward"] if self.bidirectional else ["forward"]
        return [
            lstm(
                self.word_dimension,
                self.units,
                forget_bias=self.forget_bias,
                dtype=self.dtype_policy,
                name=prefix + name,
            )
            for name in names
        ]

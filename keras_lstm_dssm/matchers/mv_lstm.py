"""MVLSTM: matches each position of a query with each of a document."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import WordSequences
from keras_lstm_dssm.layers.dynamic_pooling import DynamicPooling
from keras_lstm_dssm.layers.interactions import (
    BilinearInteraction,
    CosineInteraction,
    DotInteraction,
    Interaction,
    TensorInteraction,
)
from keras_lstm_dssm.layers.k_max_pooling import KMaxPooling, StrongestCells
from keras_lstm_dssm.layers.scoring_mlp import ScoringMLP
from keras_lstm_dssm.matchers.matcher import Matcher
from keras_lstm_dssm.matchers.positions import PositionalBiLSTM
from keras_lstm_dssm.registration import register

INTERACTIONS = ("tensor", "bilinear", "cosine", "dot")
POOLINGS = ("k_max", "dynamic")


@register
class MVLSTM(Matcher):
    """Computes the score of MV-LSTM, Wan et al. 2016.

    A bidirectional LSTM represents each position of both texts; an
    interaction compares all positions of the query with all of the document;
    the k strongest cells of each slice go through an MLP.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        units: Width of the LSTM of each direction. Default 50.
        interaction: `"tensor"` (default), `"bilinear"`, `"cosine"` or
            `"dot"`; see `layers/interactions.py`.
        slices: Number of slices of the tensor interaction. Default 5.
        k: Number of cells that k-max pooling and `explain` take of each
            slice. Default 5.
        hidden: Width of the hidden layer of the MLP. Default 200.
        share: Whether queries and documents have the same LSTMs, as in the
            authors' programs. Default `True`.
        include_word: Whether the word vector is part of the representation
            of its position. Default `False`.
        pooling: `"k_max"` (default), or `"dynamic"` for the maxima of a grid
            of regions, as in the authors' later programs.
        grid: Rows and columns of the grid of dynamic pooling. Default 5 by 5.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query: `WordSequences` of `pairs` queries, in any order.
        document: `WordSequences` of as many documents, in any order.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        Scores `(pairs,)`, 0 at the start.

    Raises:
        InputError: An argument is not supported.
    """

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
        **kwargs: Any,
    ) -> None:
        super().__init__(word_dimension, **kwargs)
        if interaction not in INTERACTIONS:
            raise InputError(
                f"interaction must be one of {INTERACTIONS}, not "
                f"{interaction!r}"
            )
        if pooling not in POOLINGS:
            raise InputError(
                f"pooling must be one of {POOLINGS}, not {pooling!r}"
            )
        self.units = units
        self.interaction = interaction
        self.slices = slices
        self.k = k
        self.hidden = hidden
        self.share = share
        self.include_word = include_word
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

    def represent(
        self, texts: WordSequences, side: str, training: bool = False
    ) -> Any:
        """Represent each position, and prepare it for the comparison.

        Returns:
            The representations of the positions, `(texts, time, dimension)`;
            the result of `Interaction.prepare_query` or of
            `prepare_document`; and the lengths `(texts,)`.
        """
        if side == "query":
            positions = self.query_positions(texts, training=training)
            prepared = self.comparison.prepare_query(positions)
        else:
            positions = self.document_positions(texts, training=training)
            prepared = self.comparison.prepare_document(positions)
        return positions, prepared, texts.lengths

    def match(
        self, query: Any, document: Any, training: bool = False
    ) -> tf.Tensor:
        """Compare all positions, pool the cells, and compute the score."""
        if self.pooling == "dynamic":
            pooled = self.dynamic(*self._cells(query, document))
        elif training:
            pooled = self._k_max_with_gradient(query, document)
        else:
            pooled = self.k_max(*self._cells(query, document))
        width = pooled.shape[1:].num_elements()
        return self.mlp(tf.reshape(pooled, [-1, width]))

    def explain(
        self, query: WordSequences, document: WordSequences
    ) -> StrongestCells:
        """Find the k cells of each slice with the largest values.

        With one slice these are what Wan et al. 2016 print as
        `(memory, memory, 0.84), (error, error, 0.81)`.

        Args:
            query: `WordSequences` of `pairs` queries.
            document: `WordSequences` of as many documents.

        Returns:
            Values and positions, each `(pairs, slices, k)`. `query.words` and
            `document.words` have the words at these positions.
        """
        return self.k_max.strongest(
            *self._cells(
                self.represent(query, "query"),
                self.represent(document, "document"),
            )
        )

    def _cells(
        self, query: Any, document: Any
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return the cells, and both lengths, of each pair."""
        _, prepared_query, query_lengths = query
        _, prepared_document, document_lengths = document
        cells = self.comparison.compare(prepared_query, prepared_document)
        return cells, query_lengths, document_lengths

    def _k_max_with_gradient(self, query: Any, document: Any) -> tf.Tensor:
        """Choose cells without a gradient, and compute only these with one."""
        cells, *lengths = self._cells(
            *tf.nest.map_structure(tf.stop_gradient, (query, document))
        )
        values, rows, columns = self.k_max.strongest(cells, *lengths)
        chosen = self.comparison.compare_at(
            query[0], document[0], tf.maximum(rows, 0), tf.maximum(columns, 0)
        )
        return tf.where(rows >= 0, chosen, values)

    def _positions(self, name: str) -> PositionalBiLSTM:
        return PositionalBiLSTM(
            self.word_dimension,
            self.units,
            self.include_word,
            dtype=self.dtype_policy,
            name=name,
        )

    def _comparison(self) -> Interaction:
        policy = {"dtype": self.dtype_policy, "name": "interaction"}
        width = self.query_positions.dimension
        if self.interaction == "tensor":
            return TensorInteraction(width, self.slices, **policy)
        if self.interaction == "bilinear":
            return BilinearInteraction(width, **policy)
        if self.interaction == "cosine":
            return CosineInteraction(**policy)
        return DotInteraction(**policy)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "interaction": self.interaction,
            "slices": self.slices,
            "k": self.k,
            "hidden": self.hidden,
            "share": self.share,
            "include_word": self.include_word,
            "pooling": self.pooling,
            "grid": self.grid,
        }

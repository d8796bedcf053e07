"""`TwoTower`, a query and a document encoder that are trained together.

A title is the text of a document.
"""

import sys
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.batches import CorpusNegatives
from keras_lstm_dssm.encoders.layer_encoder import LayerEncoder
from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError, check_at_least, check_choice
from keras_lstm_dssm.layers.letter_trigrams import SyncedWeights
from keras_lstm_dssm.models.pair_batch import (
    HashedPairs,
    PairHasher,
    pair_batches,
    split_pairs,
)
from keras_lstm_dssm.models.text_model import (
    OneProcess,
    TextModel,
    check_rows,
    is_empty,
    is_hashed,
    relative_weights,
)
from keras_lstm_dssm.ops import cosine_matrix, cosine_pairs
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.settings.fields import NEGATIVES

Blocks = Sequence[tf.Tensor]
"""Vectors as blocks of columns, see `TextEncoder.blocks`."""


def all_cosines(queries: Blocks, titles: Blocks) -> tf.Tensor:
    """Computes the cosine of each query with each title, `(batch, titles)`."""
    widths = [
        [block.shape[-1] for block in blocks] for blocks in (queries, titles)
    ]
    if len(queries) == 1 or widths[0] != widths[1]:
        return cosine_matrix(tf.concat(queries, 1), tf.concat(titles, 1))
    # The blocks of a text together form a vector of norm 1, so the sum of the
    # blocks' products is the cosine. If a block is not trained, its product
    # needs no gradient, and can be computed while an LSTM computes the other
    # block.
    return tf.add_n(
        [
            tf.matmul(query_block, title_block, transpose_b=True)
            for query_block, title_block in zip(queries, titles, strict=True)
        ]
    )


def random_negatives(
    query: tf.Tensor,
    document: tf.Tensor,
    candidates: tf.Tensor,
    n: int,
    seed: tf.Tensor,
    all_clicked: tf.Tensor,
    first_row: tf.Tensor | int,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws n negatives for each query; returns cosines and labels.

    Negatives are clicked titles of other rows of the batch. `query`,
    `(batch, d)`, and `document`, `(titles, d)`, have vectors. `candidates` and
    `all_clicked` have the indices of titles' rows in `document`. `candidates`,
    `(batch, 1 + k)`, has the clicked title and k further negatives of each
    query. `all_clicked` has the clicked titles of all workers; the titles of
    this worker begin at index `first_row`. Cosines and labels are
    `(batch, 1 + n + k)`, the clicked title first.
    """
    clicks = tf.shape(all_clicked)[0]
    # Row i takes the title of row (i + offset) % clicks. With offsets from 1 to
    # clicks - 1, this is never the title of row i itself.
    offset = tf.random.stateless_uniform(
        [clicks, n], seed, 1, tf.maximum(clicks, 2), tf.int32
    )
    rows = (tf.range(clicks)[:, tf.newaxis] + offset) % tf.maximum(clicks, 1)
    rows = rows[first_row : first_row + tf.shape(candidates)[0]]
    clicked, further = candidates[:, :1], candidates[:, 1:]
    negatives = tf.concat([tf.gather(all_clicked, rows), further], axis=1)
    vectors = tf.gather(document, tf.concat([clicked, negatives], axis=1))
    # The clicked title has the label 1, and a negative has the label 0. A
    # negative that equals the clicked title has the label -1, and is ignored.
    equal = tf.cast(tf.equal(negatives, clicked), query.dtype)
    labels = tf.concat([tf.ones_like(clicked, query.dtype), -equal], axis=1)
    return cosine_pairs(query[:, tf.newaxis, :], vectors), labels


def clicked_is_nearest(cosines: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Returns for each query whether its clicked title is the nearest.

    If a negative has the same cosine, the clicked title is not the nearest.
    """
    if labels.shape.rank == 1:  # labels are the clicked titles' columns
        clicked = tf.gather(cosines, labels, batch_dims=1)
        as_near = cosines >= clicked[:, tf.newaxis]
        return tf.math.count_nonzero(as_near, axis=-1) == 1
    best_negative = tf.reduce_max(tf.where(labels == 0, cosines, -2.0), axis=-1)
    clicked = tf.reduce_sum(tf.where(labels > 0, cosines, 0.0), axis=-1)
    return clicked > best_negative


def _one_hot(labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Converts labels that are column indices to one-hot labels."""
    if labels.shape.rank > 1:
        return labels
    return tf.one_hot(labels, tf.shape(scores)[1], dtype=scores.dtype)


class EpochBounds(keras.callbacks.Callback):
    """Clears outdated caches before an epoch, and syncs weights after it."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Clears the cached parts of vectors if these parts may be outdated."""
        # Callbacks such as `BackupAndRestore` set weights when training begins.
        # The caches may already hold parts computed with old weights.
        self.model.hasher.clear_if_stale()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Applies pending updates of the trigram tables' rows (`LazyRows`)."""
        self.model.sync_weights()


class ZeroLossWarning(keras.callbacks.Callback):
    """Warns if the loss of the first epoch is 0."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Forgets the losses of an earlier training."""
        self._epoch_losses: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Warns before the second epoch, below the first progress bar."""
        self._warn()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Records the loss."""
        self._epoch_losses.append(logs["loss"])
        self._epoch = epoch + 1

    def on_train_end(self, logs: Any = None) -> None:
        """Warns here if the training had only one epoch."""
        self._warn()

    def _warn(self) -> None:
        # Without negatives, the loss looks perfect, but all gradients are 0.
        if self._epoch_losses == [0.0] and self.params["verbose"]:
            print(
                f"warning: the loss of epoch {self._epoch} is 0: nothing was"
                " learnt; expected other titles as negatives in each batch:"
                " check that titles have different words, and that a batch"
                " has several clicks",
                file=sys.stderr,
            )


@register
class TwoTower(SyncedWeights, TextModel):
    """Trains a query encoder and a document encoder on clicks.

    Palangi et al. 2016, Fig. 3. `fit` takes two lists of texts, or a
    `tf.data.Dataset` of batches `(query, document)`. Both parts of a batch are
    strings `(batch,)`. A batch may have a third part, a dict with these keys:

    - `negatives`, strings `(batch, k)`: further negatives for each query; see
      `GivenNegatives`.
    - `sample_weight`, float32 `(batch,)`: weights of the clicks.
    - `log_q`, float32 `(batch,)` or `(batch, 1 + k)`: logarithms for the logQ
      correction; see `ClickFrequencies`.

    Training delays updates of rows of the trigram tables (`LazyRows`).
    `encode`, `get_weights`, saving, `evaluate`, `predict`, exporting and direct
    calls apply the updates first. Within an epoch, a callback must call
    `sync_weights()` before the callback reads a variable, or runs an encoder in
    your own `tf.function` or functional model.

    Args:
        query_encoder: Encoder of queries, with the parameters Lambda_Q. Give a
            `TextEncoder`, or any Keras layer or model from strings `(batch,)`
            to vectors `(batch, d)`.
        document_encoder: Encoder of titles, Lambda_D. Give the same object
            twice for tied towers.
        negatives: `"random"` (default): `n` titles of the batch for each query.
            `"in_batch"`: all other titles of the batch. `"corpus"`: `n` of
            all training titles for each query, as in the text of the paper. For
            lists, `fit` and `evaluate` draw the `"corpus"` negatives from the
            list of titles; a dataset needs `CorpusNegatives`.
        n: Number of random negatives for each query. Default 4.
        seed: Seed of the random negatives. Default 0.
        **kwargs: Arguments of `keras.Model`.

    Call arguments:
        inputs: `(query, document)`, each strings `(batch,)` or `WordBatch`.

    Returns:
        The cosine R(Q, D) of each row, `(batch,)`, eq. (3).

    Raises:
        InputError: The encoders have vectors of different widths, or an
            argument is not supported.

    Example:
    >>> model = dssm.build_model("lstm_96")
    >>> model.compile(NesterovMomentum(0.1), CosineSoftmax(10.0))
    >>> model.fit(pairs, epochs=8, callbacks=[NesterovSchedule()])
    >>> model.query_encoder.encode(["angle bracket"]).shape
    (1, 96)
    """

    hasher: PairHasher

    kind = "towers"
    takes_metrics = True
    weights_hint = "repeat the pairs that are to count more"

    def __init__(
        self,
        query_encoder: TextEncoder | keras.layers.Layer,
        document_encoder: TextEncoder | keras.layers.Layer,
        negatives: str = "random",
        n: int = 4,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        tied = query_encoder is document_encoder
        query_encoder = LayerEncoder.of(query_encoder)
        document_encoder = (
            query_encoder if tied else LayerEncoder.of(document_encoder)
        )
        super().__init__(
            PairHasher(query_encoder, document_encoder), seed, **kwargs
        )
        check_choice(NEGATIVES, negatives=negatives)
        check_at_least(1, n=n)
        widths = query_encoder.dimension, document_encoder.dimension
        if widths[0] != widths[1]:
            raise InputError(
                "both encoders must have vectors of the same width; found "
                f"{widths[0]} for queries and {widths[1]} for documents"
            )
        self.query_encoder = query_encoder
        self.document_encoder = document_encoder
        self.negatives = negatives
        self.n = n

    @property
    def tied(self) -> bool:
        """Whether queries and documents have the same encoder."""
        return self.query_encoder is self.document_encoder

    @property
    def towers(self) -> list[TextEncoder]:
        """The distinct encoders: two, or one if the towers are tied."""
        encoders = [self.query_encoder, self.document_encoder]
        return encoders[:1] if self.tied else encoders

    @property
    def needs_adapt(self) -> bool:
        """Whether `adapt` must be called before training."""
        return any(tower.needs_adapt for tower in self.towers)

    def adapt(self, titles: Sequence[str]) -> None:
        """From distinct titles, computes the statistics that encoders need."""
        caches = self.hasher.query_cache, self.hasher.document_cache
        for tower, cache in zip(self.towers, caches, strict=False):
            tower.adapt(titles, cache=cache)

    def compile(
        self,
        optimizer: Any,
        loss: Any,
        jit_compile: bool = False,
        **kwargs: Any,
    ) -> None:
        """Sets optimizer and loss.

        The norm threshold of `NesterovMomentum` applies to the gradients of
        each tower separately.

        Args:
            optimizer: `NesterovMomentum`, or any Keras optimizer.
            loss: `CosineSoftmax`.
            jit_compile: Must be `False`: XLA has no string operations.
            **kwargs: See `keras.Model.compile`. `metrics` are measured besides
                loss and accuracy. For a metric, `y_pred` has the cosines of
                queries and candidates, `(batch, candidates)`, without the logQ
                correction. A random negative that equals the clicked title has
                the cosine -1. `y_true` is 1.0 for the clicked title, else 0.0.
                For rankings of all documents use `RankingEvaluation`.

        Raises:
            InputError: XLA or half precision is requested; or `metrics` has
                accuracy, which every `TwoTower` measures.
        """
        self.sync_weights()  # applies pending updates of the previous optimizer
        super().compile(optimizer, loss, jit_compile=jit_compile, **kwargs)
        nesterov = self._nesterov()
        if nesterov:
            nesterov.set_groups(
                [tower.trainable_variables for tower in self.towers]
            )
            if nesterov.lazy:
                nesterov.set_tables(
                    [table for tower in self.towers for table in tower.tables]
                )
        for tower in self.towers:
            tower.before_read = nesterov.sync if nesterov else None
            for layer in tower.embeddings:
                layer.before_read = tower.before_read
                layer.read_ahead = (
                    nesterov.row_reader(layer.table) if nesterov else None
                )

    def fit(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on a dataset of string batches, or on two lists of texts.

        Args:
            x: `tf.data.Dataset` of batches `(query, document)`, or a list
                of queries.
            y: List of clicked titles if x is a list.
            batch_size: Number of pairs in a batch if x is a list. Default 256.
            epochs: See `keras.Model.fit`.
            verbose: See `keras.Model.fit`.
            callbacks: See `keras.Model.fit`.
            validation_split: Share of the pairs to evaluate after each epoch,
                and not to train on. These pairs are at the end of the lists.
            validation_data: A dataset; or two lists, which are shuffled once,
                and optionally a third list of weights.
            shuffle: Whether to shuffle lists, in a new order for each epoch.
                Default `True`.
            **kwargs: See `keras.Model.fit`: `initial_epoch`,
                `steps_per_epoch`, `validation_steps`,
                `validation_batch_size`, `validation_freq`; and
                `sample_weight`, a number of 0 or more for each pair of the
                lists. The loss of a batch is sum(w loss) / sum(w).

        Returns:
            The history: loss and accuracy of each epoch. Accuracy is the share
            of queries whose clicked title is nearer than all negatives.

        Raises:
            InputError: x and y are neither a dataset of pairs nor two lists
                of equal length; both `validation_split` and weights are
                given; or an encoder was not adapted.
            tf.errors.InvalidArgumentError: The loss is NaN or infinite, or the
                parts of a batch have different numbers of rows.
        """
        if validation_split:
            if kwargs.pop("sample_weight", None) is not None:
                raise InputError(
                    "sample_weight cannot be combined with validation_split:"
                    " give validation_data"
                )
            x, y, validation_data = split_pairs(x, y, validation_split)
        if validation_data is not None:
            if isinstance(validation_data, tf.data.Dataset):
                validation_data = (validation_data, None)
            queries, documents, *weights = validation_data
            size = kwargs.pop("validation_batch_size", None) or batch_size
            validation_data = self._batches(
                queries,
                documents,
                batch_size=size,
                shuffle_seed=self.seed,
                sample_weight=weights[0] if weights else None,
                reshuffle=False,
            )
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = [
                *self.fit_callbacks(),
                ZeroLossWarning(),
                *keras.tree.flatten(callbacks or []),
            ]
        try:
            return super().fit(
                x,
                y=y,
                batch_size=batch_size,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_data,
                shuffle=shuffle,
                **kwargs,
            )
        finally:
            self.sync_weights()

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Returns loss and accuracy; for x, y and weights see `fit`.

        Lists are shuffled, so that a batch has random negatives. Each call uses
        the same order and the same `"corpus"` negatives.
        """
        pairs = self._batches(
            x,
            y,
            batch_size=batch_size,
            shuffle_seed=self.seed,
            sample_weight=sample_weight,
            reshuffle=False,
        )
        self.sync_weights()
        return super().evaluate(pairs, verbose=verbose, **kwargs)

    def _check_ready(self) -> None:
        for tower in self.towers:
            if tower.needs_adapt:
                raise InputError(
                    f"{tower.name} has not been adapted: call "
                    "adapt(titles) with the document titles before fit, or "
                    "train with dssm.train"
                )

    def call(self, inputs: tuple[Any, Any]) -> tf.Tensor:
        """Returns the cosine of each query and its document."""
        query = self.query_encoder(inputs[0])
        document = self.document_encoder(inputs[1])
        check_rows(queries=query, documents=document)
        return cosine_pairs(query, document)

    def batch_loss(self, batch: HashedPairs, training: bool) -> tf.Tensor:
        """Returns the loss of the clicked titles against their negatives."""
        queries, titles = self._encode(batch, training)
        titles = self.exchange.share_titles(titles, batch)
        cosines, labels = self._compare(queries, titles, batch, training)
        scores = self._correct_log_q(cosines, batch)
        weights = relative_weights(self, batch.weights)
        loss = self.compute_loss(
            y=self._labels(labels, scores), y_pred=scores, sample_weight=weights
        )
        is_accurate = clicked_is_nearest(cosines, labels)
        self._record(loss, is_accurate, batch.weights)
        self._update_metrics(labels, cosines, batch.weights)
        return self.exchange.weigh(loss, batch)

    def _encode(
        self, batch: HashedPairs, training: bool
    ) -> tuple[Blocks, Blocks]:
        blocks = self.query_encoder.blocks(batch.query, training)
        queries = [tf.gather(block, batch.query.text_index) for block in blocks]
        if self.tied:  # the texts of `batch.query` are queries and titles
            return queries, [tf.gather(block, batch.titles) for block in blocks]
        return queries, self.document_encoder.blocks(batch.document, training)

    def _compare(
        self,
        queries: Blocks,
        titles: Blocks,
        batch: HashedPairs,
        training: bool,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the cosines of queries and candidates, and the labels.

        With in-batch negatives, labels are the columns of the clicked titles.
        For other negatives see `random_negatives`.
        """
        if self.negatives == "in_batch":
            return all_cosines(queries, titles), batch.candidates[:, 0]
        # The seed depends on the training step, so that a resumed run draws the
        # negatives of an uninterrupted run. All evaluations draw the same
        # negatives.
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        return random_negatives(
            tf.concat(queries, axis=1),
            tf.concat(titles, axis=1),
            batch.candidates,
            self.n if self.negatives == "random" else 0,
            tf.stack([self.seed, step if training else -1]),
            *self.exchange.all_clicked(batch),
        )

    def _correct_log_q(
        self, cosines: tf.Tensor, batch: HashedPairs
    ) -> tf.Tensor:
        """Subtracts log_q / gamma from the cosines of queries with a title.

        log_q is the log of the title's share of the clicks. In-batch negatives
        are sampled in proportion to these shares. The logQ correction gives the
        loss of uniformly sampled negatives (Yi et al. 2019).
        """
        if batch.log_q is None:
            return cosines
        gamma: float | None = getattr(self.loss, "gamma", None)
        if self.negatives != "in_batch" or gamma is None:
            raise InputError(
                "log_q corrects CosineSoftmax with in-batch negatives; got "
                f"negatives={self.negatives!r} and {self.loss!r}"
            )
        log_q = tf.math.divide_no_nan(*batch.log_q)
        # The loss multiplies cosines by gamma.
        return cosines - tf.cast(log_q / gamma, cosines.dtype)

    def _labels(self, labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        takes_indices = getattr(self.loss, "takes_indices", False)
        return labels if takes_indices else _one_hot(labels, scores)

    def _update_metrics(
        self, labels: tf.Tensor, cosines: tf.Tensor, weights: tf.Tensor | None
    ) -> None:
        if not self.given_metrics:
            return
        labels = _one_hot(labels, cosines)
        cosines = tf.where(labels < 0, -tf.ones_like(cosines), cosines)
        y = tf.maximum(labels, 0)
        self.compute_metrics(None, y, cosines, weights)

    def predict(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> Any:
        """Returns the cosines of pairs, `(pairs,)`; for x and y see `fit`."""
        pairs = pair_batches(x, y, batch_size)
        self.sync_weights()
        if is_empty(pairs):  # Keras would raise UnboundLocalError
            return np.zeros(0, self.compute_dtype)
        return super().predict(self._hashed(pairs), verbose=verbose, **kwargs)

    def predict_step(self, data: tuple[Any, Any]) -> tf.Tensor:
        """Returns the cosines of a batch of pairs."""
        pairs = self._batch(data)
        return self((pairs.query, pairs.document))

    def sync_weights(self) -> None:
        """Brings the trigram tables up to date with the last training step."""
        for tower in self.towers:
            tower.sync_weights()

    def fit_callbacks(self) -> list[keras.callbacks.Callback]:
        """Returns callbacks to run before the user's callbacks."""
        return [EpochBounds()]

    def train_jointly(self, exchange: OneProcess) -> None:
        """Makes each training step use the batches of all workers.

        Workers must have equal weights, and equal numbers of batches in `fit`.
        `exchange` is a `JointStep`, a subclass of `OneProcess`.
        """
        self.exchange = exchange
        self.hasher.fingerprints = True
        self.train_function = None  # Keras traces the training step again

    def _batches(
        self, x: Any, y: Any = None, reshuffle: bool = True, **options: Any
    ) -> tf.data.Dataset:
        pairs = pair_batches(x, y, reshuffle=reshuffle, **options)
        if self.negatives != "corpus" or is_hashed(
            pairs.element_spec, HashedPairs
        ):
            return pairs
        if not isinstance(x, tf.data.Dataset):
            split = self.document_encoder.trigrams.split
            seed = self.seed + (self._steps_done() if reshuffle else 0)
            negatives = CorpusNegatives(y, self.n, seed, split)
            if negatives.distinct == 1:
                raise InputError(
                    'found a single title: negatives="corpus" needs two or'
                    " more different titles"
                )
            return negatives.attach(pairs, None if reshuffle else 0)
        *_, extras = pairs.element_spec
        if not isinstance(extras, dict) or "negatives" not in extras:
            raise InputError(
                'the batches have no negatives, but negatives is "corpus":'
                " add them by CorpusNegatives(titles).attach(batches), or give"
                " two lists"
            )
        return pairs

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        serialize = keras.saving.serialize_keras_object
        return {
            "name": self.name,
            "query_encoder": serialize(self.query_encoder),
            "document_encoder": None
            if self.tied
            else serialize(self.document_encoder),
            "negatives": self.negatives,
            "n": self.n,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TwoTower":
        """Rebuilds the model with its encoders."""
        deserialize = keras.saving.deserialize_keras_object
        query = deserialize(config["query_encoder"])
        document = deserialize(config["document_encoder"]) or query
        return cls(
            **{**config, "query_encoder": query, "document_encoder": document}
        )

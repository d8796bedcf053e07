"""PairScorer: scores pairs of texts by a matcher, trained on triples."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import NOT_FINITE, InputError
from keras_lstm_dssm.layers import WordVectors
from keras_lstm_dssm.matchers import Matcher
from keras_lstm_dssm.models.pair_scoring import PairScoring
from keras_lstm_dssm.models.pairs import pair_batches
from keras_lstm_dssm.models.triples import (
    HashedTriples,
    TripleHasher,
    is_hashed,
    triple_batches,
)
from keras_lstm_dssm.private_api import (
    BuiltModel,
    accept_any_inputs,
    replica_count,
)
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import WordBatch, as_strings


@register
class PairScorer(BuiltModel):
    """Scores pairs of a query and a document, whose words meet each other.

    A `TwoTower` compares two vectors that were computed apart; a `Matcher`,
    such as `MVLSTM`, compares every word of the query with every word of the
    document. It cannot search an index, but reorders the candidates that
    another system has found.

    `fit` takes triples: a query, a document that answers it and one that
    does not. In a training step each distinct query is represented once, and
    so is each distinct document, however many triples it occurs in.

    Args:
        words: Layer that turns texts into word vectors, the same one for
            queries and documents.
        matcher: Layer that scores two sequences of word vectors; its
            `word_dimension` is the `dimension` of `words`. If it does not
            train them (`trains_words`), they become not trainable.
        seed: Seed of the order of lists in `fit`. Default 0.
        **kwargs: Arguments of `keras.Model`.

    Call arguments:
        inputs: `(query, document)`, each strings `(batch,)` or `WordBatch`.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        Scores `(batch,)`; only their order within a query has a meaning.

    Raises:
        InputError: `matcher` expects word vectors of another width.

    Example:
    >>> scorer = PairScorer(VocabularyVectors(vocabulary), MVLSTM())
    >>> scorer.compile(Adagrad(0.03), PairwiseHinge())
    >>> scorer.fit((queries, positives, negatives), epochs=5)
    >>> scorer.score("angle bracket", ["12-Gauge Angle", "Wood glue"])
    array([ 1.3, -0.2], dtype=float32)
    """

    def __init__(
        self,
        words: WordVectors,
        matcher: Matcher,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if matcher.word_dimension != words.dimension:
            raise InputError(
                f"the matcher expects word vectors of width"
                f" {matcher.word_dimension}, but words has {words.dimension}:"
                " make both equal"
            )
        if not matcher.trains_words:
            # Else Keras would warn that the table has no gradient.
            words.embedding.trainable = False
        self.words = words
        self.matcher = matcher
        self.seed = seed
        self._hash = TripleHasher(words)
        self._scoring = PairScoring(words, matcher)
        self._accuracy = keras.metrics.Mean(name="accuracy")
        accept_any_inputs(self)
        self.built = True

    def call(
        self, inputs: tuple[Any, Any], training: bool = False
    ) -> tf.Tensor:
        """Returns the score of each query and its document."""
        query, document = (
            text
            if isinstance(text, WordBatch)
            else self.words.distinct(as_strings(text))
            for text in inputs
        )
        return self._scoring.of_batches(query, document, training)

    def compile(
        self,
        optimizer: Any,
        loss: Any,
        jit_compile: bool = False,
        **kwargs: Any,
    ) -> None:
        """Sets optimizer and loss.

        Args:
            optimizer: `Adagrad`, or any other Keras optimizer.
            loss: `PairwiseHinge`, or another loss of labels `(batch, 2)`,
                always 1 and 0, and scores `(batch, 2)` of the positives and
                the negatives.
            jit_compile: Must be `False`: XLA has no string operations.
            **kwargs: See `keras.Model.compile`; loss and accuracy are the
                only metrics.

        Raises:
            InputError: Metrics, XLA, mixed precision or an optimizer of
                `TwoTower` are requested.
        """
        if kwargs.get("metrics") or kwargs.get("weighted_metrics"):
            raise InputError(
                "the model has two metrics, loss and accuracy, and takes no "
                "others; measure rankings with evaluation.evaluate_lists"
            )
        if jit_compile is True:
            raise InputError(
                "jit_compile=True is not supported: XLA has no string "
                "operations; leave it out"
            )
        super().compile(
            optimizer=optimizer, loss=loss, jit_compile=False, **kwargs
        )
        if isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer):
            raise InputError(
                "mixed precision with loss scaling is not supported: use the "
                "dtype policy float32 or float64"
            )
        if hasattr(self.optimizer, "look_ahead"):
            raise InputError(
                f"{type(self.optimizer).__name__} is an optimizer of TwoTower:"
                " use Adagrad, or one of keras.optimizers"
            )
        self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_data: Any = None,
        shuffle: bool = True,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on a dataset of triples, or on three lists of texts.

        Hashing runs in the dataset, in parallel with the training steps.

        Args:
            x: `tf.data.Dataset` of batches `(query, positive, negative)`,
                strings `[batch]`, such as `Triples.batches` makes; or a
                tuple of three lists of texts.
            batch_size: Triples in a batch, for lists; 128 by default.
            epochs: See `keras.Model.fit`.
            verbose: See `keras.Model.fit`.
            callbacks: See `keras.Model.fit`.
            validation_data: Triples like x, whose loss and accuracy are
                measured after each epoch.
            shuffle: Whether lists are shuffled, anew in each epoch.
            **kwargs: See `keras.Model.fit`: `initial_epoch`,
                `steps_per_epoch`, `validation_steps`, `validation_freq`.

        Returns:
            The history: loss and accuracy of each epoch. Accuracy is the
            share of triples whose positive has a higher score than the
            negative; an equal score does not count.

        Raises:
            InputError: x is neither a dataset of triples nor three lists of
                equal length, or weights are given.
            tf.errors.InvalidArgumentError: The loss is NaN or infinite; the
                weights are those before the step.
        """
        for name in ("y", "class_weight", "sample_weight", "validation_split"):
            if kwargs.pop(name, None):
                raise InputError(
                    f"{name} is not supported: give x=(queries, positives,"
                    " negatives), and further triples as validation_data"
                )
        if validation_data is not None:
            validation_data = self._hashed(
                triple_batches(validation_data, batch_size)
            )
        # A `fit` that continues another one shuffles in another order.
        done = int(self.optimizer.iterations.numpy()) if self.compiled else 0
        triples = triple_batches(
            x, batch_size, self.seed + done if shuffle else None
        )
        try:
            return super().fit(
                self._hashed(triples),
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_data,
                shuffle=False,  # the dataset has shuffled
                **kwargs,
            )
        except KeyboardInterrupt:
            for callback in getattr(callbacks, "callbacks", callbacks or ()):
                getattr(callback, "on_interrupt", lambda: None)()
            raise

    def evaluate(
        self,
        x: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> Any:
        """Measures loss and accuracy of triples; x as for `fit`."""
        triples = self._hashed(triple_batches(x, batch_size))
        return super().evaluate(triples, verbose=verbose, **kwargs)

    def predict(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> np.ndarray:
        """Returns the scores of pairs, `(pairs,)`, in their order.

        `score_pairs` is faster for many pairs of texts of different lengths.

        Args:
            x: List of queries, or a dataset of batches `(query, document)`.
            y: List of documents, when x is a list.
            batch_size: Pairs in a batch, for lists; 256 by default.
            verbose: See `keras.Model.predict`.
            **kwargs: See `keras.Model.predict`.
        """
        pairs = pair_batches(x, y, batch_size)
        return super().predict(
            # In a tuple: else Keras takes the second text for labels.
            pairs.map(lambda *pair: (pair[:2],)).prefetch(tf.data.AUTOTUNE),
            verbose=verbose,
            **kwargs,
        )

    def score(
        self, query: str, documents: Any, batch_size: int = 512
    ) -> np.ndarray:
        """Scores candidates for one query.

        The query is represented once, and each distinct candidate of a batch
        once. May be called from several threads.

        Args:
            query: The query's text.
            documents: Any iterable of texts.
            batch_size: Number of candidates that are scored at once.

        Returns:
            Float `[documents]`, in their order.

        Raises:
            InputError: `query` is not one text, or `documents` no texts.

        Example:
        >>> scorer.score("angle bracket", ["12-Gauge Angle", "Wood glue"])
        array([ 1.3, -0.2], dtype=float32)
        """
        return self._scoring.of_query(query, documents, batch_size)

    def score_pairs(
        self,
        queries: Any,
        documents: Any,
        batch_size: int = 256,
        progress: bool = False,
    ) -> np.ndarray:
        """Scores many pairs, in batches of similar length.

        Args:
            queries: Any iterable of texts.
            documents: As many documents.
            batch_size: Number of pairs that are scored at once.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            Float `[pairs]`, in their order.

        Raises:
            InputError: The texts are not strings, or not as many documents
                as queries.
        """
        return self._scoring.of_pairs(queries, documents, batch_size, progress)

    def train_step(self, data: tuple[Any, ...]) -> dict[str, Any]:
        """Takes one training step.

        Args:
            data: `(query, positive, negative)`, strings, or hashed.

        Raises:
            tf.errors.InvalidArgumentError: The loss is NaN or infinite; the
                weights stay those before the step.
        """
        variables = self.trainable_variables
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(self._loss_of(data, training=True))
        gradients = tape.gradient(loss, [v.value for v in variables])
        # Checking one number in the graph takes no measurable time.
        finite = tf.debugging.assert_all_finite(loss, NOT_FINITE)
        with tf.control_dependencies([finite]):
            self.optimizer.apply(gradients, variables)
        return self.get_metrics_result()

    def test_step(self, data: tuple[Any, ...]) -> dict[str, Any]:
        """Measures loss and accuracy of a batch, as for `train_step`."""
        self._loss_of(data, training=False)
        return self.get_metrics_result()

    def predict_step(self, data: tuple[Any, ...]) -> tf.Tensor:
        """Returns the scores of a batch of pairs."""
        return self(data[0])

    def export(self, *args: Any, **kwargs: Any) -> None:
        """Raises `InputError`: Keras would trace a numeric input."""
        raise InputError(
            "PairScorer.export is not supported, because Keras would trace a "
            "numeric input: use keras_lstm_dssm.export"
        )

    def _loss_of(self, data: tuple[Any, ...], training: bool) -> tf.Tensor:
        triples: HashedTriples = (
            data[0] if is_hashed(data) else self._hash(*data)
        )
        rows = triples.query.text_index
        scores = self._scoring.of_batches(
            triples.query._replace(text_index=tf.tile(rows, [2])),
            triples.document,
            training,
        )
        scores = tf.transpose(tf.reshape(scores, [2, -1]))
        labels = tf.broadcast_to(
            tf.constant([1, 0], scores.dtype), tf.shape(scores)
        )
        loss = self.compute_loss(y=labels, y_pred=scores, training=training)
        # Keras divides the loss by the number of replicas, for the sum of
        # their gradients.
        (mean_loss,) = (m for m in self.metrics if m.name == "loss")
        mean_loss.update_state(
            loss * replica_count(self), sample_weight=tf.size(rows)
        )
        self._accuracy.update_state(scores[:, 0] > scores[:, 1])
        return loss

    def _hashed(self, triples: tf.data.Dataset) -> tf.data.Dataset:
        """Hashes in the dataset, unless replicas divide its batches."""
        if replica_count(self) > 1:
            return triples
        return self._hash.dataset(triples)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        serialize = keras.saving.serialize_keras_object
        return {
            "name": self.name,
            "words": serialize(self.words),
            "matcher": serialize(self.matcher),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PairScorer":
        """Rebuilds the model with its layers."""
        deserialize = keras.saving.deserialize_keras_object
        layers = {key: deserialize(config[key]) for key in ("words", "matcher")}
        return cls(**{**config, **layers})

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns optimizer and loss, for saving; `None` without them."""
        if not self.compiled:
            return None
        serialize = keras.saving.serialize_keras_object
        return {
            "optimizer": serialize(self.optimizer),
            "loss": serialize(self.loss),
        }

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model as it was compiled when saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))

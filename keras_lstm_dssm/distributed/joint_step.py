"""`JointStep`, the exchange of rows, titles and gradients in a step."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.distributed.collectives import Collectives

_WORD = 32  # rows of a table in one integer of a packed set


class JointRows(NamedTuple):
    """The rows of one tower's tables that the workers' batches read.

    Attributes:
        rows: int32 `(rows,)`, ascending.
        position: int32 `(rows of the table,)`: where each of them is in
            `rows`.
    """

    rows: tf.Tensor
    position: tf.Tensor

    def place(self, gradient: tf.IndexedSlices) -> tf.Tensor:
        """Returns a gradient of distinct rows as one of `rows`."""
        index = tf.gather(self.position, gradient.indices)
        return tf.scatter_nd(
            index[:, tf.newaxis],
            gradient.values,
            [tf.size(self.rows), gradient.values.shape[1]],
        )


class JointTitles(NamedTuple):
    """The distinct titles of all workers' batches, the same on each worker.

    The titles of worker 0 come first, then those that only the others have.

    Attributes:
        index: int32 `(own titles,)`: where the distinct titles of this
            worker's batch are among those of all workers.
        given: int32 `(titles,)`: the titles of this worker's batch whose
            vectors it gives to all workers: those no earlier worker has.
        counts: How many titles each worker gives.
        clicked: int32 `(all rows,)`: the clicked title of each row of all
            workers' batches.
        first_row: Number of rows before those of this worker.
        share: Float scalar, this worker's rows as a share of all.
        log_q: float `(all titles,)`, see `log_q_of_distinct`; or `None`.
    """

    index: tf.Tensor
    given: tf.Tensor
    counts: list[tf.Tensor]
    clicked: tf.Tensor
    first_row: tf.Tensor
    share: tf.Tensor
    log_q: tf.Tensor | None


class JointStep:
    """Makes one training step of the batches of all workers.

    The workers' batches are one batch: documents of other workers are
    negatives, too, and each distinct document counts once. A step needs four
    collectives: the fingerprints of the titles, with the sets of rows to
    move to the look-ahead point; the vectors of the titles; the gradient of
    these vectors; and the sum of all gradients with the loss. The weights
    are equal to those of one process that has the whole batch, up to
    rounding, and bit-equal on all workers.

    Args:
        collectives: Exchanges tensors among the workers.
        batch_size: Rows of all workers' batches, at most.

    Attributes:
        stop_wanted: int32 variable; 1 asks all workers to stop.
        stops: int32 variable, above 0 after a step in which a worker asked.
    """

    def __init__(self, collectives: Collectives, batch_size: int) -> None:
        self.collectives = collectives
        self.cluster = collectives.cluster
        self.most_rows = self.cluster.share(batch_size, 0)
        self.stop_wanted = tf.Variable(0, trainable=False, dtype=tf.int32)
        self.stops = tf.Variable(0, trainable=False, dtype=tf.int32)

    def join(
        self,
        rows: Sequence[tf.Tensor],
        sizes: Sequence[int],
        fingerprints: tf.Tensor,
        clicked: tf.Tensor,
        candidates: int,
        log_q: tuple[tf.Tensor, tf.Tensor] | None = None,
    ) -> tuple[list[JointRows], JointTitles]:
        """Tells all workers what this worker's batch has.

        Args:
            rows: For each tower the rows of its tables that the batch reads,
                int `(r,)`, each once.
            sizes: For each tower the number of rows of its tables.
            fingerprints: int64 `(titles,)`, those of the distinct titles.
            clicked: int32 `(batch,)`: the clicked title of each row.
            candidates: Titles that each row of the batch has, at most.
            log_q: Sum and number of the `log_q` of each title, float
                `(titles,)`; see `log_q_of_distinct`.
        """
        packed = [
            _pack(rows_read, size)
            for rows_read, size in zip(rows, sizes, strict=True)
        ]
        most = self.most_rows * candidates
        columns = [tf.bitcast(fingerprints, tf.int32)]
        if log_q is not None:
            columns += [tf.bitcast(part, tf.int32)[:, None] for part in log_q]
        titles = tf.concat(columns, axis=1)
        width = titles.shape[1]
        counts = tf.stack(
            [tf.shape(titles)[0], tf.size(clicked), self.stop_wanted.value()]
        )
        parts = [
            counts,
            *packed,
            tf.pad(clicked, [[0, self.most_rows - tf.size(clicked)]]),
            tf.reshape(
                tf.pad(titles, [[0, most - tf.shape(titles)[0]], [0, 0]]), [-1]
            ),
        ]
        lengths = [tf.size(part) for part in parts]
        all_parts = tf.split(
            self.collectives.gather(tf.concat(parts, axis=0)), lengths, axis=1
        )
        counts, *sets, all_clicked, all_titles = all_parts
        self.stops.assign(tf.reduce_sum(counts[:, 2]))
        joint_rows = [
            _unpack(all_sets, size)
            for all_sets, size in zip(sets, sizes, strict=True)
        ]
        all_titles = tf.reshape(all_titles, [self.cluster.size, -1, width])
        return joint_rows, self._joint_titles(
            counts, all_clicked, all_titles, log_q is not None
        )

    def _joint_titles(
        self,
        counts: tf.Tensor,
        clicked: tf.Tensor,
        titles: tf.Tensor,
        with_log_q: bool,
    ) -> JointTitles:
        rank, size = self.cluster.rank, self.cluster.size
        numbers = tf.concat([titles[r, : counts[r, 0]] for r in range(size)], 0)
        keys = tf.bitcast(numbers[:, :2], tf.int64)
        # In order of first appearance: those of worker 0 come first.
        distinct, index = tf.unique(keys)
        first = tf.math.unsorted_segment_min(
            tf.range(tf.size(keys)), index, tf.size(distinct)
        )
        starts = tf.concat([[0], tf.cumsum(counts[:, 0])], axis=0)
        bounds = tf.searchsorted(first, starts)
        of_worker = tf.split(index, counts[:, 0], num=size)
        all_log_q = None
        if with_log_q:
            sums, numbers_of = (
                tf.math.unsorted_segment_sum(
                    tf.bitcast(numbers[:, column], tf.float32),
                    index,
                    tf.size(distinct),
                )
                for column in (2, 3)
            )
            all_log_q = tf.math.divide_no_nan(sums, numbers_of)
        return JointTitles(
            index=of_worker[rank],
            given=first[bounds[rank] : bounds[rank + 1]] - starts[rank],
            counts=tf.unstack(bounds[1:] - bounds[:-1], num=size),
            clicked=tf.concat(
                [
                    tf.gather(of_worker[r], clicked[r, : counts[r, 1]])
                    for r in range(size)
                ],
                axis=0,
            ),
            first_row=tf.reduce_sum(counts[:rank, 1]),
            share=counts[rank, 1] / tf.reduce_sum(counts[:, 1]),
            log_q=all_log_q,
        )

    def share_vectors(
        self, vectors: tf.Tensor, titles: JointTitles, trained: int
    ) -> tf.Tensor:
        """Gives the vectors of this worker's titles to all workers.

        Args:
            vectors: `(own titles, width)`.
            titles: The titles of all workers.
            trained: Number of columns, the first ones, that depend on
                trained weights; only their gradient is exchanged.

        Returns:
            `(all titles, width)`.
        """

        def gradient(error: tf.Tensor) -> tf.Tensor:
            error = tf.convert_to_tensor(error)
            own = self.collectives.sum_own_rows(
                error[:, :trained], titles.counts
            )
            own = tf.pad(own, [[0, 0], [0, vectors.shape[1] - trained]])
            return tf.scatter_nd(
                titles.given[:, tf.newaxis], own, tf.shape(vectors)
            )

        @tf.custom_gradient
        def forward(vectors: tf.Tensor) -> tuple[tf.Tensor, Any]:
            given = tf.gather(vectors, titles.given)
            return (
                self.collectives.gather_rows(given, titles.counts),
                gradient,
            )

        return forward(vectors)

    def sum_gradients(
        self,
        loss: tf.Tensor,
        gradients: Sequence[Any],
        rows: Sequence[JointRows | None],
    ) -> tuple[tf.Tensor, list[Any]]:
        """Adds the loss and the gradients of all workers, in one collective.

        Args:
            loss: Scalar.
            gradients: Tensors, `IndexedSlices` of distinct rows, or `None`.
            rows: For each gradient the rows of the table, or `None`.

        Returns:
            The sums; that of a table has the rows of `rows`.
        """
        dense = [
            gradient
            if gradient is None
            else joint.place(gradient)
            if joint is not None
            else tf.convert_to_tensor(gradient)
            for gradient, joint in zip(gradients, rows, strict=True)
        ]
        parts = [loss, *(part for part in dense if part is not None)]
        flat = tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0)
        sums = tf.split(
            self.collectives.sum(flat), [tf.size(part) for part in parts]
        )
        left = iter(
            tf.reshape(total, tf.shape(part))
            for total, part in zip(sums, parts, strict=True)
        )
        loss = next(left)
        summed: list[Any] = []
        for gradient, part, joint in zip(gradients, dense, rows, strict=True):
            if part is None:
                summed.append(None)
                continue
            total = next(left)
            total.set_shape(part.shape)
            if joint is not None:
                total = tf.IndexedSlices(
                    total, joint.rows, gradient.dense_shape
                )
            summed.append(total)
        return loss, summed


def _pack(rows: tf.Tensor, size: int) -> tf.Tensor:
    """Packs a set of rows into integers, a bit for each row of the table."""
    words = -(-size // _WORD)
    bits = tf.scatter_nd(
        rows[:, tf.newaxis],
        tf.ones_like(rows, tf.int32),
        [words * _WORD],
    )
    return tf.reduce_sum(tf.reshape(bits, [words, _WORD]) * _powers(), axis=1)


def _unpack(sets: tf.Tensor, size: int) -> JointRows:
    """Unpacks the union of sets, `(workers, integers)`."""
    union = functools.reduce(
        tf.bitwise.bitwise_or, tf.unstack(sets, num=sets.shape[0])
    )
    bits = tf.bitwise.bitwise_and(union[:, tf.newaxis], _powers())
    read = tf.reshape(bits, [-1])[:size] != 0
    rows = tf.cast(tf.where(read)[:, 0], tf.int32)
    return JointRows(rows, tf.cumsum(tf.cast(read, tf.int32)) - 1)


def _powers() -> tf.Tensor:
    return tf.bitwise.left_shift(tf.ones([_WORD], tf.int32), tf.range(_WORD))

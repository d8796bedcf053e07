"""`JointStep`: exchange of table rows, titles and gradients among workers."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.distributed.collectives import Collectives
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.pair_batch import HashedPairs
from keras_lstm_dssm.models.text_model import OneProcess
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.ops import custom_gradient

_BITS = 32  # number of bits of an int32, see `_pack_rows`


class JointRows(NamedTuple):
    """The rows of a tower's tables that at least one worker's batch reads."""

    rows: tf.Tensor  # indices of these rows, int32 `(rows,)`, ascending
    # int32 `(rows of the table,)`: for each row that is read, its index in
    # `rows`. Elements for other rows have no meaning.
    position: tf.Tensor

    def place(self, gradient: tf.IndexedSlices) -> tf.Tensor:
        """Converts a table's sparse gradient to a dense gradient of `rows`."""
        index = tf.gather(self.position, gradient.indices)
        return tf.scatter_nd(
            index[:, tf.newaxis],
            gradient.values,
            [tf.size(self.rows), gradient.values.shape[1]],
        )


class JointBatch(NamedTuple):
    """Table rows, titles and pairs of all workers' batches.

    All workers have the distinct titles in the same order: the titles of worker
    0, then those titles of worker 1 that worker 0 does not have, and so on.
    """

    rows: list[JointRows]  # for each tower, the table rows that batches read
    # int32: the titles that this worker contributes, as indices in this
    # worker's distinct titles. No worker of lower rank has these titles.
    contributed: tf.Tensor
    counts: list[tf.Tensor]  # the number of titles that each worker contributes
    # int32 `(all pairs,)`: index of each clicked title in all distinct titles
    clicked: tf.Tensor
    first_row: tf.Tensor  # index in `clicked` of this worker's first pair
    share: tf.Tensor  # float, this worker's share of the weights of all pairs


class JointStep(OneProcess):
    """Connects the training steps of all workers to one joint step.

    The negatives of a query come from the titles of all workers. A title counts
    once, even if several workers have it.

    Workers exchange data four times in a step: in `join`, in `share_titles`, in
    the gradient of `share_titles`, and in `sum`. The weights are bit-equal on
    all workers, and equal (up to rounding) to the weights of one process that
    trains on the whole batch.
    """

    def __init__(self, collectives: Collectives, batch_size: int) -> None:
        self.collectives = collectives
        self.cluster = collectives.cluster
        # Maximum number of a worker's pairs in a step. Worker 0 has the most.
        self.most_rows = self.cluster.share(batch_size, 0)
        # A worker sets `stop_wanted` to 1 to stop all workers. The next step
        # sets `stops` above 0 on all workers. Then all workers stop.
        self.stop_wanted = tf.Variable(0, trainable=False, dtype=tf.int32)
        self.stops = tf.Variable(0, trainable=False, dtype=tf.int32)

    def join(self, model: TwoTower, batch: HashedPairs) -> HashedPairs:
        """Joins the batch with the titles and table rows of other workers.

        In the returned batch, `candidates` and `log_q` refer to the distinct
        titles of all workers.
        """
        if batch.fingerprints is None:
            raise InputError(
                "the batches are hashed already, without the fingerprints that"
                " several workers need: give batches of strings"
            )
        texts = (batch.query, batch.document)
        sizes = [tower.trigrams.size for tower in model.towers]
        packed = [
            _pack_rows(words.trigrams, size)
            for words, size in zip(texts, sizes, strict=False)
        ]
        clicked = batch.candidates[:, 0]
        columns = [tf.bitcast(batch.fingerprints, tf.int32)]
        if batch.log_q is not None:
            columns += [
                tf.bitcast(log_q, tf.int32)[:, None] for log_q in batch.log_q
            ]
        title_keys = tf.concat(columns, axis=1)
        width = title_keys.shape[1]
        max_titles = self.most_rows * tf.shape(batch.candidates)[1]
        weights = batch.weights
        if weights is None:
            weights = tf.ones(tf.shape(clicked))
        total = tf.bitcast(tf.reduce_sum(weights), tf.int32)
        stop = self.stop_wanted.value()
        title_count = tf.shape(title_keys)[0]
        header = tf.stack([title_count, tf.size(clicked), stop, total])
        parts = [
            header,
            *packed,
            tf.pad(clicked, [[0, self.most_rows - tf.size(clicked)]]),
            tf.reshape(
                tf.pad(title_keys, [[0, max_titles - title_count], [0, 0]]),
                [-1],
            ),
        ]
        lengths = [tf.size(part) for part in parts]
        all_parts = tf.split(
            self.collectives.gather(tf.concat(parts, axis=0)), lengths, axis=1
        )
        headers, *sets, all_clicked, all_keys = all_parts
        self.stops.assign(tf.reduce_sum(headers[:, 2]))
        all_keys = tf.reshape(all_keys, [self.cluster.size, -1, width])
        rows = [
            _unpack_rows(all_sets, size)
            for all_sets, size in zip(sets, sizes, strict=True)
        ]
        return self._joined(batch, rows, headers, all_clicked, all_keys)

    def _joined(
        self,
        batch: HashedPairs,
        rows: list[JointRows],
        headers: tf.Tensor,
        clicked: tf.Tensor,
        title_keys: tf.Tensor,
    ) -> HashedPairs:
        rank, size = self.cluster.rank, self.cluster.size
        weights = tf.cast(tf.bitcast(headers[:, 3], tf.float32), tf.float64)
        columns = tf.concat(
            [title_keys[r, : headers[r, 0]] for r in range(size)], axis=0
        )
        keys = tf.bitcast(columns[:, :2], tf.int64)
        # `tf.unique` lists titles in order of their first occurrence, so the
        # titles of worker 0 come first.
        distinct, index = tf.unique(keys)
        first = tf.math.unsorted_segment_min(
            tf.range(tf.size(keys)), index, tf.size(distinct)
        )
        starts = tf.concat([[0], tf.cumsum(headers[:, 0])], axis=0)
        bounds = tf.searchsorted(first, starts)
        worker_titles = tf.split(index, headers[:, 0], num=size)
        log_q = None
        if batch.log_q is not None:
            log_q = tuple(
                tf.math.unsorted_segment_sum(
                    tf.bitcast(columns[:, column], tf.float32),
                    index,
                    tf.size(distinct),
                )
                for column in (2, 3)
            )
        return batch._replace(
            candidates=tf.gather(worker_titles[rank], batch.candidates),
            log_q=log_q,
            joint=JointBatch(
                rows,
                contributed=first[bounds[rank] : bounds[rank + 1]]
                - starts[rank],
                counts=tf.unstack(bounds[1:] - bounds[:-1], num=size),
                clicked=tf.concat(
                    [
                        tf.gather(worker_titles[r], clicked[r, : headers[r, 1]])
                        for r in range(size)
                    ],
                    axis=0,
                ),
                first_row=tf.reduce_sum(headers[:rank, 1]),
                share=weights[rank] / tf.reduce_sum(weights),
            ),
        )

    def share_titles(
        self, titles: Sequence[tf.Tensor], batch: HashedPairs
    ) -> Sequence[tf.Tensor]:
        """Returns the vectors of the distinct titles of all workers.

        `titles` (this worker's vectors) and the result are blocks of columns,
        see `TextEncoder.blocks`. Only the first block has a gradient.
        """
        if batch.joint is None:  # an evaluation does not join batches
            return titles
        contributed, counts = batch.joint.contributed, batch.joint.counts
        trained, *untrained = titles

        def gradient(*errors: tf.Tensor) -> tf.Tensor:
            error = tf.convert_to_tensor(errors[0])
            contributions = self.collectives.sum_own_rows(error, counts)
            return tf.scatter_nd(
                contributed[:, tf.newaxis], contributions, tf.shape(trained)
            )

        @custom_gradient
        def forward(trained: tf.Tensor) -> tuple[list[tf.Tensor], Any]:
            vectors = tf.concat([trained, *untrained], axis=1)
            contributions = tf.gather(vectors, contributed)
            shared = self.collectives.gather_rows(contributions, counts)
            widths = [block.shape[1] for block in titles]
            return tf.split(shared, widths, axis=1), gradient

        blocks: list[tf.Tensor] = forward(trained)
        return blocks

    def all_clicked(self, batch: HashedPairs) -> tuple[tf.Tensor, Any]:
        """Returns `clicked` and `first_row`, see `JointBatch`."""
        if batch.joint is None:
            return super().all_clicked(batch)
        return batch.joint.clicked, batch.joint.first_row

    def weigh(self, loss: tf.Tensor, batch: HashedPairs) -> tf.Tensor:
        """Multiplies the worker's mean loss by `share`, see `JointBatch`."""
        if batch.joint is None:
            return loss
        return loss * tf.cast(batch.joint.share, loss.dtype)

    def sum(
        self,
        model: TwoTower,
        batch: HashedPairs,
        loss: tf.Tensor,
        gradients: list[Any],
    ) -> tuple[tf.Tensor, list[Any]]:
        """Sums loss and gradients over the workers."""
        rows_of_table = {
            id(table): joint
            for tower, joint in zip(model.towers, batch.joint.rows, strict=True)
            for table in tower.tables
        }
        rows = [rows_of_table.get(id(v)) for v in model.trainable_variables]
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
        totals = iter(
            tf.reshape(total, tf.shape(part))
            for total, part in zip(sums, parts, strict=True)
        )
        loss = next(totals)
        summed: list[Any] = []
        for gradient, part, joint in zip(gradients, dense, rows, strict=True):
            if part is None:
                summed.append(None)
                continue
            total = next(totals)
            total.set_shape(part.shape)
            if joint is not None:
                total = tf.IndexedSlices(
                    total, joint.rows, gradient.dense_shape
                )
            summed.append(total)
        return loss, summed


def _pack_rows(rows: tf.Tensor, size: int) -> tf.Tensor:
    """Packs a set of row indices into int32 integers.

    If the set has row i, bit i % 32 of integer i // 32 is 1.
    """
    integers = -(-size // _BITS)
    bits = tf.scatter_nd(
        rows[:, tf.newaxis], tf.ones_like(rows, tf.int32), [integers * _BITS]
    )
    return tf.reduce_sum(
        tf.reshape(bits, [integers, _BITS]) * _powers(), axis=1
    )


def _unpack_rows(sets: tf.Tensor, size: int) -> JointRows:
    """Unpacks the union of packed sets, int32 `(workers, integers)`."""
    union = functools.reduce(
        tf.bitwise.bitwise_or, tf.unstack(sets, num=sets.shape[0])
    )
    bits = tf.bitwise.bitwise_and(union[:, tf.newaxis], _powers())
    is_read = tf.reshape(bits, [-1])[:size] != 0
    rows = tf.cast(tf.where(is_read)[:, 0], tf.int32)
    return JointRows(rows, tf.cumsum(tf.cast(is_read, tf.int32)) - 1)


def _powers() -> tf.Tensor:
    return tf.bitwise.left_shift(tf.ones([_BITS], tf.int32), tf.range(_BITS))

"""TaughtBatches: adds a teacher's vectors to batches of clicks."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.data.given_negatives import titles_of_batch
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.teacher.teacher_vectors import TeacherVectors, one_space
from keras_lstm_dssm.text.strings import as_strings


class TaughtBatches:
    """Adds the vectors of a teacher to batches, for the loss `Distillation`.

    The teacher's vector of a row is that of its query. A query that the
    teacher does not know, as a synthetic one made from a title, has the
    vector of its whole title. Texts that are not in `texts` have none, and
    the model learns nothing from the teacher for them.

    Args:
        teacher: The vectors.
        texts: Queries and titles as the batches have them.

    Raises:
        InputError: The teacher knows none of the texts.

    Example:
    >>> taught = TaughtBatches(TeacherVectors.open("TEACH"), texts)
    >>> model.fit(taught.attach(training_batches(log, 256, epochs=1, seed=0)))
    """

    def __init__(self, teacher: TeacherVectors, texts: Iterable[str]) -> None:
        # Files of synthetic pairs have single spaces where titles may not.
        given = dict.fromkeys(texts)
        keys = list(dict.fromkeys([*given, *map(one_space, given)]))
        rows = teacher.rows(keys)
        if not (rows >= 0).any():
            raise InputError(
                f"{teacher.folder or 'teacher'}: found the vector of none of"
                f" {len(given)} texts, expected those of the training data"
            )
        self._vectors = tf.constant(teacher.vectors)
        self._rows = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(as_strings(keys), rows), -1
        )

    def attach(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Adds `teacher` and `teacher_texts` to each batch.

        Args:
            batches: Dataset of `(query, document)`, or of `(query, document,
                {"negatives": strings [batch, k], ...})`.

        Returns:
            A dataset of `(query, document, {..., "teacher": float32
            [batch, 2 + k, d], "teacher_texts": int32 [batch, 2 + k]})`, see
            `teacher_cosines`.
        """

        def with_teacher(
            query: tf.Tensor,
            document: tf.Tensor,
            extras: dict[str, Any] | None = None,
        ) -> tuple[Any, ...]:
            extras = extras or {}
            titles = titles_of_batch(document, extras)
            of_titles = self._rows.lookup(titles)
            own = self._rows.lookup(query)
            own = tf.where(own < 0, of_titles[:, 0], own)
            rows = tf.concat([own[:, tf.newaxis], of_titles], axis=1)
            taught = {
                "teacher": tf.gather(self._vectors, tf.maximum(rows, 0)),
                "teacher_texts": rows,
            }
            return query, document, {**extras, **taught}

        return batches.map(with_teacher, tf.data.AUTOTUNE)

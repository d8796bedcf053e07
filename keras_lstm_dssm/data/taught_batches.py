"""Batches of clicks with the vectors of a teacher."""

from collections.abc import Iterable

import tensorflow as tf

from keras_lstm_dssm.data.batches import with_extras
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text.word_hashing import as_strings
from keras_lstm_dssm.text_files import one_line


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
        keys = list(dict.fromkeys([*given, *map(one_line, given)]))
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
        return with_extras(batches, self._vectors_of)

    def _vectors_of(
        self, query: tf.Tensor, titles: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        title_rows = self._rows.lookup(titles)
        query_rows = self._rows.lookup(query)
        query_rows = tf.where(query_rows < 0, title_rows[:, 0], query_rows)
        rows = tf.concat([query_rows[:, tf.newaxis], title_rows], axis=1)
        return {
            "teacher": tf.gather(self._vectors, tf.maximum(rows, 0)),
            "teacher_texts": rows,
        }

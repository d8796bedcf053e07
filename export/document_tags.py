"""DocumentTags: the tags of a retriever's documents, for exact filters."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.title_lines import MAX_TAGS
from lstm_dssm_client.texts import tags_as_bytes


class DocumentTags(tf.Module):
    """Holds which tags each document has.

    A document has a row of numbers of tags, as long as the most tags that a
    document has. A query's tags are compared with all distinct tags once, and
    then each document's numbers are looked up in the result: the time is
    proportional to the number of documents, as that of the search itself.

    Args:
        tags: The tags of each of n documents, 32 at most.

    Attributes:
        names: The distinct tags, string `[t]`, ascending.
        numbers: Their numbers in each document, int32 `[n, w]`; t where a
            document has fewer than w tags.
    """

    def __init__(self, tags: Sequence[Sequence[str]]) -> None:
        super().__init__()
        encoded = [[tag.encode() for tag in of_one] for of_one in tags]
        names = sorted({tag for of_one in encoded for tag in of_one})
        number = {name: index for index, name in enumerate(names)}
        width = max(map(len, encoded))
        numbers = np.full([len(encoded), width], len(names), np.int32)
        for row, of_one in enumerate(encoded):
            numbers[row, : len(of_one)] = [number[tag] for tag in of_one]
        self._width = width
        # Variables, not constants: a graph is limited to 2 GiB.
        self.names = tf.Variable(tf.constant(names, tf.string), trainable=False)
        self.numbers = tf.Variable(numbers, trainable=False)

    def matches(
        self, tags: tf.Tensor
    ) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        """Returns a function that says which documents queries may find.

        Args:
            tags: For each query tags that are separated by commas, string
                `[batch]`; white space around a tag is left out.

        Returns:
            A function from the first row of a block of documents and the row
            after it to booleans `[batch, block]`: whether the document has
            any of the query's tags, or the query has none.
        """
        asked = tf.strings.split(tags, ",")
        # The values are compared at once; each belongs to a row of `asked`.
        equal = tf.equal(
            tf.strings.strip(asked.values)[:, tf.newaxis],
            self.names[tf.newaxis, :],
        )
        batch = tf.shape(tags)[0]
        found = tf.math.unsorted_segment_max(
            tf.cast(equal, tf.int32), asked.value_rowids(), batch
        )
        # One more column, of the number that stands for no tag. The maximum
        # of no values is the lowest number.
        has = tf.pad(found > 0, [[0, 0], [0, 1]])
        any_document = tf.equal(tf.strings.strip(tags), "")[:, tf.newaxis]

        def allowed(start: tf.Tensor, stop: tf.Tensor) -> tf.Tensor:
            block = self.numbers[start:stop]
            matching = tf.logical_or(
                any_document, tf.zeros([1, stop - start], tf.bool)
            )
            # One number after the other: [batch, block, w] may be large.
            for column in range(self._width):
                matching |= tf.gather(has, block[:, column], axis=1)
            return matching

        return allowed


def check_tags(tags: Sequence[Sequence[str]], count: int) -> None:
    """Checks the tags of documents, of which there may be none.

    Raises:
        InputError: There are tags, but not for each of `count` documents; a
            document has more than 32; or a tag is blank, or has a comma, a tab
            or a line break.
    """
    if len(tags) not in (0, count):
        raise InputError(
            f"found tags of {len(tags)} documents, expected those of {count}:"
            " give an empty list to each document without tags"
        )
    for row, of_one in enumerate(tags):
        if len(of_one) > MAX_TAGS:
            raise InputError(
                f"document {row} has {len(of_one)} tags, expected {MAX_TAGS}"
                " at most"
            )
        tags_as_bytes(of_one)

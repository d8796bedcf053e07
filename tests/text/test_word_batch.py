import hypothesis.strategies as st
import numpy as np
import tensorflow as tf
from hypothesis import given, settings

from keras_lstm_dssm import LetterTrigrams
from keras_lstm_dssm.text import WordBatch, distinct_words

TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "Go", "good", "上海", "x\0", ""])).map(
        " ".join
    )
)


def rebuilt(batch: WordBatch) -> list[list[list[int]]]:
    """The trigrams of each word of each row, out of a batch."""
    trigrams = batch.trigrams.numpy()[batch.trigram_index]
    words = [
        trigrams[batch.word_index == place].tolist()
        for place in range(len(np.unique(batch.word_index)))
    ]
    return [
        [words[word] for word in batch.words[text, : batch.lengths[text]]]
        for text in batch.text_index.numpy()
    ]


@settings(max_examples=25, deadline=None)
@given(TEXTS, st.sampled_from([0, 8192]), st.sampled_from([None, 2]))
def test_holds_what_letter_trigrams_gives(
    texts: list[str], oov_buckets: int, max_words: int | None
) -> None:
    batch = distinct_words(
        tf.constant(texts, tf.string), oov_buckets, max_words
    )
    layer = LetterTrigrams("ascii", oov_buckets, max_words)
    assert rebuilt(batch) == layer(texts).to_list()


def test_holds_each_distinct_thing_once() -> None:
    batch = distinct_words(tf.constant(["go good", "go", "go good", "", "GO"]))
    assert len(set(batch.trigrams.numpy())) == len(batch.trigrams) == 6
    assert batch.words.numpy().tolist() == [[0, 1], [0, 0], [2, 0], [0, 0]]
    assert batch.lengths.numpy().tolist() == [2, 1, 1, 1]
    assert batch.text_index.numpy().tolist() == [0, 1, 0, 2, 3]
    assert batch.word_index.numpy().tolist() == [0, 0, 1, 1, 1, 1, 2]
    assert {field.dtype for field in batch} == {tf.int32}


def test_of_no_texts_has_one_time_step_and_no_rows() -> None:
    batch = distinct_words(tf.constant([], tf.string))
    assert [field.shape.as_list() for field in batch] == [
        [0], [0], [0], [0, 1], [0], [0],
    ]  # fmt: skip

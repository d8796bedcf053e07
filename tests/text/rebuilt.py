"""What a `WordBatch` holds, as `LetterTrigrams` lists it."""

import numpy as np

from keras_lstm_dssm.text import WordBatch


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

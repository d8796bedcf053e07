"""The flags for the recipe of a KeyVec, and for its salient sentences."""

from absl import flags

from keras_lstm_dssm.command_line import definers
from keras_lstm_dssm.settings.choices import DEFAULT_SALIENCE, KEY_WORDS_OF

_LEAST = 1e-9  # absl's bounds are inclusive
_MOST = 1e30  # absl's bounds let NaN pass; float32 overflows at 3e38

KEYVEC_FLAGS = (
    "word_dimension", "max_words", "max_sentences", "min_count",
    "vocabulary_size", "skip_gram", "skip_gram_epochs", "key_words_of",
    "key_word_start", "filters", "units", "dimension",
    "read_weight", "word_weight", "dropout", "normalize",
    "excerpt", "decay",
)  # fmt: skip
"""Names of flags that set the attribute of the same name of a `KeyVecRecipe`.
The flags of all recipes, such as `--epochs`, are defined elsewhere."""


def define_keyvec_flags(values: flags.FlagValues) -> None:
    """Defines the flags of a KeyVec; pair scorers use some of them, too."""
    text, whole, real, switch, choice, _ = definers(values)
    text(
        "salience", None,
        "KeyVec: what finds the salient sentences of a document, which the "
        "model learns to recognise: `bm25`, `trigrams` or, as in the paper, a "
        "trained encoder (folder of a run of two towers) compare them with "
        f"the summary; `lead` takes the first. Default: {DEFAULT_SALIENCE}.",
    )  # fmt: skip
    whole(
        "word_dimension", None,
        "KeyVec, pair scorers: width of the word vectors.", 1,
    )  # fmt: skip
    whole("max_words", None, "KeyVec: words to read of each sentence.", 1)
    whole(
        "max_sentences", None, "KeyVec: sentences to read of each document.", 1
    )
    whole(
        "min_count", None,
        "KeyVec, pair scorers: occurrences in the training texts from which a "
        "word is in the vocabulary.", 1,
    )  # fmt: skip
    whole(
        "vocabulary_size", None,
        "KeyVec: largest number of words in the vocabulary.", 1,
    )  # fmt: skip
    switch(
        "skip_gram", None,
        "KeyVec, pair scorers: start words from skip-gram vectors of the "
        "training texts.",
    )  # fmt: skip
    whole(
        "skip_gram_epochs", None,
        "KeyVec, pair scorers: passes over the training texts for these "
        "vectors.", 1,
    )  # fmt: skip
    choice(
        "key_words_of", None, list(KEY_WORDS_OF),
        "KeyVec: whether key words are those of the summary, as in the paper, "
        "or of all the text of a document.",
    )  # fmt: skip
    real(
        "key_word_start", None,
        "KeyVec: length of the skip-gram vectors that are the initial weights "
        "of key words (extra [baselines]); 0 for random initial weights.",
        0.0, _MOST,
    )  # fmt: skip
    whole(
        "filters", None, "KeyVec: filters of each window of the convolution.", 1
    )
    whole("units", None, "KeyVec: width of the LSTM of each direction.", 1)
    whole("dimension", None, "KeyVec: width of the documents' vectors.", 1)
    real(
        "read_weight", None,
        "KeyVec: factor of the loss of salient sentences, L_read.", 0.0, _MOST,
    )  # fmt: skip
    real(
        "word_weight", None,
        "KeyVec: factor of the loss of key words, L_enc.", 0.0, _MOST,
    )  # fmt: skip
    real(
        "dropout", None,
        "KeyVec: share of the numbers of the sentences' vectors that a "
        "training step sets to 0.", 0.0, 1 - _LEAST,
    )  # fmt: skip
    switch(
        "normalize", None,
        "KeyVec: both parts of the loss are means over sentences and over key "
        "words, and not sums.",
    )  # fmt: skip
    whole(
        "excerpt", None,
        "KeyVec: largest number of sentences of the excerpts of documents "
        "that are learnt, drawn anew in each epoch; 0 for whole documents.", 0,
    )  # fmt: skip
    switch(
        "decay", None,
        "KeyVec: the learning rate falls to 0 over the training, along half a "
        "cosine.",
    )  # fmt: skip

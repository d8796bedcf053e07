"""KeyVecRecipe: the configuration of a `KeyVec` and of its training."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.base_recipe import (
    is_number,
    seeded_initializers,
)
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.words_recipe import WordsRecipe
from keras_lstm_dssm.settings import presets
from keras_lstm_dssm.settings.choices import KEY_WORDS_OF, WORDS


@dataclasses.dataclass(frozen=True)
class KeyVecRecipe(WordsRecipe):
    """Holds all that determines the trained weights, but data and seed.

    The counterpart of `Recipe` for `KeyVec`. Widths are those of Bi and Ma
    2017 where the paper gives them: 150 for sentences, 100 for documents.

    Attributes:
        words: `"vocabulary"`, one vector for each word of the training
            documents (the paper's); `"stems"`, one for all forms of a word,
            without their English endings; or `"trigrams"`, the sum of the
            vectors of a word's letter trigrams, which reads any word.
        word_dimension: Width of the word vectors.
        max_words: Number of words to read of each sentence.
        max_sentences: Number of sentences to read of each document.
        min_count: Occurrences in the training documents from which a word is
            in the vocabulary of the documents and of key words; and a stem in
            that of the stems.
        vocabulary_size: Largest number of words of the vocabulary, the most
            frequent ones.
        skip_gram: Whether the words of a vocabulary start from skip-gram
            vectors of the training documents (the paper's), or from random
            ones.
        skip_gram_epochs: Passes over the training documents for these
            vectors.
        key_words_of: The text whose words of highest TF-IDF are a document's
            key words: `"summary"` (the paper's), or `"document"`, sentences
            and summary, so that a document without a summary has some, too.
        key_word_start: Factor of the initial weights W_v of the key words:
            their skip-gram vectors, scaled to unit length, less the mean of
            all. 0 for random initial weights; the paper gives none.
        filters: Number of filters of each window of the convolution.
        windows: Numbers of words in a window.
        units: Width of the LSTM of each direction.
        dimension: Width of the documents' vectors.
        weighted: Whether sentences are weighted by p_i; with `False` all p_i
            are 1.
        read_weight: Factor of L_read; 0 leaves it out.
        word_weight: Factor of L_enc; 0 leaves it out.
        dropout: Share of the numbers of the sentences' vectors that a
            training step sets to 0.
        normalize: Whether the parts of the loss are means over sentences and
            over key words, and not sums.
        excerpt: Largest number of sentences of the excerpts that are learnt,
            see `DocumentExamples.batches`; 0 for whole documents (the
            paper's).
        learning_rate: Learning rate of Adam.
        decay: Whether the learning rate falls to 0 over all training steps,
            along half a cosine (Loshchilov and Hutter 2017,
            https://arxiv.org/abs/1608.03983), or stays.
        epochs: Passes over the documents.
        patience: Epochs without a smaller validation loss after which the
            training stops, and the best epoch is the model; 0 trains all
            epochs, and the last one is the model.
        batch_size: Documents in a batch.

    Raises:
        InputError: A value is out of range.

    Example:
    >>> recipe = KEYVEC_PRESETS["keyvec"].replace(dimension=50)
    >>> recipe.build(vocabulary=["hat", "red"]).dimension
    50
    """

    words: str = "vocabulary"
    word_dimension: int = 100
    max_words: int = 60
    max_sentences: int = 250
    min_count: int = 5
    vocabulary_size: int = 30_000
    skip_gram: bool = True
    skip_gram_epochs: int = 5
    key_words_of: str = "summary"
    key_word_start: float = 0.0
    filters: int = 50
    windows: Sequence[int] = (3, 4, 5)
    units: int = 100
    dimension: int = 100
    weighted: bool = True
    read_weight: float = 1.0
    word_weight: float = 1.0
    dropout: float = 0.0
    normalize: bool = False
    excerpt: int = 0
    learning_rate: float = 0.001
    decay: bool = False
    epochs: int = 40
    patience: int = 0
    batch_size: int = 32

    def __post_init__(self) -> None:
        self._check_choice("words", WORDS)
        self._check_choice("key_words_of", KEY_WORDS_OF)
        self._check_positive("learning_rate")
        self._check_whole_numbers()
        self._check_flags()
        for name in ("key_word_start", "read_weight", "word_weight"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < float("inf"):
                raise InputError(
                    f"{name} is {value!r}: expected a finite number of 0 or "
                    "more"
                )
        if not is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise InputError(
                f"dropout is {self.dropout!r}: expected a number of 0 or more, "
                "below 1"
            )
        if not self.windows or not all(
            type(width) is int and width > 0 for width in self.windows
        ):
            raise InputError(
                f"windows is {self.windows!r}: expected whole numbers of 1 or "
                "more"
            )
        # A recipe that was read from JSON has a list, and is equal.
        object.__setattr__(self, "windows", tuple(self.windows))

    def build(
        self,
        seed: int = 0,
        vocabulary: Sequence[str] = (),
        vectors: np.ndarray | None = None,
        stems: Sequence[str] = (),
    ) -> KeyVec:
        """Makes the model, not yet compiled.

        Args:
            seed: Seed of the weights, default 0.
            vocabulary: The words that can be key words, see `vocabulary_of`;
                with `words="vocabulary"` also those that are read.
            vectors: The vectors of the words or stems that are read, `[words,
                word_dimension]`, such as those of `skip_gram_vectors`.
                Default `None` for a random start; not used with
                `words="trigrams"`.
            stems: The stems that are read, for `words="stems"`; see
                `vocabulary_of`. Each word of `vocabulary` must have another
                one; it stands for all words of that stem.

        Raises:
            InputError: The vocabulary is missing or wrong.
        """
        with seeded_initializers(seed):
            return KeyVec(
                self._new_words(
                    stems if self.words == "stems" else vocabulary, vectors
                ),
                None if self.words == "vocabulary" else vocabulary,
                self.filters,
                self.windows,
                self.units,
                self.dimension,
                self.weighted,
                self.dropout,
                self.max_sentences,
                seed,
            )


KEYVEC_PRESETS: dict[str, KeyVecRecipe] = {
    name: KeyVecRecipe(**settings)
    for name, settings in presets.KEYVEC_PRESETS.items()
}
"""Name -> recipe: KeyVec, learnt from excerpts; the same with key words of all
the text; KeyVec with the loss as printed, learnt from whole documents; and
what is left of `keyvec` without L_read, without L_enc, and with a p_i of 1
for all sentences."""

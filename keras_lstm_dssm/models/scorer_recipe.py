"""ScorerRecipe: the configuration of a pair scorer and of its training."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm import matchers
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.base_recipe import (
    check_arguments,
    classes_of,
    seeded_initializers,
)
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.words_recipe import WordsRecipe
from keras_lstm_dssm.settings import presets
from keras_lstm_dssm.settings.choices import WORDS


@dataclasses.dataclass(frozen=True)
class ScorerRecipe(WordsRecipe):
    """Holds all that determines the trained weights, but data and seed.

    The counterpart of `Recipe` for `PairScorer`. Wan et al. 2016 is the
    source of the defaults.

    Attributes:
        matcher: Name of the matcher class, such as `"MVLSTM"`.
        matcher_config: Arguments of the matcher, without `word_dimension`.
        words: `"vocabulary"`, one vector for each word of the training texts
            (the paper's); `"stems"`, one for all forms of a word, without
            their English endings; or `"trigrams"`, the sum of the vectors of
            a word's letter trigrams, which needs no vocabulary and reads any
            word.
        word_dimension: Width of the word vectors.
        max_words: Number of words to read of each text.
        min_count: Occurrences in the training texts from which a word is in
            the vocabulary.
        skip_gram: Whether the words of a vocabulary start from skip-gram
            vectors of the training texts (the paper's), or from random ones.
        skip_gram_epochs: Passes over the training texts for these vectors.
            The paper trained them on corpora of many million words; on few
            texts, gensim's default of 5 passes leaves them near their start.
        margin: Margin of `PairwiseHinge`.
        learning_rate: Learning rate of `Adagrad`.
        epochs: Passes over the triples.
        batch_size: Triples in a batch.
        mined_negatives: Negatives that are mined for each query of a click
            log, see `Triples.from_clicks`. Judged lists have their own.

    Raises:
        InputError: A value is out of range.

    Example:
    >>> recipe = SCORER_PRESETS["mv_lstm_tensor"].replace(words="trigrams")
    >>> recipe.build().matcher.k
    5
    """

    matcher: str = "MVLSTM"
    matcher_config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    words: str = "vocabulary"
    word_dimension: int = 50
    max_words: int = 50
    min_count: int = 1
    skip_gram: bool = True
    skip_gram_epochs: int = 30
    margin: float = 1.0
    learning_rate: float = 0.03
    epochs: int = 7
    batch_size: int = 128
    mined_negatives: int = 4

    def __post_init__(self) -> None:
        self._check_choice("matcher", classes_of(matchers, matchers.Matcher))
        self._check_choice("words", WORDS)
        check_arguments(
            getattr(matchers, self.matcher),
            matchers.Matcher,
            "matcher_config",
            self.matcher_config,
            ("word_dimension",),
        )
        self._check_positive("margin")
        self._check_positive("learning_rate")
        self._check_flags()
        self._check_whole_numbers()
        if self.matcher == "DeepMatch" and self.words == "trigrams":
            raise InputError(
                "DeepMatch reads the words of a vocabulary: expected words="
                "'vocabulary' or 'stems', found 'trigrams'"
            )

    def with_matcher(self, **config: Any) -> "ScorerRecipe":
        """Returns a copy with some arguments of the matcher changed.

        Example:
        >>> SCORER_PRESETS["mv_lstm_cosine"].with_matcher(k=1).matcher_config
        {'interaction': 'cosine', 'k': 1}
        """
        return self.replace(matcher_config={**self.matcher_config, **config})

    def build(
        self,
        seed: int = 0,
        vocabulary: Sequence[str] = (),
        vectors: np.ndarray | None = None,
    ) -> PairScorer:
        """Makes the model, not pre-trained or compiled.

        Args:
            seed: Seed of the weights, default 0.
            vocabulary: The words or stems, see `vocabulary_of`; not used for
                trigrams.
            vectors: Their vectors, `[words, word_dimension]`, such as those
                of `skip_gram_vectors`. Default `None` for a random start.

        Raises:
            InputError: The vocabulary is missing or wrong.
        """
        with seeded_initializers(seed):
            words = self._new_words(vocabulary, vectors)
            matcher = getattr(matchers, self.matcher)(
                self.word_dimension, name="matcher", **self.matcher_config
            )
        return PairScorer(words, matcher, seed)


SCORER_PRESETS: dict[str, ScorerRecipe] = {
    name: ScorerRecipe(**settings)
    for name, settings in presets.SCORER_PRESETS.items()
}
"""Name -> recipe: MV-LSTM and the models that Wan et al. 2016 compare it with.
A name that ends with `_wan` is the smaller form that they ran; without, that
of the model's own paper."""

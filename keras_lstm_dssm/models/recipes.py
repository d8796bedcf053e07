"""Recipes, the settings of a model and of its training, and the presets."""

import dataclasses
import inspect
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from keras_lstm_dssm import encoders, matchers
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.word_vectors import (
    TrigramVectors,
    VocabularyVectors,
)
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings import presets
from keras_lstm_dssm.settings.choices import (
    KEY_WORDS_OF,
    NEGATIVES,
    TOWERS,
    WORDS,
)
from keras_lstm_dssm.settings.presets import TOWER_PRESETS

_Self = TypeVar("_Self", bound="BaseRecipe")


@dataclasses.dataclass(frozen=True)
class BaseRecipe:
    """Base of the recipes: copies with changes, JSON values and checks.

    A recipe is a frozen dataclass. Its constructor raises `InputError` for a
    value that is out of the bounds that `setting` declares.
    """

    def replace(self: _Self, **changes: Any) -> _Self:
        """Returns a copy with some values changed.

        Args:
            **changes: Attribute -> value.

        Raises:
            InputError: There is no such attribute, or a value is wrong.
        """
        names = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in names:
                raise InputError(
                    f"a recipe has no {name!r}: expected one of "
                    f"{', '.join(sorted(names))}"
                )
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns the values as a dict that can be written as JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[_Self], values: Mapping[str, Any]) -> _Self:
        """Makes a recipe from the result of `to_dict`.

        Raises:
            InputError: A name is unknown, or a value is wrong.
        """
        return cls().replace(**values)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_allowed, expected = _check(field, value)
            if not is_allowed:
                raise InputError(
                    f"{field.name} is {value!r}: expected {expected}"
                )


def setting(default: Any, **bounds: Any) -> Any:
    """Declares a field of a recipe with its default and its bounds.

    Args:
        default: The default.
        **bounds: `choices`, the names allowed; or for a float `above=0`,
            `least=0`, or `below=1` (from 0) and `expected`, what the error
            says; `optional=True` allows `None`. A bool and an int need none:
            the least int is 0 if that is the default, else 1.
    """
    return dataclasses.field(default=default, metadata=bounds)


_SHARE = {"below": 1, "expected": "0 or more, and less than 1"}


def _check(field: dataclasses.Field[Any], value: Any) -> tuple[bool, str]:
    """Returns whether a field may have a value, and what it must be."""
    bounds = field.metadata
    is_number = isinstance(value, int | float) and type(value) is not bool
    if "choices" in bounds:
        choices = bounds["choices"]
        return value in choices, f"one of {', '.join(choices)}"
    if field.type is bool:
        return type(value) is bool, "True or False"
    if field.type is int:
        least = 0 if field.default == 0 else 1
        is_allowed = type(value) is int and value >= least
        return is_allowed, f"a whole number of {least} or more"
    if "below" in bounds:
        is_allowed = is_number and 0 <= value < bounds["below"]
        return is_allowed, bounds["expected"]
    if "least" in bounds:
        is_allowed = is_number and 0 <= value < float("inf")
        return is_allowed, "a finite number of 0 or more"
    if "above" in bounds:
        is_allowed = is_number and 0 < value < float("inf")
        if value is None and "optional" in bounds:
            is_allowed = True
        return is_allowed, "a finite number above 0"
    return True, ""


def classes_of(module: ModuleType, base: type) -> list[str]:
    """Lists the public classes of a module that a recipe can name.

    Args:
        module: The module, such as `keras_lstm_dssm.encoders`.
        base: Their base class, which is not one of them.
    """
    return [
        name
        for name in module.__all__
        if isinstance(made := getattr(module, name), type)
        and issubclass(made, base)
        and made is not base
    ]


def check_arguments(
    made: type, base: type, name: str, config: Any, without: Collection[str]
) -> None:
    """Checks that a class has the arguments of a configuration.

    Args:
        made: The class, whose constructors up to `base` are looked at.
        base: The base class of all such classes.
        name: What the configuration is called in the message.
        config: Argument -> value.
        without: Arguments that a recipe sets itself.

    Raises:
        InputError: `config` is no mapping, or has an unknown argument.
    """
    known = {"dtype", "trainable"}
    for each in made.__mro__:
        if issubclass(each, base):
            known.update(inspect.signature(each.__init__).parameters)
    known -= {"self", "kwargs", "name", *without}
    if not isinstance(config, Mapping) or not known.issuperset(config):
        raise InputError(
            f"{name} is {config!r}: expected arguments of {made.__name__}, "
            f"which are {', '.join(sorted(known))}"
        )


@contextmanager
def seeded_initializers(seed: int) -> Iterator[None]:
    """Makes all weights that are created meanwhile a function of `seed`."""
    # An initializer without a seed draws one from Python's own generator.
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


class WordsRecipe(BaseRecipe):
    """Base of `ScorerRecipe` and `KeyVecRecipe`: makes the word vectors.

    Attributes:
        words: `"vocabulary"`, one vector for each word of the training texts;
            `"stems"`, one for all forms of a word, see `stem_words`; or
            `"trigrams"`, the sum of the vectors of a word's letter trigrams.
        word_dimension: Width of the word vectors.
        max_words: Number of words to read of each text.
    """

    words: str
    word_dimension: int
    max_words: int

    @property
    def split(self) -> str:
        """The rule that separates words, see `normalize_texts`."""
        return "stems" if self.words == "stems" else "alphanumeric"

    def _new_words(
        self, vocabulary: Sequence[str], vectors: np.ndarray | None
    ) -> VocabularyVectors | TrigramVectors:
        """Makes the layer that turns texts into word vectors.

        Args:
            vocabulary: The words or stems; not used for trigrams.
            vectors: Their vectors, `[words, word_dimension]`; `None` for a
                random start.

        Raises:
            InputError: The vocabulary is missing or wrong.
        """
        options: dict[str, Any] = {
            "dimension": self.word_dimension,
            "max_words": self.max_words,
            "name": "words",
        }
        if self.words == "trigrams":
            return TrigramVectors(**options)
        words = VocabularyVectors(vocabulary, split=self.split, **options)
        if vectors is not None:
            words.set_vectors(vectors)
        return words


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

    words: str = setting("vocabulary", choices=WORDS)
    word_dimension: int = 100
    max_words: int = 60
    max_sentences: int = 250
    min_count: int = 5
    vocabulary_size: int = 30_000
    skip_gram: bool = True
    skip_gram_epochs: int = 5
    key_words_of: str = setting("summary", choices=KEY_WORDS_OF)
    key_word_start: float = setting(0.0, least=0)
    filters: int = 50
    windows: Sequence[int] = (3, 4, 5)
    units: int = 100
    dimension: int = 100
    weighted: bool = True
    read_weight: float = setting(1.0, least=0)
    word_weight: float = setting(1.0, least=0)
    dropout: float = setting(
        0.0, below=1, expected="a number of 0 or more, below 1"
    )
    normalize: bool = False
    excerpt: int = 0
    learning_rate: float = setting(0.001, above=0)
    decay: bool = False
    epochs: int = 40
    patience: int = 0
    batch_size: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
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


@dataclasses.dataclass(frozen=True)
class Recipe(BaseRecipe):
    """Holds all that determines the trained weights, but data and seed.

    `dssm.train`, `lstm-dssm-train` and the benchmarks train from a recipe,
    and `config.json` of a run folder holds it: equal recipes, data and seeds
    give equal weights in all of them. Palangi et al. 2016 is the source of
    the defaults: separate parameters, 4 random negatives, the momentum 0.9 /
    0.995 / 0.9 of section IV.

    Attributes:
        encoder: Name of the encoder class, such as `"LSTMEncoder"`.
        encoder_config: Arguments of both encoders.
        document_encoder_config: Arguments of the document encoder that
            override `encoder_config`; unused with tied towers.
        towers: `"equal_start"`, two encoders with their own parameters that
            start from the same random weights, so that texts which share
            trigrams are similar before any training; `"separate"`, two
            encoders with different random weights; or `"tied"`, one encoder
            for queries and documents.
        negatives: `"random"` (the paper's) or `"in_batch"`, see `TwoTower`.
        n: Number of random negatives for a query.
        gamma: Scale of the cosines in `CosineSoftmax`.
        learning_rate: The fixed epsilon of (6).
        threshold: Norm above which the gradient of a tower is scaled down to
            it, th_G of Algorithm 1; `None` for no limit.
        momentum_ends: Momentum mu in the first and the last training steps.
        momentum_middle: Momentum mu in the training steps in between.
        momentum_fraction: Share of all training steps in the first part, and
            also in the last part.
        epochs: Passes over the training pairs.
        batch_size: Pairs in a batch.
        shuffle_buffer: Pairs held in memory to be shuffled, see
            `data.training_batches`.
        title_pairs: Synthetic pairs from each title to train on beside the
            clicks, see `data.title_pairs`.
        hard_negatives: Mined negatives for each click, see `HardNegatives`.
        mine_every: Epochs between two minings.
        mine_top: Number of nearest documents that mined negatives are drawn
            from.
        mine_clusters: Clusters of titles that a query is compared with in
            mining; 0 for all titles, see `mine_negatives`.
        judged_negatives: Negatives for each click from the documents that
            were judged not relevant; they replace the mined ones.
        logq: Whether in-batch scores are corrected for how often each title
            is clicked, see `ClickFrequencies`.
        patience: Evaluations on dev without a better figure after which the
            training stops, if there is dev; 0 trains all epochs.
        teacher_weight: With a teacher: the weight of its part of the loss,
            see `Distillation`.
        teacher_temperature: With a teacher: what its cosines are divided by.
        teacher_gamma: With a teacher: scale of the model's cosines that are
            compared with the teacher's.

    Raises:
        InputError: A value is out of range, or two of them exclude each
            other.

    Example:
    >>> recipe = PRESETS["lstm_96"].replace(negatives="in_batch", epochs=8)
    >>> Recipe.from_dict(recipe.to_dict()) == recipe
    True
    """

    encoder: str = setting(
        "LSTMEncoder", choices=classes_of(encoders, encoders.TextEncoder)
    )
    encoder_config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    document_encoder_config: Mapping[str, Any] = dataclasses.field(
        default_factory=dict
    )
    towers: str = setting("equal_start", choices=TOWERS)
    negatives: str = setting("random", choices=NEGATIVES)
    n: int = 4
    gamma: float = setting(10.0, above=0)
    learning_rate: float = setting(0.1, above=0)
    threshold: float | None = setting(1.0, above=0, optional=True)
    momentum_ends: float = setting(0.9, **_SHARE)
    momentum_middle: float = setting(0.995, **_SHARE)
    momentum_fraction: float = setting(0.02, **_SHARE)
    epochs: int = 5
    batch_size: int = 256
    shuffle_buffer: int = 100_000
    title_pairs: int = 0
    hard_negatives: int = 0
    mine_every: int = 2
    mine_top: int = 30
    mine_clusters: int = 0
    judged_negatives: int = 0
    logq: bool = False
    patience: int = 0
    teacher_weight: float = setting(4.0, above=0)
    teacher_temperature: float = setting(0.05, above=0)
    teacher_gamma: float = setting(16.0, above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("encoder_config", "document_encoder_config"):
            check_arguments(
                getattr(encoders, self.encoder),
                encoders.TextEncoder,
                name,
                getattr(self, name),
                (),
            )
        if self.hard_negatives and self.judged_negatives:
            raise InputError(
                "hard_negatives and judged_negatives are both set: expected "
                "one of them; set the other to 0"
            )
        if self.logq and self.negatives != "in_batch":
            raise InputError(
                "logq corrects in-batch negatives, but negatives is "
                f"{self.negatives!r}: set negatives to 'in_batch'"
            )

    def replace(self, **changes: Any) -> "Recipe":
        """Returns a copy with some values changed.

        Args:
            **changes: Attribute -> value. Judged negatives replace mined
                ones, so that setting the first alone clears the second.

        Raises:
            InputError: There is no such attribute, or a value is wrong.
        """
        if changes.get("judged_negatives"):
            changes.setdefault("hard_negatives", 0)
        return super().replace(**changes)

    def with_encoder(self, **config: Any) -> "Recipe":
        """Returns a copy with some arguments of both encoders changed.

        Example:
        >>> PRESETS["lstm_96"].with_encoder(oov_buckets=8192).encoder_config
        {'cells': 96, 'oov_buckets': 8192}
        """
        return self.replace(encoder_config={**self.encoder_config, **config})

    def build(self, seed: int = 0) -> TwoTower:
        """Makes the model with random weights, not adapted or compiled.

        Args:
            seed: Seed of the weights and of the random negatives, default 0.
        """
        make = getattr(encoders, self.encoder)
        config = dict(self.encoder_config)
        with seeded_initializers(seed):
            if self.towers == "tied":
                query = document = make(name="encoder", **config)
            else:
                query = make(name="query_encoder", **config)
                config.update(self.document_encoder_config)
                document = make(name="document_encoder", **config)
        if self.towers == "equal_start":
            document.set_weights(query.get_weights())
        return TwoTower(query, document, self.negatives, self.n, seed)


PRESETS: dict[str, Recipe] = {
    name: Recipe(**settings) for name, settings in TOWER_PRESETS.items()
}
"""Name -> recipe: the systems of the paper's Table IV with its sizes; `best`,
chosen on the dev splits of four data sets (docs/results/best.md), where it is
above BM25 on two, level on homedepot and below on wikiqa, whose clicks are
few; and `taught`, for training with a teacher, chosen on wikiqa, where it is
above `best` and below BM25 (docs/results/few_clicks.md)."""


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

    matcher: str = setting(
        "MVLSTM", choices=classes_of(matchers, matchers.Matcher)
    )
    matcher_config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    words: str = setting("vocabulary", choices=WORDS)
    word_dimension: int = 50
    max_words: int = 50
    min_count: int = 1
    skip_gram: bool = True
    skip_gram_epochs: int = 30
    margin: float = setting(1.0, above=0)
    learning_rate: float = setting(0.03, above=0)
    epochs: int = 7
    batch_size: int = 128
    mined_negatives: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arguments(
            getattr(matchers, self.matcher),
            matchers.Matcher,
            "matcher_config",
            self.matcher_config,
            ("word_dimension",),
        )
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

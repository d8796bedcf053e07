"""Recipes: the settings that determine the trained weights of a model.

`models.builders` builds and compiles the model of a recipe.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import (
    DEFAULT_SALIENCE,
    KEY_WORDS_OF,
    NEGATIVES,
    TOWERS,
    WORDS,
    Settings,
    field_weights,
    setting,
)


def _arguments() -> Any:
    return dataclasses.field(default_factory=dict, metadata={"flag": False})


class ModelRecipe(Settings):
    """Base of the recipes: each kind of model has its own subclass.

    A subclass is a frozen dataclass with `epochs`, `batch_size` and `kind`. Its
    docstring describes each field; the descriptions are the flags' help.

    Example:
    >>> dssm.PRESETS["lstm_96"].kind
    'towers'
    """

    kind: ClassVar[str]
    """The name of the `ModelKind`."""

    stops_without_dev: ClassVar[bool] = False
    """Whether a training without dev can stop early."""

    epochs: int
    batch_size: int

    @property
    def fitted(self) -> bool:
        """Whether the weights are computed without gradient training."""
        return False

    def completed(self, options: Any) -> dict[str, Any]:
        """Returns values for unset options of a `TrainingConfig`, by name."""
        return {}


@dataclasses.dataclass(frozen=True)
class Recipe(ModelRecipe):
    """Recipe of a `TwoTower`: settings that determine the trained weights.

    Defaults are from Palangi et al. 2016, such as 4 random negatives and the
    momentum 0.9 / 0.995 / 0.9 of section IV. As in the paper, the two encoders
    share no parameters. Equal parameters at the start are our choice.

    Attributes:
        encoder: Name of the encoder class, such as `"LSTMEncoder"`; or
            `"my_package>GRUEncoder"` for a subclass of `TextEncoder` that is
            registered with Keras under this name.
        encoder_config: Arguments of both encoders.
        document_encoder_config: Arguments of the document encoder that
            override `encoder_config`; unused with tied towers.
        towers: `"equal_start"`, two encoders that start from equal random
            weights, so that texts with common trigrams are similar before any
            training; `"separate"`, two encoders that start from different
            random weights; or `"tied"`, one encoder for queries and documents.
        negatives: The negatives of a query: `"random"`, `n` random documents of
            the batch; `"in_batch"`, all other documents of the batch, often
            with better results; or `"corpus"`, `n` random documents of all
            training titles, as in the paper, see `CorpusNegatives`.
        n: Number of random negatives for a query.
        gamma: Scale of the cosines in the softmax, see `CosineSoftmax`.
        learning_rate: The constant learning rate, epsilon in (6) of the paper.
        threshold: Largest norm of a tower's gradient (th_G, Algorithm 1 of the
            paper). Larger gradients are scaled down. `None`: no limit.
        momentum_ends: Momentum mu in the first and the last training steps.
        momentum_middle: Momentum mu in the training steps in between.
        momentum_fraction: Share of the training steps at the start, and again
            at the end, with the momentum `momentum_ends`.
        epochs: Passes over the training pairs. 0 only for a `WordSumEncoder`,
            whose weights are computed from the vectors of a sentence encoder
            (see lstm-dssm-teach) without gradient training.
        batch_size: Pairs in a batch.
        shuffle_buffer: Number of pairs that are shuffled in memory; a longer
            log is shuffled in blocks of lines, see `data.training_batches`.
        title_pairs: Number of synthetic pairs to train on for each title. The
            query of a pair is some words of the title. A fifth of these words
            are misspelled, see `data.title_pairs`.
        hard_negatives: Number of mined negatives for each click: titles near
            the query, but not clicked for it, see `HardNegatives`.
        mine_every: Number of epochs after which negatives are mined again. The
            first `mine_every` epochs have no mined negatives.
        mine_top: Number of nearest documents to draw mined negatives from.
        mine_clusters: Number of clusters of titles that are searched for each
            query, such as 16 in a log of a million titles. With 0 there are no
            clusters: all titles are searched for all queries or, in a large
            log, a sample of titles for a sample of queries; see
            `mine_negatives`.
        judged_negatives: Number of negatives for each click, drawn from the
            titles that are judged not relevant for the query in a BEIR folder.
            Cannot be used with `hard_negatives`.
        logq: Whether in-batch scores are corrected for how often each title
            is clicked (logQ correction), see `ClickFrequencies`.
        patience: With dev: the training stops after this number of evaluations
            without a better value. With 0 all epochs are trained.
        fields: The fields of products to read from a data folder, each with a
            weight for BM25, such as `title:1,brand:0.5`. Encoders read the
            fields with a weight above 0, in the given order. By default title
            and text, with weight 1.

    Raises:
        InputError: A value is out of range, or two values exclude each other.
            `dssm.train` and `dssm.build_model` also raise `InputError` for a
            wrong encoder or a wrong argument of an encoder.

    Example:
    >>> recipe = PRESETS["lstm_96"].replace(negatives="in_batch", epochs=8)
    >>> Recipe.from_dict(recipe.to_dict()) == recipe
    True
    """

    kind: ClassVar[str] = "towers"

    encoder: str = setting("LSTMEncoder", flag=False)
    encoder_config: Mapping[str, Any] = _arguments()
    document_encoder_config: Mapping[str, Any] = _arguments()
    towers: str = setting("equal_start", choices=TOWERS)
    negatives: str = setting("random", choices=NEGATIVES)
    n: int = setting(4, unused_if={"negatives": "in_batch"})
    gamma: float = setting(10.0, above=0)
    learning_rate: float = setting(0.1, above=0)
    threshold: float | None = setting(1.0, above=0)
    momentum_ends: float = setting(0.9, below=1)
    momentum_middle: float = setting(0.995, below=1)
    momentum_fraction: float = setting(0.02, below=1)
    epochs: int = setting(5, least=0)
    batch_size: int = 256
    shuffle_buffer: int = 100_000
    title_pairs: int = 0
    hard_negatives: int = 0
    mine_every: int = setting(2, unused_if={"hard_negatives": 0})
    mine_top: int = setting(30, unused_if={"hard_negatives": 0})
    mine_clusters: int = setting(0, unused_if={"hard_negatives": 0})
    judged_negatives: int = 0
    logq: bool = False
    patience: int = setting(0, flag=False)
    fields: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fields is not None:
            field_weights(self.fields)
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
        """Returns a copy with some attributes changed.

        `judged_negatives` above 0 also sets `hard_negatives` to 0, unless
        `changes` has `hard_negatives`. `changes` may have `oov_buckets`, which
        is then set in `encoder_config`. Raises `InputError` for an unknown
        attribute or a wrong value.
        """
        if changes.get("judged_negatives"):
            changes.setdefault("hard_negatives", 0)
        if "oov_buckets" in changes:
            config = changes.get("encoder_config", self.encoder_config)
            rows = {"oov_buckets": changes.pop("oov_buckets")}
            changes["encoder_config"] = {**config, **rows}
        return super().replace(**changes)

    def with_encoder(self, **config: Any) -> "Recipe":
        """Returns a copy with some arguments of both encoders changed.

        Example:
        >>> PRESETS["lstm_96"].with_encoder(oov_buckets=8192).encoder_config
        {'cells': 96, 'oov_buckets': 8192}
        """
        return self.replace(encoder_config={**self.encoder_config, **config})

    @property
    def oov_buckets(self) -> int:
        """Number of ids for trigrams with a letter other than a-z and 0-9."""
        return self.encoder_config.get("oov_buckets", 0)

    @property
    def fitted(self) -> bool:
        """Whether the weights are computed without gradient training."""
        return self.epochs == 0

    @property
    def has_word_sum(self) -> bool:
        """Whether word vectors are fitted to vectors of a sentence encoder."""
        return self.fitted or len(self.encoder_config.get("shares", ())) == 4

    def completed(self, options: Any) -> dict[str, Any]:
        """Returns `self.patience` if `options` has `dev`, but no `patience`."""
        if options.patience is None and options.dev is not None:
            return {"patience": self.patience or None}
        return {}


class WordsRecipe(ModelRecipe):
    """Base of `ScorerRecipe` and `KeyVecRecipe`, which have word vectors."""

    words: str
    word_dimension: int  # width of the word vectors
    max_words: int  # number of words that are read of a text or sentence

    @property
    def split(self) -> str:
        """The rule that separates words, see `normalize_texts`."""
        return "stems" if self.words == "stems" else "alphanumeric"


@dataclasses.dataclass(frozen=True)
class KeyVecRecipe(WordsRecipe):
    """Recipe of a `KeyVec`: settings that determine the trained weights.

    The widths of sentence and document vectors, 150 and 100, are from Bi and Ma
    2017.

    Attributes:
        words: `"vocabulary"`, one vector for each word of the training
            documents, as in the paper; `"stems"`, one vector for all forms of a
            word; or `"trigrams"`, the sum of the vectors of a word's letter
            trigrams, which reads any word.
        word_dimension: Width of the word vectors.
        max_words: Number of words to read of each sentence.
        max_sentences: Number of sentences to read of each document.
        min_count: Least number of occurrences of a word in the training
            documents. Rarer words are left out of the vocabularies of the
            word vectors and of the key words.
        vocabulary_size: Largest number of words in the vocabulary. The most
            frequent words are kept.
        skip_gram: Whether word vectors start from skip-gram vectors of the
            training documents, as in the paper, or are random.
        skip_gram_epochs: Passes over the documents for skip-gram vectors.
        key_words_of: Text from which a document's key words are taken. Key
            words are the words with the highest TF-IDF. `"summary"` is as in
            the paper. `"document"` is body and summary; use this choice if
            there are no summaries.
        key_word_start: Scale of the initial output vectors of the key words
            (W_v). The vectors start from the skip-gram vectors, scaled to unit
            length, centred, and multiplied by this number; with 0 they start
            from random weights. The paper does not say how they start.
        filters: Number of filters of each window of the convolution.
        windows: Widths of the windows of the convolution, in words.
        units: Number of units of the LSTM, in each direction.
        dimension: Width of the documents' vectors.
        weighted: Whether sentences are weighted by p_i, the predicted salience
            of sentence i; with `False` all p_i are 1.
        read_weight: Weight of L_read, the loss for salient sentences; 0: none.
        word_weight: Weight of L_enc, the loss for key words; 0: none.
        dropout: Share of sentence vectors' components that training sets to 0.
        normalize: Whether L_read is a mean over sentences and L_enc a mean over
            key words. With `False` they are sums, as in the paper.
        excerpt: Largest number of sentences in the excerpt of a document that
            training reads, see `DocumentExamples.batches`. With 0 training
            reads whole documents, as in the paper.
        learning_rate: Learning rate of Adam.
        decay: Whether the learning rate falls to 0 during the training, along
            half a cosine (Loshchilov and Hutter 2017,
            https://arxiv.org/abs/1608.03983). With `False` it is constant.
        epochs: Passes over the documents.
        patience: The training stops after this number of epochs without a
            smaller validation loss, and the best epoch becomes the model. With
            0 all epochs are trained, and the last epoch is the model.
        batch_size: Documents in a batch.

    Raises:
        InputError: A value is out of range.

    Example:
    >>> recipe = KEYVEC_PRESETS["keyvec"].replace(dimension=50)
    >>> dssm.build_model(recipe, vocabulary=["hat", "red"]).dimension
    50
    """

    kind: ClassVar[str] = "keyvec"
    stops_without_dev: ClassVar[bool] = True

    words: str = setting("vocabulary", choices=WORDS)
    word_dimension: int = 100
    max_words: int = 60
    max_sentences: int = 250
    min_count: int = 5
    vocabulary_size: int = 30_000
    skip_gram: bool = setting(True, unused_if={"words": "trigrams"})
    skip_gram_epochs: int = 5
    key_words_of: str = setting("summary", choices=KEY_WORDS_OF)
    key_word_start: float = setting(0.0, least=0)
    filters: int = 50
    windows: Sequence[int] = setting((3, 4, 5), flag=False, each_least=1)
    units: int = 100
    dimension: int = 100
    weighted: bool = setting(True, flag=False)
    read_weight: float = setting(1.0, least=0)
    word_weight: float = setting(1.0, least=0)
    dropout: float = setting(0.0, below=1)
    normalize: bool = False
    excerpt: int = 0
    learning_rate: float = setting(0.001, above=0)
    decay: bool = False
    epochs: int = 40
    patience: int = setting(0, flag=False)
    batch_size: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        # JSON turns tuples into lists. A copy read from JSON must be equal.
        object.__setattr__(self, "windows", tuple(self.windows))

    def completed(self, options: Any) -> dict[str, Any]:
        """Returns `salience`; without `dev`, also `patience` and `recipe`."""
        salience = options.salience
        values: dict[str, Any] = {
            "salience": DEFAULT_SALIENCE if salience is None else salience
        }
        if options.dev is None:
            patience = options.patience
            patience = self.patience if patience is None else patience
            values["recipe"] = self.replace(patience=patience)
            values["patience"] = patience or None
        return values


@dataclasses.dataclass(frozen=True)
class ScorerRecipe(WordsRecipe):
    """Recipe of a `PairScorer`: settings that determine the trained weights.

    The defaults are from Wan et al. 2016.

    Attributes:
        matcher: Name of the matcher class, such as `"MVLSTM"`; or
            `"my_package>MyMatcher"` for a subclass of `Matcher` that is
            registered with Keras under this name.
        matcher_config: Arguments of the matcher, without `word_dimension`.
        words: `"vocabulary"`, one vector for each word of the training texts,
            as in the paper; `"stems"`, one vector for all forms of a word; or
            `"trigrams"`, the sum of the vectors of a word's letter trigrams,
            which reads any word.
        word_dimension: Width of the word vectors.
        max_words: Number of words to read of each text.
        min_count: Least number of occurrences of a word in the training texts.
            Rarer words are left out of the vocabulary.
        skip_gram: Whether word vectors start from skip-gram vectors of the
            training texts, as in the paper, or are random.
        skip_gram_epochs: Passes over the training texts for the skip-gram
            vectors. On few texts, 5 passes leave the vectors near random.
        margin: Margin of the hinge loss, see `PairwiseHinge`.
        learning_rate: Learning rate of `Adagrad`.
        epochs: Passes over the triples.
        batch_size: Triples in a batch.
        mined_negatives: Number of negatives to mine for each query of a click
            log, see `Triples.from_clicks`. Judged lists have negatives already.

    Raises:
        InputError: A value is out of range. `dssm.train` and `dssm.build_model`
            also raise `InputError` for a wrong matcher or a wrong argument of
            the matcher.

    Example:
    >>> recipe = SCORER_PRESETS["mv_lstm_tensor"].replace(words="trigrams")
    >>> dssm.build_model(recipe).matcher.k
    5
    """

    kind: ClassVar[str] = "scorer"

    matcher: str = setting("MVLSTM", flag=False)
    matcher_config: Mapping[str, Any] = _arguments()
    words: str = setting("vocabulary", choices=WORDS)
    word_dimension: int = 50
    max_words: int = 50
    min_count: int = setting(1, unused_if={"words": "trigrams"})
    skip_gram: bool = setting(True, unused_if={"words": "trigrams"})
    skip_gram_epochs: int = setting(
        30, unused_if={"words": "trigrams", "skip_gram": False}
    )
    margin: float = setting(1.0, above=0)
    learning_rate: float = setting(0.03, above=0)
    epochs: int = 7
    batch_size: int = 128
    mined_negatives: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
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


_BEST = Recipe(
    encoder="CombinedEncoder",
    document_encoder_config={"length_norm": 0.5},
    negatives="in_batch",
    gamma=16.0,
    learning_rate=0.03,
    epochs=12,
    batch_size=512,
    title_pairs=1,
    hard_negatives=1,
    patience=3,
)

PRESETS: dict[str, Recipe] = {
    "lstm_32": Recipe("LSTMEncoder", {"cells": 32}),
    "lstm_64": Recipe("LSTMEncoder", {"cells": 64}),
    "lstm_96": Recipe("LSTMEncoder", {"cells": 96}),
    "lstm_96_full": Recipe(
        "LSTMEncoder", {"cells": 96, "peephole": "full", "forget_gate": True}
    ),
    "bilstm_96": Recipe("BidirectionalLSTMEncoder", {"cells": 96}),
    "rnn_288": Recipe("RNNEncoder", {"units": 288}),
    "dssm": Recipe("DSSMEncoder", {"units": [288, 96]}),
    "clsm_win1": Recipe("CLSMEncoder", {"window": 1}),
    "clsm_win3": Recipe("CLSMEncoder", {"window": 3}),
    "clsm_win5": Recipe("CLSMEncoder", {"window": 5}),
    "best": _BEST,
    "best_words": _BEST.replace(
        encoder_config={"shares": [1.0, 1.0, 1.0, 1.0]}
    ),
    "word_sum": Recipe("WordSumEncoder", towers="tied", epochs=0),
}
"""Name -> recipe of two towers.

`lstm_32` to `clsm_win5` have the sizes of Table IV of Palangi et al. 2016.
`lstm_96_full` also has a forget gate and full peepholes. `best` was chosen on
the dev splits of four data sets (docs/results/best.md). `best_words` and
`word_sum` have word vectors that are fitted to the vectors of a sentence
encoder (docs/results/few_clicks.md).
"""


def _scorer(matcher: str, **config: Any) -> ScorerRecipe:
    return ScorerRecipe(matcher, config)


def _cntn(**config: Any) -> ScorerRecipe:
    # The first steps of Adagrad are about as long as the learning rate. With a
    # learning rate of 0.03 these steps saturate CNTN's tanh units permanently.
    return ScorerRecipe("CNTN", config, learning_rate=0.003)


# With these arguments an interaction u' M v starts near the cosine of u and v,
# because u and v have length 1, and M starts near the identity.
_NEAR_COSINE: dict[str, Any] = {"rank": None, "unit_length": True}

SCORER_PRESETS: dict[str, ScorerRecipe] = {
    "mv_lstm_cosine": _scorer("MVLSTM", interaction="cosine"),
    "mv_lstm_bilinear": _scorer(
        "MVLSTM", interaction="bilinear", **_NEAR_COSINE
    ),
    "mv_lstm_tensor": _scorer("MVLSTM", interaction="tensor", **_NEAR_COSINE),
    "lstm_rnn_50": _scorer("RecurrentCosine"),
    "bilstm_rnn_50": _scorer("RecurrentCosine", bidirectional=True),
    "arc_i": _scorer("ARCI"),
    "arc_i_wan": _scorer(
        "ARCI",
        filters=[50, 50],
        activation="tanh",
        use_bias=False,
        pooling="k_max",
        hidden=[200],
    ),
    "arc_ii": _scorer("ARCII"),
    "arc_ii_wan": _scorer("ARCII", filters=[30], padding="wide", hidden=[60]),
    "cntn": _cntn(),
    "cntn_wan": _cntn(
        filters=[50, 50], use_bias=False, k_top=1, k_min=4, dimension=None
    ),
    "multi_gran_cnn": _scorer("MultiGranCNN"),
    "multi_gran_cnn_wan": _scorer(
        "MultiGranCNN",
        activation="relu",
        use_bias=False,
        similarity_activation="relu",
        sizes=[15],
        match_filters=[],
        hidden=[200],
    ),
    "deep_match": _scorer("DeepMatch"),
    "rae": _scorer("RAE"),
}
"""Name -> recipe: MV-LSTM and the baselines of Wan et al. 2016.

Presets that end with `_wan` are the smaller forms that Wan et al. ran. The
other baselines have the form of the papers that introduced them.
"""

_KEYVEC = KeyVecRecipe(
    normalize=True,
    excerpt=16,
    learning_rate=0.003,
    decay=True,
    skip_gram_epochs=20,
    key_word_start=3.0,
    epochs=80,
)

KEYVEC_PRESETS: dict[str, KeyVecRecipe] = {
    "keyvec": _KEYVEC,
    "keyvec_document": _KEYVEC.replace(key_words_of="document"),
    "keyvec_printed": KeyVecRecipe(patience=3),
    "keyvec_without_read": _KEYVEC.replace(read_weight=0.0),
    "keyvec_without_words": _KEYVEC.replace(word_weight=0.0),
    "keyvec_mean": _KEYVEC.replace(weighted=False),
}
"""Name -> recipe of KeyVec.

`keyvec` is trained on excerpts; `keyvec_document` takes key words from the
body and the summary; `keyvec_printed` has the loss as printed in the paper and
is trained on whole documents. The last three presets are `keyvec` without
L_read, without L_enc, and with p_i = 1 for all sentences.
"""

"""Recipe: the configuration of a model and of its training."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_lstm_dssm import encoders
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.base_recipe import (
    BaseRecipe,
    check_arguments,
    classes_of,
    is_number,
    seeded_initializers,
)
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings.choices import NEGATIVES, TOWERS
from keras_lstm_dssm.settings.presets import TOWER_PRESETS


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

    encoder: str = "LSTMEncoder"
    encoder_config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    document_encoder_config: Mapping[str, Any] = dataclasses.field(
        default_factory=dict
    )
    towers: str = "equal_start"
    negatives: str = "random"
    n: int = 4
    gamma: float = 10.0
    learning_rate: float = 0.1
    threshold: float | None = 1.0
    momentum_ends: float = 0.9
    momentum_middle: float = 0.995
    momentum_fraction: float = 0.02
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
    teacher_weight: float = 4.0
    teacher_temperature: float = 0.05
    teacher_gamma: float = 16.0

    def __post_init__(self) -> None:
        self._check_choice(
            "encoder", classes_of(encoders, encoders.TextEncoder)
        )
        self._check_choice("towers", TOWERS)
        self._check_choice("negatives", NEGATIVES)
        for name in ("encoder_config", "document_encoder_config"):
            check_arguments(
                getattr(encoders, self.encoder),
                encoders.TextEncoder,
                name,
                getattr(self, name),
                (),
            )
        for name in (
            "gamma",
            "learning_rate",
            "teacher_weight",
            "teacher_temperature",
            "teacher_gamma",
        ):
            self._check_positive(name)
        if self.threshold is not None:
            self._check_positive("threshold")
        for name in ("momentum_ends", "momentum_middle", "momentum_fraction"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < 1:
                raise InputError(
                    f"{name} is {value!r}: expected 0 or more, and less than 1"
                )
        self._check_flags()
        self._check_whole_numbers()
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

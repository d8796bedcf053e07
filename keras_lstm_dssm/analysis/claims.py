"""Measure the paper's claims about its encoder, compared with chance."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_lstm_dssm.analysis.activations import (
    each_activations,
    is_recurrent,
    words_of,
)
from keras_lstm_dssm.analysis.chance_tests import (
    ChanceComparison,
    is_stop_word,
    remaining_cosine,
    stop_word_share,
)
from keras_lstm_dssm.analysis.keywords import (
    ACTIVE_CELLS,
    KEYWORD_SHARE,
    LEAST_CHANGE,
    TOPIC_CELLS,
    keywords,
)
from keras_lstm_dssm.analysis.topic_coherence import (
    assign_words,
    coherence,
    context_vectors,
)
from keras_lstm_dssm.analysis.word_effects import SIDES, each_change
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError

CLAIM_LABELS = {
    "stop_words_of_least_effect": (
        "Share of stop words among the words with the least effect, one of "
        "each text"
    ),
    "stop_words_unassigned": (
        "Share of stop words among the words assigned to no active cell"
    ),
    "stop_words_keywords": "Share of stop words among the keywords",
    "cosine_of_strong_half": (
        "Share of the cosine that remains with the half of the words that has "
        "the most effect"
    ),
    "cosine_of_keywords": (
        "Share of the cosine that remains with the keywords alone"
    ),
    "likeness": "Mean cosine of the words of one cell",
    "likeness_other_spelling": (
        "Mean cosine of the words of one cell that share no letter trigram"
    ),
}
"""Name of a result -> its description."""


class ClaimResult(NamedTuple):
    """A number that measures a claim, for one encoder.

    Attributes:
        claim: The name of the result, a key of `CLAIM_LABELS`.
        side: The encoder whose texts it is about, "query" or "document".
        model: "trained", or "untrained" for the same encoders with random
            weights.
        comparison: The number, and chance.
    """

    claim: str
    side: str
    model: str
    comparison: ChanceComparison


def measure_claims(
    model: Any,
    pairs: Sequence[tuple[str, str]],
    contexts: Sequence[str],
    cells: int = ACTIVE_CELLS,
    change: float = LEAST_CHANGE,
    share: float = KEYWORD_SHARE,
) -> list[ClaimResult]:
    """Measure whether unimportant words are attenuated and cells have topics.

    Each result is computed for the model and for `untrained_copy(model)`:
    what both show is not an effect of training. For example, any encoder of
    trigrams is changed little by a short word, which has few of them.

    Args:
        model: A `TwoTower`.
        pairs: Queries, each with the title of a relevant document.
        contexts: Texts for the word vectors, see `context_vectors`.
        cells: See `keywords`.
        change: See `keywords`.
        share: See `keywords`.

    Returns:
        The results that the texts allow: where no text has a keyword, for
        example, there are no results about keywords. The untrained copy has
        none about cosines, which would be noise.

    Raises:
        InputError: scikit-learn is not installed, or there are no pairs.
    """
    if not pairs:
        raise InputError(
            "found no query with a relevant document, expected one or more to "
            "measure the claims with: name other data"
        )
    keras.utils.set_random_seed(0)
    models = {"trained": model, "untrained": untrained_copy(model)}
    queries, titles = (list(side) for side in zip(*pairs, strict=True))
    recurrent = is_recurrent(model.query_encoder, model.document_encoder)
    if recurrent:
        word_vectors = context_vectors(words_of(model.query_encoder, contexts))
    results = []
    for name, measured in models.items():
        towers = (
            (measured.query_encoder, queries),
            (measured.document_encoder, titles),
        )
        vectors = [encoder.encode(texts) for encoder, texts in towers]
        for index, (encoder, texts) in enumerate(towers):
            others = vectors[1 - index] if measured is model else None
            comparisons = dict(
                _compare_words(encoder, texts, others, cells, change, share)
            )
            if recurrent:
                assignments = assign_words(encoder, texts, TOPIC_CELLS, change)
                comparisons |= {
                    "likeness": coherence(encoder, assignments, word_vectors),
                    "likeness_other_spelling": coherence(
                        encoder, assignments, word_vectors, same_trigrams=False
                    ),
                }
            results += [
                ClaimResult(claim, SIDES[index], name, comparison)
                for claim, comparison in comparisons.items()
                if comparison.number
            ]
    return results


def untrained_copy(model: Any) -> Any:
    """Return a copy of a model with the random weights it could start from.

    Only weights that training changes are random. Weights that are fixed
    before training, such as the IDF of the words that `adapt` counts, are
    those of the model, so that the copy differs by training alone.

    Args:
        model: A `TwoTower`.
    """
    copy = type(model).from_config(model.get_config())
    for random, trained in zip(copy.towers, model.towers, strict=True):
        for weight, value in zip(random.weights, trained.weights, strict=True):
            # The copy decides, because its layers are not frozen.
            if not weight.trainable:
                weight.assign(value)
    return copy


def _compare_words(
    encoder: TextEncoder,
    texts: Sequence[str],
    others: np.ndarray | None,
    cells: int,
    change: float,
    share: float,
) -> Iterator[tuple[str, ChanceComparison]]:
    """Yield the results about the words of one encoder's texts."""
    split_texts = words_of(encoder, texts)
    stop = [is_stop_word(words) for words in split_texts]
    all_words = [np.ones(len(words), bool) for words in split_texts]
    # The rank of each word by its effect, 0 for the least.
    ranks = [
        np.argsort(np.argsort(effects, kind="stable"))
        for effects in each_change(encoder, split_texts)
    ]
    least = [(rank == 0) & (len(rank) > 1) for rank in ranks]
    strong = [rank >= len(rank) // 2 for rank in ranks]
    yield "stop_words_of_least_effect", stop_word_share(stop, least, all_words)
    if others is not None:
        yield (
            "cosine_of_strong_half",
            remaining_cosine(encoder, split_texts, others, strong, all_words),
        )
    if not is_recurrent(encoder):
        return
    counted, unassigned, keyword = [], [], []
    for read in each_activations(encoder, texts):
        words = keywords(read, cells, change, share)
        counts = [[n for n in w.counts if n is not None] for w in words]
        counted.append(np.array([c != [] for c in counts]))
        unassigned.append(np.array([c != [] and not any(c) for c in counts]))
        keyword.append(np.array([word.keyword for word in words]))
    yield "stop_words_unassigned", stop_word_share(stop, unassigned, counted)
    yield "stop_words_keywords", stop_word_share(stop, keyword, counted)
    if others is not None:
        yield (
            "cosine_of_keywords",
            remaining_cosine(encoder, split_texts, others, keyword, counted),
        )

"""The paper's claims about its encoder as figures, against chance."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_lstm_dssm.analysis.activations import (
    each_activations,
    is_recurrent,
    words_of,
)
from keras_lstm_dssm.analysis.coherence import assign, coherence, likeness
from keras_lstm_dssm.analysis.keywords import (
    CELLS,
    CHANGE,
    SHARE,
    TOPIC_CELLS,
    keywords,
)
from keras_lstm_dssm.analysis.word_effects import (
    SIDES,
    each_change,
    kept_cosine,
)
from keras_lstm_dssm.analysis.word_statistics import (
    Finding,
    is_stop,
    stop_share,
)
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError

LABELS = {
    "stop_words_of_least_effect": (
        "Stop words among the words of least effect, one of each text"
    ),
    "stop_words_unassigned": "Stop words among those no active cell takes up",
    "stop_words_keywords": "Stop words among the keywords",
    "cosine_of_strong_half": (
        "Share of the cosine that the half of the words with most effect keeps"
    ),
    "cosine_of_keywords": "Share of the cosine that the keywords alone keep",
    "likeness": "Likeness of the words of one cell",
    "likeness_other_spelling": (
        "Likeness of the words of one cell that share no letter trigram"
    ),
}
"""What each figure is; chance chooses as many other words, or shuffles."""


class Claim(NamedTuple):
    """One line of the table: a claim, whose it is, and what was found."""

    claim: str
    side: str
    model: str
    finding: Finding


def measure_claims(
    model: Any,
    pairs: Sequence[tuple[str, str]],
    contexts: Sequence[str],
    cells: int = CELLS,
    change: float = CHANGE,
    share: float = SHARE,
    seed: int = 0,
) -> list[Claim]:
    """Tests "attenuates unimportant words" and "cells have topics".

    Each figure is taken of the model and, beside it, of the same towers with
    fresh random weights: what those show too is no effect of learning. A
    short word has few trigrams, and moves any vector little.

    Args:
        model: A `TwoTower`.
        pairs: Queries, each with a relevant title.
        contexts: Texts that show which words keep company, see `likeness`.
        cells: See `keywords`.
        change: See `keywords`.
        share: See `keywords`.
        seed: Of all that is drawn.

    Returns:
        What could be measured: where a text has no keyword, say, nothing
        can be said of them.

    Raises:
        InputError: scikit-learn is not installed, or there are no pairs.
    """
    if not pairs:
        raise InputError(
            "found no query with a relevant title, which the claims are "
            "tested on; name other data"
        )
    keras.utils.set_random_seed(seed)
    models = {
        "trained": model,
        "untrained": type(model).from_config(model.get_config()),
    }
    queries, titles = (list(side) for side in zip(*pairs, strict=True))
    recurrent = is_recurrent(model.query_encoder, model.document_encoder)
    if recurrent:
        alike = likeness(words_of(model.query_encoder, contexts), seed=seed)
    found = []
    for name, one in models.items():
        towers = (one.query_encoder, queries), (one.document_encoder, titles)
        vectors = [encoder.encode(texts) for encoder, texts in towers]
        for place, (encoder, texts) in enumerate(towers):
            # Untrained towers know nothing of each other: their cosine is
            # noise, and has no shares.
            other = vectors[1 - place] if one is model else None
            findings = dict(_words(encoder, texts, other, cells, change, share))
            if recurrent:
                given = assign(encoder, texts, TOPIC_CELLS, change)
                findings |= {
                    "likeness": coherence(encoder, given, alike),
                    "likeness_other_spelling": coherence(
                        encoder, given, alike, spelling=False
                    ),
                }
            found += [
                Claim(claim, SIDES[place], name, finding)
                for claim, finding in findings.items()
                if finding.number
            ]
    return found


def _words(
    encoder: TextEncoder,
    raw: Sequence[str],
    others: np.ndarray | None,
    cells: int,
    change: float,
    share: float,
) -> Iterator[tuple[str, Finding]]:
    """The figures about words, of one tower and its texts."""
    texts = words_of(encoder, raw)
    stop = [is_stop(words) for words in texts]
    every = [np.ones(len(words), bool) for words in texts]
    # Ranks of the words by effect, the weakest first.
    ranks = [
        np.argsort(np.argsort(effects, kind="stable"))
        for effects in each_change(encoder, texts)
    ]
    least = [(rank == 0) & (len(rank) > 1) for rank in ranks]
    strong = [rank >= len(rank) // 2 for rank in ranks]
    yield "stop_words_of_least_effect", stop_share(stop, least, every)
    if others is not None:
        kept = kept_cosine(encoder, texts, others, strong, every)
        yield "cosine_of_strong_half", kept
    if not is_recurrent(encoder):
        return
    judged, unassigned, key = [], [], []
    for read in each_activations(encoder, raw):
        words = keywords(read, cells, change, share)
        known = [[n for n in one.counts if n is not None] for one in words]
        judged.append(np.array([bool(counts) for counts in known]))
        unassigned.append(np.array([c != [] and not any(c) for c in known]))
        key.append(np.array([one.keyword for one in words]))
    yield "stop_words_unassigned", stop_share(stop, unassigned, judged)
    yield "stop_words_keywords", stop_share(stop, key, judged)
    if others is not None:
        kept = kept_cosine(encoder, texts, others, key, judged)
        yield "cosine_of_keywords", kept

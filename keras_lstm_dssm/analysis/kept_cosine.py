"""How much of the cosine with the other text a few words carry."""

from collections.abc import Sequence

import numpy as np

from keras_lstm_dssm.analysis.finding import NOTHING, Finding
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.evaluation.significance import randomisation_test

_DRAWS = 4


def kept_cosine(
    encoder: TextEncoder,
    texts: Sequence[Sequence[str]],
    others: np.ndarray,
    chosen: Sequence[np.ndarray],
    judged: Sequence[np.ndarray],
    seed: int = 0,
) -> Finding:
    """Measures the cosine that is left when only chosen words are read.

    Chance keeps as many of each text's judged words. Texts of which all
    judged words are chosen, or none, say nothing and are left out.

    Args:
        encoder: Of the texts.
        texts: The words of each.
        others: Float `[texts, dimension]`, unit vectors of the other side.
        chosen: bool `[words]` for each text: the words to keep.
        judged: The same: words that could be kept.
        seed: Of the random words.

    Returns:
        Mean cosine of what is kept, as a share of the mean cosine of the
        whole texts; p is of the paired differences, by randomisation.
    """
    rows = [
        row
        for row in range(len(texts))
        if 0 < chosen[row].sum() < judged[row].sum()
    ]
    if not rows:
        return NOTHING
    random = np.random.default_rng(seed)
    picks = [[np.ones(len(texts[row]), bool), chosen[row]] for row in rows]
    for row, pick in zip(rows, picks, strict=True):
        for _ in range(_DRAWS):
            drawn = np.zeros(len(texts[row]), bool)
            drawn[
                random.choice(
                    np.flatnonzero(judged[row]), chosen[row].sum(), False
                )
            ] = True
            pick.append(drawn)
    kept = [
        " ".join(np.array(texts[row], object)[mask])
        for row, pick in zip(rows, picks, strict=True)
        for mask in pick
    ]
    vectors = encoder.encode(kept).reshape(len(rows), 2 + _DRAWS, -1)
    cosines = np.einsum("nkd,nd->nk", vectors, others[rows])
    whole, found, chance = (
        cosines[:, 0], cosines[:, 1], cosines[:, 2:].mean(axis=1)
    )  # fmt: skip
    p = randomisation_test(found - chance, 10_000, seed)[0]
    mean = whole.mean()
    return Finding(
        float(found.mean() / mean),
        float(chance.mean() / mean),
        float(p),
        len(rows),
    )

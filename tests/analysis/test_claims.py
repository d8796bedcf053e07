"""All figures about the paper's claims, and the untrained copy beside them."""

import numpy as np
import pytest

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.analysis.claims import (
    CLAIM_LABELS,
    measure_claims,
    untrained_copy,
)
from tests.conftest import TOPICS
from tests.encoders import small
from tests.encoders.small import small_encoder


@pytest.mark.parametrize("name", ["bilstm", "dssm"])
def test_all_claims(name, monkeypatch) -> None:
    # The same weights whichever tests run before: others have no keyword.
    monkeypatch.setattr(small, "RANDOM", np.random.default_rng(2))
    encoder = small_encoder(name)
    model = TwoTower(encoder, encoder)
    pairs = [(f"a {query} of the", title) for query, title in TOPICS.values()]
    contexts = [" ".join(pair) for pair in pairs] * 3
    claims = measure_claims(model, pairs, contexts, cells=4, change=0.6)
    expected = list(CLAIM_LABELS) if name == "bilstm" else [
        "stop_words_of_least_effect", "cosine_of_strong_half",
    ]  # fmt: skip
    found = {(c.claim, c.side, c.model) for c in claims}
    assert found == {
        (claim, side, which)
        for claim in expected
        for side in ("query", "document")
        for which in ("trained", "untrained")
        if not (which == "untrained" and claim.startswith("cosine"))
    }
    by_key = {(c.claim, c.side, c.model): c.comparison for c in claims}
    least = by_key["stop_words_of_least_effect", "query", "trained"]
    assert least.number == 6  # one of each text
    assert least.chance == pytest.approx(3 / 5, abs=0.02)
    if name == "dssm":  # nothing is left to chance
        assert measure_claims(model, pairs, contexts) == claims


def test_the_untrained_copy_keeps_what_adapt_counted() -> None:
    titles = [title for _, title in TOPICS.values()]
    query, document = small_encoder("combined"), small_encoder("combined")
    model = TwoTower(query, document)
    model.adapt(titles)
    document.long.assign(3.0)
    document.embedding.trainable = False  # frozen, and yet not fixed
    copy = untrained_copy(model)
    assert copy.document_encoder is not document
    for tower, fresh in zip(model.towers, copy.towers, strict=True):
        sketch, of_copy = tower.word_sketch, fresh.word_sketch
        weights = sketch.word_weight.numpy()
        assert len(np.unique(weights)) > 2  # the IDF of words
        np.testing.assert_array_equal(of_copy.word_weight, weights)
        for table in ("embedding", "bag_embedding"):
            trained = getattr(tower, table).table.numpy()
            random = getattr(fresh, table).table.numpy()
            assert np.abs(random).max() <= 0.05 < np.abs(trained).max()
    assert float(copy.document_encoder.long) == 3
    tied = untrained_copy(TwoTower(query, query))
    assert tied.query_encoder is tied.document_encoder is not query

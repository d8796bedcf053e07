"""A ranker's sources score pairs, in Python and in graphs alike."""

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.ranker.ranker import graph_scores, source_of
from tests.ranker.small_ranker import small_scorer

QUERIES = [b"hex bolt", b"glue", b"hex bolt", b""]
TITLES = [b"steel hex bolt", b"wood glue", b"wood glue", b"desk lamp"]


@pytest.fixture(scope="module")
def towers() -> dssm.TwoTower:
    """Makes two towers whose weights differ, as after a training."""
    recipe = dssm.Recipe("DSSMEncoder", {"units": [8]}, towers="separate")
    return recipe.build(seed=1)


def test_two_towers_give_the_cosine_of_their_vectors(towers):
    source = source_of(towers, "towers")
    scores = source.score_pairs(QUERIES, TITLES)
    vectors = (
        towers.query_encoder.encode(QUERIES),
        towers.document_encoder.encode(TITLES),
    )
    expected = [query @ title for query, title in zip(*vectors, strict=True)]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert len(set(scores.round(3))) == 4
    assert source.score_pairs([], []).shape == (0,)


@pytest.mark.parametrize("kind", ["towers", "scorer"])
def test_a_graph_gives_the_same_scores(kind, towers):
    source = source_of(towers if kind == "towers" else small_scorer(), kind)
    scores = graph_scores(source, tf.constant(QUERIES), tf.constant(TITLES))
    expected = source.score_pairs(QUERIES, TITLES)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert np.ptp(expected) > 1e-3


@pytest.mark.parametrize("untrained", [dssm.PRESETS["best"].build(), "bm25"])
def test_other_models_are_no_source(untrained):
    name = type(untrained).__name__
    with pytest.raises(InputError, match=f"RUN: found a {name}, expected tra"):
        source_of(untrained, "RUN")

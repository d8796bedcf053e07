"""Exported pair scorers: every matcher, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_model
from keras_lstm_dssm.export.graphs.saved_module import save_module
from keras_lstm_dssm.export.graphs.scorer import ScorerModule
from keras_lstm_dssm.models.word_builders import build_scorer
from lstm_dssm_client.signatures import as_bytes
from tests.export.agreement import check_ops
from tests.export.graphs import kinds
from tests.matchers.small_matchers import SMALL_MATCHERS


def test_every_matcher_is_here():
    presets = dssm.SCORER_PRESETS.values()
    assert {recipe.matcher for recipe in presets} == SMALL_MATCHERS.keys()


@pytest.mark.parametrize("matcher", SMALL_MATCHERS)
def test_every_matcher_as_a_stock_server_loads_it(matcher, tmp_path):
    """Checks one row, all rows, no rows, and the ops, without gradients."""
    model = kinds.pair_scorer(matcher)
    # Without warm-up requests, which the other tests send.
    save_module(ScorerModule(model), tmp_path)
    check_ops(tmp_path)
    expected = model.score_pairs(kinds.QUERIES, kinds.DOCUMENTS)
    assert np.ptp(expected) > 1e-3
    serve = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    texts = as_bytes(kinds.QUERIES), as_bytes(kinds.DOCUMENTS)
    for rows in map(slice, (0, 0, 2, 8, 3, 0), (None, 1, 3, 9, 7, 0)):
        query, document = (
            tf.constant(side[rows], tf.string, [len(side[rows])])
            for side in texts
        )
        scores = serve(query=query, document=document)["score"].numpy()
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, expected[rows], atol=1e-6)


def test_a_matcher_that_has_not_been_pretrained_is_refused(tmp_path):
    recipe = dssm.ScorerRecipe(
        "DeepMatch", SMALL_MATCHERS["DeepMatch"], word_dimension=4
    )
    with pytest.raises(InputError, match="DeepMatch has not been pre-trained"):
        export_model(build_scorer(recipe, 0, kinds.WORDS), tmp_path)
    assert list(tmp_path.iterdir()) == []

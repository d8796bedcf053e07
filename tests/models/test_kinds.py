"""The kinds of models, and the dictionaries that layers have for them."""

import json

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.export_models import GRAPHS
from keras_lstm_dssm.models import find_recipe
from keras_lstm_dssm.models.kinds import (
    KEYVEC,
    KINDS,
    SCORER,
    TOWERS,
    kind_of,
    recipe_from_dict,
)
from keras_lstm_dssm.ranker.ranker import RANKER
from keras_lstm_dssm.training.train import ROADS, TRAININGS


def test_every_layer_knows_every_kind():
    assert list(KINDS.values()) == [TOWERS, SCORER, KEYVEC, RANKER]
    assert set(GRAPHS) == {*KINDS, "mixture", "hybrid"}
    assert set(TRAININGS) == {
        name for name, kind in KINDS.items() if kind.has_epochs
    }
    assert set(TRAININGS) | set(ROADS) == set(KINDS)


@pytest.mark.parametrize("kind", [TOWERS, SCORER, KEYVEC], ids=lambda k: k.name)
def test_presets_are_found_and_written_and_know_their_kind(kind):
    assert isinstance(kind, type(TOWERS))
    for name, recipe in kind.presets.items():
        assert recipe.kind == kind.name and kind_of(recipe) is kind
        assert find_recipe(name) is recipe and find_recipe(recipe) is recipe
        written = recipe_from_dict(json.loads(json.dumps(recipe.to_dict())))
        assert type(written) is kind.recipe and written == recipe


def test_what_is_no_model():
    model = dssm.Recipe("DSSMEncoder", {"units": [2]}).build()
    assert kind_of(model) is TOWERS
    with pytest.raises(InputError, match="found a DSSMEncoder, expected a mod"):
        kind_of(model.query_encoder)

"""The kinds of models, and the dictionaries that layers have for them."""

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.export_models import GRAPHS
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
    assert set(GRAPHS) == {*KINDS, "mixture"}
    assert set(TRAININGS) == {
        name for name, kind in KINDS.items() if kind.has_epochs
    }
    assert set(TRAININGS) | set(ROADS) == set(KINDS)


@pytest.mark.parametrize("kind", [TOWERS, SCORER, KEYVEC], ids=lambda k: k.name)
def test_recipes_know_their_kind(kind):
    assert isinstance(kind, type(TOWERS))
    for recipe in kind.presets.values():
        assert recipe.kind == kind.name and kind_of(recipe) is kind
        assert type(recipe_from_dict(recipe.to_dict())) is kind.recipe


def test_what_is_no_model():
    model = dssm.Recipe("DSSMEncoder", {"units": [2]}).build()
    assert kind_of(model) is TOWERS
    with pytest.raises(InputError, match="found a DSSMEncoder, expected a mod"):
        kind_of(model.query_encoder)

"""Recipes: what they hold and refuse, and what the presets are made of."""

import dataclasses
import inspect
import json
from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import PRESETS, InputError, Recipe, TwoTower
from keras_lstm_dssm.data import training_batches
from keras_lstm_dssm.models import find_recipe
from keras_lstm_dssm.training import mine_negatives
from tests.settings.other_values import other_values

TRIGRAMS = 50_653
LSTM_96 = 96 * 288 + 288

COUNTS = {  # columns of the tables, all other parameters
    "lstm_32": (32 * 3, 32 * 96 + 96),  # 4.8 M
    "lstm_64": (64 * 3, 64 * 192 + 192),  # 9.6 M
    "lstm_96": (96 * 3, LSTM_96),  # 14.4 M
    "lstm_96_full": (96 * 4, 96 * 384 + 384 + 3 * 96 * 96),
    "bilstm_96": (2 * 96 * 3, 2 * LSTM_96),
    "rnn_288": (288, 288 * 288 + 288),  # 14.4 M
    "dssm": (288, 288 * 96 + 96),  # 14.4 M
    "clsm_win1": (288, 288 + 288 * 96 + 96),  # 14.4 M
    "clsm_win3": (3 * 288, 288 + 288 * 96 + 96),  # 43.2 M
    "clsm_win5": (5 * 288, 288 + 288 * 96 + 96),  # 72 M
    "best": (96 * 3 + 96, LSTM_96),
    "taught": (96 * 3 + 96, LSTM_96),
    "best_words": (96 * 3 + 96, LSTM_96),
    "word_sum": (0, 0),
}
PAPER = {
    "lstm_32": 4.8, "lstm_64": 9.6, "lstm_96": 14.4, "rnn_288": 14.4,
    "dssm": 14.4, "clsm_win1": 14.4, "clsm_win3": 43.2, "clsm_win5": 72.0,
}  # fmt: skip
SMALL = Recipe("DSSMEncoder", {"units": [2]})


@pytest.mark.parametrize("preset", PRESETS)
def test_parameter_counts(preset):
    """Spec 1: 50 k x 288 are 14.4 M. Tied, as one tower has the count.

    Without values: TensorFlow's allocator never gives memory back, and the
    largest would take 1 GB.
    """
    columns, others = COUNTS[preset]
    with keras.StatelessScope(initialize_variables=False):
        model = TwoTower.from_preset(preset, towers="tied")
    weights = model.query_encoder.trainable_variables
    tables = [w.shape[1] for w in weights if w.shape[0] == TRIGRAMS]
    assert sum(tables) == columns
    total = sum(weight.shape.num_elements() for weight in weights)
    assert total == TRIGRAMS * columns + others


def test_tables_are_the_papers_up_to_its_rounding_of_50_653():
    assert TRIGRAMS * COUNTS["lstm_96"][0] == 14_588_064
    for preset, millions in PAPER.items():
        assert 50_000 * COUNTS[preset][0] == round(millions * 1e6)


@pytest.mark.parametrize("name", PRESETS)
def test_json_round_trip(name):
    text = json.dumps(PRESETS[name].to_dict())
    assert Recipe.from_dict(json.loads(text)) == PRESETS[name]


def test_every_value_survives_the_round_trip():
    values = {
        **other_values(Recipe),
        "encoder": "CombinedEncoder",
        "encoder_config": {"cells": 2, "shares": [1, 2, 3]},
        "document_encoder_config": {"length_norm": 0.25},
        "threshold": None,
        "judged_negatives": 0,  # excludes hard_negatives
    }
    recipe = Recipe(**values)
    changed = {n for n, v in values.items() if v != getattr(Recipe(), n)}
    fields = {field.name for field in dataclasses.fields(Recipe)}
    assert fields - changed == {"judged_negatives"}
    assert json.loads(json.dumps(recipe.to_dict())) == values
    assert Recipe.from_dict(values) == recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "GRUEncoder"}, "encoder is 'GRUEncoder': expected one of"),
        ({"encoder": "TextEncoder"}, "expected one of BidirectionalLSTM"),
        ({"encoder": "FixedColumns"}, "encoder is 'FixedColumns': expected"),
        ({"encoder": ["LSTMEncoder"]}, "encoder is .'LSTMEncoder'.: expected"),
        ({"encoder_config": {"cellz": 3}}, "'cellz': 3.: expected arguments "),
        ({"encoder_config": None}, "encoder_config is None: expected"),
        ({"encoder_config": {"name": "mine"}}, "expected arguments of LSTM"),
        ({"document_encoder_config": {"units": 3}}, "which are alphabet, cel"),
        ({"towers": "equal"}, "expected one of separate, equal_start, tied"),
        ({"negatives": "hard"}, "'hard': expected one of random, in_batch"),
        ({"gamma": 0.0}, "gamma is 0.0: expected a finite number above 0"),
        ({"gamma": "10"}, "gamma is '10': expected a finite number above 0"),
        ({"gamma": None}, "gamma is None: expected a finite number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan: expected a"),
        ({"learning_rate": float("inf")}, "learning_rate is inf: expected a"),
        ({"threshold": -1.0}, "threshold is -1.0: expected a finite number"),
        ({"momentum_ends": 1.0}, "momentum_ends is 1.0: expected 0 or more"),
        ({"momentum_middle": None}, "momentum_middle is None: expected 0 or"),
        ({"momentum_fraction": -0.1}, "-0.1: expected 0 or more, and less"),
        ({"n": 0}, "n is 0: expected a whole number of 1 or more"),
        ({"epochs": 2.0}, "epochs is 2.0: expected a whole number of 0"),
        ({"batch_size": True}, "batch_size is True: expected a whole number"),
        ({"title_pairs": -1}, "title_pairs is -1: expected a whole num"),
        ({"hard_negatives": "1"}, "hard_negatives is '1': expected a whole"),
        ({"mine_every": 0}, "mine_every is 0: expected a whole number of 1"),
        ({"shuffle_buffer": 0}, "shuffle_buffer is 0: expected a whole number"),
        ({"mine_top": 0}, "mine_top is 0: expected a whole number of 1"),
        ({"mine_clusters": -1}, "mine_clusters is -1: expected a whole"),
        ({"judged_negatives": -1}, "judged_negatives is -1: expected a whole"),
        (
            {"hard_negatives": 1, "judged_negatives": 1},
            "both set: expected one of them; set the other to 0",
        ),
        ({"logq": True}, "negatives is 'random': set negatives to 'in_batch'"),
        ({"epochs": 0}, "epochs is 0 with the encoder LSTMEncoder"),
        ({"encoder": "WordSumEncoder"}, "epochs is 5 with the encoder WordSum"),
        ({"logq": 1}, "logq is 1: expected True or False"),
        ({"layers": 3}, "a recipe has no 'layers': expected one of batch_size"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_one_line(changes, message):
    for make in (
        lambda: Recipe.from_dict(changes),
        lambda: Recipe().replace(**changes),
    ):
        with pytest.raises(InputError, match=message) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_judged_negatives_replace_mined_ones():
    recipe = PRESETS["best"].replace(judged_negatives=2)
    assert (recipe.hard_negatives, recipe.judged_negatives) == (0, 2)


def test_a_recipe_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.epochs = 3  # type: ignore[misc]
    changed = SMALL.with_encoder(oov_buckets=8)
    assert changed.encoder_config == {"units": [2], "oov_buckets": 8}
    assert SMALL.encoder_config == {"units": [2]}
    assert changed.replace(encoder_config={"units": [2]}) == SMALL


def test_unknown_preset():
    with pytest.raises(
        InputError, match="preset 'gru': expected one of lstm_32, "
    ):
        find_recipe("gru")
    assert find_recipe(SMALL) is SMALL


DEFAULTS: dict[Any, dict[str, str]] = {  # argument -> attribute of Recipe
    TwoTower: {"negatives": "negatives", "n": "n"},
    dssm.NesterovMomentum: {
        "learning_rate": "learning_rate",
        "momentum": "momentum_ends",
        "threshold": "threshold",
    },
    dssm.CosineSoftmax: {"gamma": "gamma"},
    dssm.Distillation: {
        "gamma": "gamma",
        "weight": "teacher_weight",
        "temperature": "teacher_temperature",
        "teacher_gamma": "teacher_gamma",
    },
    dssm.NesterovSchedule: {
        "ends": "momentum_ends",
        "middle": "momentum_middle",
        "fraction": "momentum_fraction",
    },
    training_batches: {"shuffle_buffer": "shuffle_buffer"},
    mine_negatives: {"top": "mine_top", "clusters": "mine_clusters"},
}


@pytest.mark.parametrize("kind", DEFAULTS, ids=lambda kind: kind.__name__)
def test_defaults_agree(kind):
    parameters = inspect.signature(kind).parameters
    for argument, attribute in DEFAULTS[kind].items():
        assert parameters[argument].default == getattr(Recipe(), attribute)


def test_defaults_are_the_papers():
    """Section IV: n = 4, mu 0.9 / 0.995 / 0.9 in 2, 96 and 2 %."""
    recipe = PRESETS["lstm_96"]
    assert recipe == Recipe(encoder_config={"cells": 96})
    assert (recipe.negatives, recipe.n, recipe.gamma) == ("random", 4, 10.0)
    assert (
        recipe.momentum_ends, recipe.momentum_middle, recipe.momentum_fraction
    ) == (0.9, 0.995, 0.02)  # fmt: skip


def test_towers_of_a_preset_share_nothing_and_take_arguments():
    model = TwoTower.from_preset(
        "lstm_32",
        seed=3,
        negatives="in_batch",
        n=2,
        encoder_config={"cells": 2, "oov_buckets": 7},
    )
    query, document = model.query_encoder, model.document_encoder
    assert (model.negatives, model.n, model.seed) == ("in_batch", 2, 3)
    assert query.embedding.table.shape == (TRIGRAMS + 7, 6)
    assert (query.name, document.name) == ("query_encoder", "document_encoder")
    own = {id(v) for v in query.variables}
    assert own.isdisjoint(id(v) for v in document.variables)


@pytest.mark.parametrize("towers", ["equal_start", "separate", "tied"])
def test_how_towers_start(towers):
    model = SMALL.replace(towers=towers).build(seed=1)
    query, document = model.query_encoder, model.document_encoder
    assert model.tied == (query is document) == (towers == "tied")
    equal = [
        np.array_equal(one, other)
        for one, other in zip(query.weights, document.weights, strict=True)
        if np.any(one)  # a bias starts at 0 in any case
    ]
    assert set(equal) == {towers != "separate"}


def test_the_seed_decides_the_start_and_nothing_else_does():
    first, again, other = (SMALL.build(seed) for seed in (5, 5, 6))
    for one, two, three in zip(
        first.weights, again.weights, other.weights, strict=True
    ):
        np.testing.assert_array_equal(one, two)
        assert not np.any(one) or not np.array_equal(one, three)


def test_towers_that_start_equal_find_shared_trigrams_untrained():
    model = Recipe("DSSMEncoder", {"units": [96, 32]}).build(seed=1)
    queries = ["hotels in shanghai"] * 2
    near, far = model((queries, ["shanghai hotel", "rubber hose"]))
    assert near > 0.5 > far + 0.2


def test_the_documents_encoder_has_arguments_of_its_own():
    recipe = PRESETS["best"].with_encoder(cells=2, bag=2, sketch=3)
    assert [t.length_norm for t in recipe.build().towers] == [1.0, 0.5]
    (encoder,) = recipe.replace(towers="tied").build().towers
    assert encoder.length_norm == 1.0

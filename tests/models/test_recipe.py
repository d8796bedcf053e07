"""Recipes and kinds: what they hold and refuse, what presets are made of."""

import dataclasses
import inspect
import json
from itertools import compress
from typing import Any

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import PRESETS, InputError, Recipe, TwoTower
from keras_lstm_dssm.data import training_batches
from keras_lstm_dssm.models import (
    KEYVEC_PRESETS,
    KeyVecRecipe,
    build_model,
    find_recipe,
)
from keras_lstm_dssm.models.word_builders import build_keyvec
from keras_lstm_dssm.settings.kinds import (
    KINDS,
    ModelKind,
    kind_of,
    recipe_from_dict,
    register_kind,
)
from keras_lstm_dssm.settings.programs import ReportSettings
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training import mine_negatives
from tests.kit.equal import check_equal
from tests.settings.other_values import other_values

TRIGRAMS = 50_653
LSTM_96 = 96 * 288 + 288

# Columns of the tables, all other parameters. The paper counts 50,000 trigrams.
COUNTS = {
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
    "best_words": (96 * 3 + 96, LSTM_96),
    "word_sum": (0, 0),
}
SMALL = Recipe("DSSMEncoder", {"units": [2]})
KEYVEC = KeyVecRecipe(word_dimension=4, filters=2, units=3, dimension=5)


@pytest.mark.parametrize("preset", PRESETS)
def test_parameter_counts(preset):
    """Of one tower, and without values, of which the largest take 1 GB."""
    columns, others = COUNTS[preset]
    with keras.StatelessScope(initialize_variables=False):
        model = build_model(PRESETS[preset].replace(towers="tied"))
    weights = model.query_encoder.trainable_variables
    tables = [w.shape[1] for w in weights if w.shape[0] == TRIGRAMS]
    assert sum(tables) == columns
    total = sum(weight.shape.num_elements() for weight in weights)
    assert total == TRIGRAMS * columns + others


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


WRONG: dict[type, list[tuple[dict[str, Any], str]]] = {Recipe: [
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
    ({"hard_negatives": 1, "judged_negatives": 1},
     "both set: expected one of them; set the other to 0"),
    ({"logq": True}, "negatives is 'random': set negatives to 'in_batch'"),
    ({"logq": 1}, "logq is 1: expected True or False"),
    ({"layers": 3}, "a recipe has no 'layers': expected one of batch_size"),
], KeyVecRecipe: [
    ({"words": "letters"}, "words is 'letters': expected one of"),
    ({"units": 0}, "units is 0: expected a whole number of 1 or more"),
    ({"learning_rate": 0}, "learning_rate is 0: expected a finite"),
    ({"weighted": 1}, "weighted is 1: expected True or False"),
    ({"normalize": None}, "normalize is None: expected True or False"),
    ({"read_weight": -1}, "read_weight is -1: expected a finite"),
    ({"key_word_start": -1}, "key_word_start is -1: expected a finite"),
    ({"key_word_start": True}, "key_word_start is True: expected a fi"),
    ({"key_words_of": "body"}, "key_words_of is 'body': expected one of"),
    ({"word_weight": True}, "word_weight is True: expected a finite"),
    ({"dropout": 1}, "dropout is 1: expected 0 or more, and less than 1"),
    ({"windows": []}, r"windows is \[\]: expected whole numbers"),
    ({"windows": (0, 3)}, r"windows is \(0, 3\): expected whole numbers"),
    ({"depth": 2}, "a recipe has no 'depth'"),
]}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [(kind, *row) for kind, rows in WRONG.items() for row in rows],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_wrong_value_is_one_line(kind, changes, message):
    for make in (
        lambda: kind.from_dict(changes),
        lambda: kind().replace(**changes),
    ):
        with pytest.raises(InputError, match=message) as caught:
            make()
        assert "\n" not in str(caught.value)


REGISTER = "or import the module that registers it$"
WRONG_CLASSES: dict[type, list[tuple[dict[str, Any], str]]] = {Recipe: [
    ({"encoder": "nobody>Bag"},
     f"is 'nobody>Bag': expected one of .*LSTMEncoder.* {REGISTER}"),
    ({"encoder": "CosineSoftmax"}, "is 'CosineSoftmax': expected one"),
    ({"encoder": "GRUEncoder"}, "encoder is 'GRUEncoder': expected one of"),
    ({"encoder": "TextEncoder"}, "expected one of BidirectionalLSTM"),
    ({"encoder": "FixedColumns"}, "encoder is 'FixedColumns': expected"),
    ({"encoder": ["LSTMEncoder"]}, "encoder is .'LSTMEncoder'.: expected"),
    ({"encoder_config": {"cellz": 3}}, "'cellz': 3.: expected arguments "),
    ({"encoder_config": None}, "encoder_config is None: expected"),
    ({"encoder_config": {"cells": {3}}}, "expected values that config.json ca"),
    ({"encoder_config": {"name": "mine"}}, "expected arguments of LSTM"),
    ({"document_encoder_config": {"units": 3}}, "which are alphabet, cel"),
    ({"epochs": 0}, "epochs is 0 with the encoder LSTMEncoder"),
    ({"encoder": "WordSumEncoder"}, "epochs is 5 with the encoder WordSum"),
], dssm.ScorerRecipe: [
    ({"matcher": "nobody>Bag"},
     f"is 'nobody>Bag': expected one of .*MVLSTM.* {REGISTER}"),
    ({"matcher": "MVLTSM"}, "matcher is 'MVLTSM': expected one of"),
    ({"matcher_config": {"gamma": 3}}, "expected arguments of MVLSTM"),
]}  # fmt: skip


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (make(**values), message)
        for make, rows in WRONG_CLASSES.items()
        for values, message in rows
    ],
)
def test_a_wrong_class_is_refused_before_anything_is_built(
    recipe, message, tmp_path
):
    for call in (
        find_recipe,
        build_model,
        lambda recipe: dssm.train("none.tsv", recipe, output=tmp_path / "run"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            call(recipe)
        assert "\n" not in str(caught.value)
    assert not any(tmp_path.iterdir())


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
    with pytest.raises(InputError, match="'gru': expected one of lstm_32, "):
        find_recipe("gru")
    assert find_recipe(SMALL) is SMALL


# Argument -> attribute of Recipe.
DEFAULTS: dict[Any, dict[str, str]] = {
    TwoTower: {"negatives": "negatives", "n": "n"},
    dssm.NesterovMomentum: {
        "learning_rate": "learning_rate", "momentum": "momentum_ends",
        "threshold": "threshold",
    },
    dssm.CosineSoftmax: {"gamma": "gamma"},
    dssm.NesterovSchedule: {
        "ends": "momentum_ends", "middle": "momentum_middle",
        "fraction": "momentum_fraction",
    },
    training_batches: {"shuffle_buffer": "shuffle_buffer"},
    mine_negatives: {"top": "mine_top", "clusters": "mine_clusters"},
}  # fmt: skip


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
    recipe = PRESETS["lstm_32"].replace(
        negatives="in_batch", n=2, encoder_config={"cells": 2}, oov_buckets=7
    )
    model = build_model(recipe, seed=3)
    query, document = model.query_encoder, model.document_encoder
    assert (model.negatives, model.n, model.seed) == ("in_batch", 2, 3)
    assert query.embedding.table.shape == (TRIGRAMS + 7, 6)
    assert (query.name, document.name) == ("query_encoder", "document_encoder")
    own = {id(v) for v in query.variables}
    assert own.isdisjoint(id(v) for v in document.variables)


@pytest.mark.parametrize("towers", ["equal_start", "separate", "tied"])
def test_how_towers_start(towers):
    model = build_model(SMALL.replace(towers=towers), seed=1)
    query, document = model.query_encoder, model.document_encoder
    assert model.tied == (query is document) == (towers == "tied")
    equal = [
        np.array_equal(one, other)
        for one, other in zip(query.weights, document.weights, strict=True)
        if np.any(one)  # a bias starts at 0 in any case
    ]
    assert set(equal) == {towers != "separate"}


def test_the_seed_decides_the_start_and_nothing_else_does():
    for recipe, words in ((SMALL, {}), (KEYVEC, {"vocabulary": ["hat"]})):
        first, again, other = (
            build_model(recipe, seed, **words) for seed in (5, 5, 6)
        )
        check_equal(first, again)
        drawn = [not weight.path.endswith("bias") for weight in first.weights]
        weights = zip(drawn, first.weights, other.weights, strict=True)
        for is_drawn, one, three in weights:
            assert not is_drawn or not np.array_equal(one, three)
    firsts = [w.numpy().flat[0] for w in compress(first.weights, drawn)]
    assert len(set(firsts)) == len(firsts) > 8  # no two layers start equal


def test_towers_that_start_equal_find_shared_trigrams_untrained():
    model = build_model(Recipe("DSSMEncoder", {"units": [96, 32]}), seed=1)
    queries = ["hotels in shanghai"] * 2
    near, far = model((queries, ["shanghai hotel", "rubber hose"]))
    assert near > 0.5 > far + 0.2


def test_the_documents_encoder_has_arguments_of_its_own():
    recipe = PRESETS["best"].with_encoder(cells=2, bag=2, sketch=3)
    assert [t.length_norm for t in build_model(recipe).towers] == [1.0, 0.5]
    (encoder,) = build_model(recipe.replace(towers="tied")).towers
    assert encoder.length_norm == 1.0


def test_the_sizes_of_a_keyvec_of_the_paper():
    """The counts of parameters for a vocabulary of 30 words."""
    model = build_model("keyvec", vocabulary=[f"w{i}" for i in range(30)])
    counts = {
        "words": 31 * 100, "sentence_encoder": 50 * (3 + 4 + 5) * 100 + 150,
        "reader": 2 * 4 * (150 + 100 + 1) * 100 + 201,
        "document_encoder": 200 * 100 + 100, "word_scores": 100 * 30 + 30,
    }  # fmt: skip
    for name, count in counts.items():
        assert getattr(model, name).count_params() == count
    assert model.count_params() == sum(counts.values())
    assert model.max_sentences == 250 and model.words.max_words == 60


def test_words_start_from_vectors_or_trigrams():
    vectors = np.arange(8.0).reshape(2, 4)
    model = build_keyvec(KEYVEC, 0, ["hat", "red"], vectors)
    table = model.words.embedding.get_weights()[0]
    np.testing.assert_array_equal(table[1:], vectors)
    model = build_keyvec(KEYVEC.replace(words="trigrams"), 0, ["hat"])
    assert model.words.trigrams.max_words == 60
    assert model.key_vocabulary == ["hat"]


def test_all_forms_of_a_word_are_one():
    vectors = np.arange(8.0).reshape(2, 4)
    model = build_keyvec(
        KEYVEC.replace(words="stems"),
        0,
        ["hats", "heated"],
        vectors,
        ["hat", "heat"],
    )
    table = model.words.embedding.get_weights()[0]
    np.testing.assert_array_equal(table[1:], vectors)
    one, same, other = model.encode(
        ["Heated hats. A hat.", "Heating hat. A hats.", "Red hats. A hat."]
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    again = type(model).from_config(model.get_config())
    assert again.words.vocabulary == ["hat", "heat"]
    for each in (model, again):
        assert each.words.split == "stems"
        assert each.key_vocabulary == ["hats", "heated"]
        words = ["Hat", "red", "heating", "hats"]
        assert each.key_word_ids(words).tolist() == [1, 0, 2, 1]
        found = each.key_words("A hat.", 5)
        assert {word for word, _ in found} == {"hats", "heated"}


def test_presets_of_keyvec_differ_as_their_names_say():
    found = [
        (recipe.read_weight, recipe.word_weight, recipe.weighted)
        for recipe in KEYVEC_PRESETS.values()
    ]
    whole = (1, 1, True)
    assert found == [
        *[whole] * 3, (0, 1, True), (1, 0, True), (1, 1, False)
    ]  # fmt: skip
    document = KEYVEC_PRESETS["keyvec_document"]
    assert document.replace(key_words_of="summary") == KEYVEC_PRESETS["keyvec"]
    printed = KEYVEC_PRESETS["keyvec_printed"]
    assert printed == KeyVecRecipe(patience=3)
    assert not printed.normalize and not printed.excerpt
    mean = build_model("keyvec_mean", vocabulary=["hat"])
    assert not mean.weighted and not mean.reader.scores


PIECES = ("model", "check", "build", "training", "graphs", "report", "table")


def test_all_pieces_of_each_kind_are_there():
    """The paths are text, which no linter follows."""
    assert list(KINDS) == ["towers", "scorer", "keyvec"]
    for kind in KINDS.values():
        assert kind.load("model").kind == kind.recipe.kind == kind.name
        for piece in PIECES:
            name = getattr(kind, piece).rpartition(":")[2]
            assert getattr(kind.load(piece), "__name__", "") == name
    options = {name for kind in KINDS.values() for name in kind.options}
    known = [*dataclasses.fields(TrainingConfig)]
    known += dataclasses.fields(ReportSettings)
    assert options < {field.name for field in known}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_presets_are_found_and_written_and_know_their_kind(kind):
    for name, recipe in kind.presets.items():
        assert kind_of(recipe) is kind
        assert find_recipe(name) is recipe and find_recipe(recipe) is recipe
        written = recipe_from_dict(json.loads(json.dumps(recipe.to_dict())))
        assert type(written) is kind.recipe and written == recipe


def test_what_is_no_model():
    model = build_model(SMALL)
    assert kind_of(model) is KINDS["towers"]
    with pytest.raises(InputError, match="found a DSSMEncoder, expected a mod"):
        kind_of(model.query_encoder)


MINE = {"name": "mine", "presets": {}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"presets": {}}, "the name 'scorer' is taken by another kind or p"),
        ({"name": "mine"}, "the name 'arc_i' is taken by another kind or pr"),
        ({"marker": "matcher", **MINE}, "marker of the kind mine is 'matcher'"),
        ({"marker": "depth", **MINE}, "marker of the kind mine is 'depth': ex"),
    ],
)
def test_a_kind_is_told_from_the_others(changes, message):
    values: dict[str, Any] = changes
    kind: ModelKind = dataclasses.replace(KINDS["scorer"], **values)
    with pytest.raises(InputError, match=message):
        register_kind(kind)
    assert len(KINDS) == 3

"""KeyVecRecipe: values, presets, and the model they make."""

import json

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import (
    KEYVEC_PRESETS,
    KeyVecRecipe,
    find_recipe,
    recipe_from_dict,
)

SMALL = KeyVecRecipe(word_dimension=4, filters=2, units=3, dimension=5)


def test_the_sizes_of_the_paper():
    """The counts of parameters for a vocabulary of 30 words."""
    model = KEYVEC_PRESETS["keyvec"].build(0, [f"w{i}" for i in range(30)])
    counts = {
        "words": 31 * 100,
        "sentence_encoder": 50 * (3 + 4 + 5) * 100 + 150,
        "reader": 2 * 4 * (150 + 100 + 1) * 100 + 201,
        "document_encoder": 200 * 100 + 100,
        "word_scores": 100 * 30 + 30,
    }
    for name, count in counts.items():
        assert getattr(model, name).count_params() == count
    assert model.count_params() == sum(counts.values())
    assert model.max_sentences == 250 and model.words.max_words == 60


def test_a_seed_gives_one_model():
    one, same, other = (SMALL.build(seed, ["hat"]) for seed in (1, 1, 2))
    for left, right in zip(one.weights, same.weights, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(one.weights[0], other.weights[0])
    values = [w.numpy().flat[0] for w in one.weights if w.numpy().any()]
    assert len(set(values)) > 8


def test_words_start_from_vectors_or_trigrams():
    vectors = np.arange(8.0).reshape(2, 4)
    model = SMALL.build(0, ["hat", "red"], vectors)
    table = model.words.embedding.get_weights()[0]
    np.testing.assert_array_equal(table[1:], vectors)
    model = SMALL.replace(words="trigrams").build(0, ["hat"])
    assert model.words.trigrams.max_words == 60
    assert model.key_vocabulary == ["hat"]


def test_all_forms_of_a_word_are_one():
    vectors = np.arange(8.0).reshape(2, 4)
    model = SMALL.replace(words="stems").build(
        0, ["hats", "heated"], vectors, ["hat", "heat"]
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


@pytest.mark.parametrize("name", KEYVEC_PRESETS)
def test_presets_are_found_and_written(name):
    recipe = find_recipe(name)
    assert recipe is KEYVEC_PRESETS[name]
    values = json.loads(json.dumps(recipe.to_dict()))
    assert recipe_from_dict(values) == recipe
    assert find_recipe(recipe) is recipe


def test_presets_differ_as_their_names_say():
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
    mean = KEYVEC_PRESETS["keyvec_mean"].build(0, ["hat"])
    assert not mean.weighted and not mean.reader.scores


@pytest.mark.parametrize(
    ("change", "message"),
    [
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
        ({"dropout": 1}, "dropout is 1: expected a number of 0 or more"),
        ({"windows": []}, r"windows is \[\]: expected whole numbers"),
        ({"windows": (0, 3)}, r"windows is \(0, 3\): expected whole numbers"),
        ({"depth": 2}, "a recipe has no 'depth'"),
    ],
)
def test_wrong_values_are_explained(change, message):
    with pytest.raises(InputError, match=message):
        SMALL.replace(**change)

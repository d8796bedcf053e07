"""How the page compares words, and which titles it shows."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.search_page import (
    SearchPage,
    highlighted,
    letter_similarity,
    nearest_words,
    trigrams,
    word_similarities,
    words_of,
)
from tests.serving.tiny_models import save_encoder, save_function


def two_stage(text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
    """The outputs of a ranker with documents; the third column is empty."""
    rows = tf.size(text) + 0 * tf.size(k)
    return {
        "ids": tf.repeat([["t2", "t1", ""]], rows, 0),
        "titles": tf.repeat([["Wood glue", "Hex bolts", ""]], rows, 0),
        "scores": tf.repeat([[-0.5, -2.0, tf.float32.min]], rows, 0),
    }


@pytest.fixture
def models(tiny_models: Path, tmp_path) -> ModelRegistry:
    save_encoder(tmp_path / "query_encoder", offset=1.0)
    save_encoder(tmp_path / "document_encoder", offset=1.0)
    inputs = {"text": "string", "k": "int32"}
    save_function(tmp_path / "two_stage" / "3", two_stage, **inputs)
    (tmp_path / "retriever").symlink_to(tiny_models / "retriever")
    return ModelRegistry(tmp_path)


def test_words_by_encoder_and_by_letters(models):
    page = SearchPage(models, titles={"bolt": "Zinc hex bolt"})
    assert page.models()["models"] == [
        {"name": "retriever", "versions": [1]},
        {"name": "two_stage", "versions": [3]},
    ]
    found = page.search({"model": "retriever", "text": "blot", "k": 1})
    assert found["similarity"] == "encoder"
    (hit,) = found["hits"]
    assert hit["id"] == "bolt"
    assert "".join(p["text"] for p in hit["title"]) == "Zinc hex bolt"
    assert "click" not in hit
    # The tiny encoders compare [words + 1, bytes]: equal for words of a length.
    (line,) = found["words"]
    assert (line["word"], line["exact"]) == ("blot", False)
    first = line["nearest"][0]
    assert (first["word"], first["similarity"]) == ("zinc", 1)

    found = page.search({"model": "two_stage", "text": "hex blts", "k": 2})
    assert found["similarity"] == "letters"
    assert [hit["id"] for hit in found["hits"]] == ["t2", "t1"]
    assert [hit["score"] for hit in found["hits"]] == [-0.5, -2.0]
    assert found["hits"][1]["title"] == [
        {"text": "Hex", "strength": 1.0},
        {"text": " ", "strength": 0},
        {"text": "bolts", "strength": 0.444},
    ]
    assert found["words"][1] == {
        "word": "blts",
        "exact": False,
        "nearest": [
            {"word": "bolts", "similarity": 0.444, "shared": ["lts", "ts#"]}
        ],
    }


def test_words():
    assert words_of(["CSV writer", "the csv file"]) == [
        "csv", "writer", "the", "file",
    ]  # fmt: skip
    assert words_of(["a b c", "d"], maximum=2) == ["a", "b"]
    assert len(words_of([" ".join(map(str, range(999)))])) == 200


def test_a_misspelled_word_shares_trigrams():
    similarity = letter_similarity(["aray", "of"], ["array", "of", "mean"])
    # #ar, ray and ay# of 4 + 5 trigrams.
    np.testing.assert_allclose(similarity, [[6 / 9, 0, 0], [0, 1, 0]])
    assert nearest_words(
        ["aray", "x"], ["array", "of"], similarity[:, :2] * [[1], [0]], 0.4
    ) == [
        {
            "word": "aray",
            "exact": False,
            "nearest": [
                {
                    "word": "array",
                    "similarity": 0.667,
                    "shared": ["#ar", "ray", "ay#"],
                }
            ],
        }
    ]
    strength = word_similarities(["array", "of", "mean"], similarity, 0.4)
    assert strength == {"array": 6 / 9, "of": 1}
    assert word_similarities([], np.zeros((2, 0)), 0.4) == {}
    assert highlighted("Mean of an ARRAY.", strength) == [
        {"text": "Mean ", "strength": 0},
        {"text": "of", "strength": 1},
        {"text": " an ", "strength": 0},
        {"text": "ARRAY", "strength": 0.667},
        {"text": ".", "strength": 0},
    ]


@settings(deadline=None)
@given(st.text(), st.text(max_size=9))
def test_parts_give_the_title_and_similarities_are_shares(title, query):
    asked, words = words_of([query]), words_of([title])
    similarity = letter_similarity(asked, words)
    assert ((similarity >= 0) & (similarity <= 1)).all()
    for row, word in enumerate(asked):
        for column, other in enumerate(words):
            same = trigrams(word) == trigrams(other)
            assert not same or similarity[row, column] == 1
    parts = highlighted(title, word_similarities(words, similarity, 0.4))
    assert "".join(part["text"] for part in parts) == title

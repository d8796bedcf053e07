"""Negatives and frequencies that are attached to batches of clicks."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickFrequencies,
    ClickLog,
    CorpusNegatives,
    GivenNegatives,
)
from keras_lstm_dssm.data import batches as batches_module
from keras_lstm_dssm.errors import InputError

NEGATIVES = {"bolt": ["glue", "lamp", "hose"], "naïve": ["rope"], "hose": []}
CLICKED = ["lamp", "lamp", "naïve lamp", "lamp", "rope"]


def drawn(given: GivenNegatives, *queries: str, first: int = 0) -> np.ndarray:
    titles = [f"{query} clicked" for query in queries]
    pairs = tf.data.Dataset.from_tensors((list(queries), titles))
    (batch,) = given.attach(pairs, first)
    return batch[2]["negatives"].numpy().astype(str)


def test_each_query_gets_titles_of_its_own():
    found = drawn(GivenNegatives(NEGATIVES, 2), "naïve", "bolt", "naïve")
    assert found.shape == (3, 2)
    assert set(found[0]) == set(found[2]) == {"rope"}
    assert set(found[1]) <= set(NEGATIVES["bolt"])


def test_a_query_without_any_gets_its_clicked_title():
    found = drawn(GivenNegatives(NEGATIVES, 2), "hose", "never seen")
    assert found.tolist() == [["hose clicked"] * 2, ["never seen clicked"] * 2]


def test_texts_of_the_same_words_are_one():
    titles = {"Hex bolt": ["glue"], "HEX  BOLT": ["lamp"]}
    found = drawn(GivenNegatives(titles, 40), "hex bolt", "hex-bolt")
    assert set(found[0]) == {"glue", "lamp"}
    assert set(found[1]) == {"hex-bolt clicked"}
    given = GivenNegatives(titles, 40, split="alphanumeric")
    assert set(drawn(given, "hex-bolt")[0]) == {"glue", "lamp"}
    clicked = [*titles, "hex-bolt", "glue"]
    for split, share in (("space", 1 / 2), ("alphanumeric", 3 / 4)):
        frequencies = ClickFrequencies(clicked, split=split)
        found = frequencies(tf.constant(["hex bolt"]))
        np.testing.assert_allclose(found, [np.log(share)], 1e-6)


def test_all_titles_are_drawn_alike():
    found = drawn(GivenNegatives(NEGATIVES, 9000), "bolt")
    names, counts = np.unique(found, return_counts=True)
    assert set(names) == set(NEGATIVES["bolt"])
    np.testing.assert_allclose(counts / 9000, 1 / 3, atol=0.02)


def test_the_draw_is_of_seed_and_step():
    queries = ["bolt"] * 50
    pairs = tf.data.Dataset.from_tensors((queries, queries)).repeat(3)
    steps = [
        drawn(GivenNegatives(NEGATIVES, 1), *queries, first=step)
        for step in range(3)
    ]
    for batch, step in zip(
        GivenNegatives(NEGATIVES, 1).attach(pairs), steps, strict=True
    ):
        assert (batch[2]["negatives"].numpy().astype(str) == step).all()
    other_seed = drawn(GivenNegatives(NEGATIVES, 1, seed=1), *queries)
    assert (steps[0] != steps[1]).any() and (steps[0] != other_seed).any()


def test_the_negatives_of_a_batch_stay():
    pairs = tf.data.Dataset.from_tensors((["naïve"], ["lamp"]))
    first = GivenNegatives(NEGATIVES, 2).attach(pairs)
    (batch,) = GivenNegatives({"naïve": ["hose"]}, 1).attach(first)
    found = batch[2]["negatives"].numpy().astype(str)
    assert found.tolist() == [["rope", "rope", "hose"]]


@pytest.mark.parametrize(("titles", "k", "message"), [
    (NEGATIVES, 0, "k is 0: expected a whole number of 1 or more"),
    ({"bolt": []}, 1, "no query has a negative"),
])  # fmt: skip
def test_nothing_to_give(titles, k, message):
    with pytest.raises(InputError, match=message):
        GivenNegatives(titles, k)


TITLES = ["glue", "lamp", "Hose", "hose", "rope", "n\u00e4gel"]
"""Five titles: two have the same words."""


def of_corpus(
    negatives: CorpusNegatives, clicked: list[str], first: int | None = 0
) -> np.ndarray:
    pairs = tf.data.Dataset.from_tensors((["any"] * len(clicked), clicked))
    (batch,) = negatives.attach(pairs, first)
    return np.char.decode(batch[2]["negatives"].numpy().astype(bytes), "utf-8")


def test_the_negatives_of_a_corpus_are_all_other_titles_alike():
    clicked = ["lamp", "HOSE", "n\u00e4gel", "no title"]
    found = of_corpus(CorpusNegatives(TITLES, 9000), clicked)
    distinct = {"glue", "lamp", "hose", "rope", "n\u00e4gel"}
    for title, row in zip(clicked, found, strict=True):
        names, counts = np.unique(row, return_counts=True)
        assert {name.lower() for name in names} == distinct - {title.lower()}
        np.testing.assert_allclose(counts / 9000, 1 / len(names), atol=0.02)


def test_each_click_has_draws_of_its_own():
    titles = [f"title {number}" for number in range(1000)]
    found = of_corpus(CorpusNegatives(titles), ["title 7"] * 50)
    assert found.shape == (50, 4)
    assert len(np.unique(found)) > 170  # of 200 draws


def test_the_draw_of_a_corpus_is_of_seed_and_step():
    titles = [f"title {number}" for number in range(1000)]
    clicked = titles[:50]
    pairs = tf.data.Dataset.from_tensors((clicked, clicked)).repeat(3)
    steps = [
        of_corpus(CorpusNegatives(titles), clicked, step) for step in range(3)
    ]
    batches = CorpusNegatives(titles).attach(pairs)
    for batch, step in zip(batches, steps, strict=True):
        assert (batch[2]["negatives"].numpy().astype(str) == step).all()
    other_seed = of_corpus(CorpusNegatives(titles, seed=1), clicked)
    assert (steps[0] != steps[1]).any() and (steps[0] != other_seed).any()


def test_each_pass_over_a_dataset_may_draw_others():
    titles = [f"title {number}" for number in range(1000)]
    pairs = tf.data.Dataset.from_tensors((titles[:50], titles[:50])).repeat(2)

    def passes() -> list[list[bytes]]:
        data = CorpusNegatives(titles).attach(pairs, None)
        return [
            batch[2]["negatives"].numpy().ravel().tolist()
            for _ in range(2)
            for batch in data
        ]

    first = passes()
    assert len({tuple(drawn) for drawn in first}) == 4
    assert first == passes()  # another dataset


@pytest.mark.parametrize("make", [
    lambda seed: CorpusNegatives([*map(str, range(99))], 9, seed),
    lambda seed: GivenNegatives({"q": [*map(str, range(99))]}, 9, seed),
])  # fmt: skip
def test_any_int_is_a_seed(make):
    """Those of 64 bits have a draw of their own; others are folded to them."""

    def draws(seed: int) -> list[Any]:
        pairs = tf.data.Dataset.from_tensors((["q"], ["lamp"]))
        (first,), (second,) = (
            make(seed).attach(pairs, step) for step in (0, None)
        )
        return [
            each[2]["negatives"].numpy().tolist() for each in (first, second)
        ]

    assert draws(2**70 + 3) == draws(3) == draws(3 - 2**64)
    assert draws(2**64 - 5) == draws(-5) != draws(5)


def test_a_corpus_of_one_title_and_of_none():
    found = of_corpus(CorpusNegatives(["Rope", "rope"]), ["rope", "lamp"])
    assert found.tolist() == [["rope"] * 4] * 2
    with pytest.raises(InputError, match="found no title: expected one or mor"):
        CorpusNegatives([])
    with pytest.raises(InputError, match="k is 0: expected a whole number of"):
        CorpusNegatives(["rope"], 0)


def test_the_log_of_each_titles_share():
    """A title without a click counts as half a one."""
    titles = tf.constant([["lamp", "naïve lamp", "never clicked"]])
    found = ClickFrequencies(CLICKED)(titles)
    np.testing.assert_allclose(found, np.log([[3 / 5, 1 / 5, 1 / 10]]), 1e-6)


def test_counting_in_parts(monkeypatch):
    whole = ClickFrequencies(CLICKED, 64)
    monkeypatch.setattr(batches_module, "_TITLES_AT_ONCE", 2)
    np.testing.assert_array_equal(
        ClickFrequencies(iter(CLICKED), 64).log_q, whole.log_q
    )


def test_frequencies_of_clicks_and_of_negatives(tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"q\t{title}\n" for title in CLICKED))
    frequencies = ClickFrequencies.from_log(ClickLog(path))
    pairs = tf.data.Dataset.from_tensors((["q", "q"], ["lamp", "rope"]))
    (plain,) = frequencies.attach(pairs)
    np.testing.assert_allclose(plain[2]["log_q"], np.log([[0.6], [0.2]]), 1e-6)
    given = GivenNegatives({"q": ["new"]}, 2)
    ((_, _, extras),) = frequencies.attach(given.attach(pairs))
    assert set(extras) == {"negatives", "log_q"}
    expected = np.log([[0.6, 0.1, 0.1], [0.2, 0.1, 0.1]])
    np.testing.assert_allclose(extras["log_q"], expected, 1e-6)

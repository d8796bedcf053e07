import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.data import GivenNegatives
from keras_lstm_dssm.errors import InputError

TITLES = {"bolt": ["glue", "lamp", "hose"], "naïve": ["rope"], "hose": []}


def batches(*queries: str) -> tf.data.Dataset:
    titles = [f"{query} clicked" for query in queries]
    return tf.data.Dataset.from_tensors((list(queries), titles))


def drawn(given: GivenNegatives, *queries: str, first: int = 0) -> np.ndarray:
    (batch,) = given.attach(batches(*queries), first)
    return batch[2]["negatives"].numpy().astype(str)


def test_each_query_gets_titles_of_its_own():
    found = drawn(GivenNegatives(TITLES, 2), "naïve", "bolt", "naïve")
    assert found.shape == (3, 2)
    assert set(found[0]) == set(found[2]) == {"rope"}
    assert set(found[1]) <= set(TITLES["bolt"])


def test_a_query_without_any_gets_its_clicked_title():
    found = drawn(GivenNegatives(TITLES, 2), "hose", "never seen")
    assert found.tolist() == [["hose clicked"] * 2, ["never seen clicked"] * 2]


def test_queries_of_the_same_words_are_one():
    titles = {"Hex bolt": ["glue"], "HEX  BOLT": ["lamp"]}
    found = drawn(GivenNegatives(titles, 40), "hex bolt", "hex-bolt")
    assert set(found[0]) == {"glue", "lamp"}
    assert set(found[1]) == {"hex-bolt clicked"}
    given = GivenNegatives(titles, 40, split="alphanumeric")
    assert set(drawn(given, "hex-bolt")[0]) == {"glue", "lamp"}


def test_all_titles_are_drawn_alike():
    found = drawn(GivenNegatives(TITLES, 9000), "bolt")
    names, counts = np.unique(found, return_counts=True)
    assert set(names) == set(TITLES["bolt"])
    np.testing.assert_allclose(counts / 9000, 1 / 3, atol=0.02)


def test_the_draw_is_of_seed_and_step():
    queries = ["bolt"] * 50
    given = GivenNegatives(TITLES, 1)
    whole = given.attach(
        tf.data.Dataset.from_tensors((queries, queries)).repeat(3)
    )
    for step, batch in enumerate(whole):
        np.testing.assert_array_equal(
            batch[2]["negatives"].numpy().astype(str),
            drawn(GivenNegatives(TITLES, 1), *queries, first=step),
        )
    one, other = drawn(given, *queries), drawn(given, *queries, first=1)
    assert (one != other).any()
    assert (one != drawn(GivenNegatives(TITLES, 1, seed=1), *queries)).any()


@pytest.mark.parametrize(
    ("titles", "k", "message"),
    [
        (TITLES, 0, "must be 1 or more, not 0"),
        ({"bolt": []}, 1, "no query has a negative"),
    ],
)
def test_nothing_to_give(titles, k, message):
    with pytest.raises(InputError, match=message):
        GivenNegatives(titles, k)

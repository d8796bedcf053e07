"""Splits by query: nothing that is judged is trained on."""

import hashlib
import random
from collections import Counter

import pytest

from keras_lstm_dssm.data import click_grades
from keras_lstm_dssm.data.split import first_linked, near_duplicates, splits_of


def test_the_same_on_every_machine():
    """Spelling, spaces and punctuation do not change the split of a query."""
    queries = [f"query {n}" for n in range(1000)]
    splits = splits_of(queries, 5, 10)
    assert splits == splits_of([f"(QUERY)  {n}!" for n in range(1000)], 5, 10)
    assert Counter(splits) == {"train": 863, "test": 100, "dev": 37}
    digest = hashlib.sha256(" ".join(splits).encode()).hexdigest()
    assert digest[:16] == "d02c7ea579d918e8"


@pytest.mark.parametrize(("clicks", "grades"), [
    ([], []),
    ([0, 0], [0, 0]),
    ([1], [4]),
    ([1, 1, 1], [4, 4, 4]),
    ([2, 1], [4, 3]),
    ([30, 20, 10, 10], [4, 3, 3, 3]),
    ([573, 300, 100, 1, 0], [4, 3, 2, 1, 0]),
    # 69 %, 31 % and 12 % of the most clicked document.
    ([10_000, 6876, 6875, 3105, 3104, 1219, 1218], [4, 4, 3, 3, 2, 2, 1]),
])  # fmt: skip
def test_grades_by_share_of_the_most_clicked(clicks, grades):
    by_id = {f"d{index}": count for index, count in enumerate(clicks)}
    assert list(click_grades(by_id).values()) == grades
    assert list(click_grades(by_id)) == list(by_id)


def test_near_duplicates_equal_a_comparison_of_all_pairs():
    rng = random.Random(0)
    texts = [
        " ".join(rng.choices("abcdefgh", k=rng.randrange(1, 9)))
        for _ in range(200)
    ]

    def index(one: str, other: str) -> float:
        first, second = set(one.split()), set(other.split())
        return len(first & second) / len(first | second)

    for share in (0.5, 0.75, 1.0):
        expected = {
            (i, j)
            for i in range(len(texts))
            for j in range(i)
            if index(texts[i], texts[j]) >= share
        }
        found = list(near_duplicates(texts, share))
        assert set(found) == expected and len(found) == len(expected) > 100


def test_groups_are_joined_in_any_order():
    joins = [(3, 4), (5, 6), (4, 6), (1, 0)]
    for order in (joins, joins[::-1]):
        assert first_linked(8, order) == [0, 0, 2, 3, 3, 3, 3, 7]

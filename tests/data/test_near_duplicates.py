import random

from keras_lstm_dssm.data.split import joined, near_duplicates


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
        assert joined(8, order) == [0, 0, 2, 3, 3, 3, 3, 7]

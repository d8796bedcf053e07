import numpy as np
import pytest

from keras_lstm_dssm.data import click_grades


@pytest.mark.parametrize(
    ("clicks", "grades"),
    [
        ([], []),
        ([0, 0], [0, 0]),
        ([1], [4]),
        ([1, 1, 1], [4, 4, 4]),
        ([2, 1], [4, 3]),
        ([30, 20, 10, 10], [4, 3, 3, 3]),
        ([573, 300, 100, 1, 0], [4, 3, 2, 1, 0]),
        # 69 %, 31 % and 12 % of the most clicked document.
        ([10_000, 6876, 6875, 3105, 3104, 1219, 1218], [4, 4, 3, 3, 2, 2, 1]),
    ],
)
def test_grades_by_share_of_the_most_clicked(
    clicks: list[int], grades: list[int]
) -> None:
    by_id = {f"d{index}": count for index, count in enumerate(clicks)}
    assert list(click_grades(by_id).values()) == grades
    assert list(click_grades(by_id)) == list(by_id)


def test_ndcg_is_near_that_with_clicks_as_gains() -> None:
    """Only the top document of 30, 20, 10 and 10 clicks: not 99.9 %."""
    clicks = {"a": 30, "b": 20, "c": 10, "d": 10}
    discounts = 1 / np.log2(np.arange(2, 6))
    gains = 2.0 ** np.array(list(click_grades(clicks).values())) - 1
    by_clicks = 30 / (np.array([30, 20, 10, 10]) @ discounts)
    assert gains[0] / (gains @ discounts) == pytest.approx(by_clicks, abs=0.02)

"""Team draft: how two rankings are mixed, and what the clicks say."""

from random import Random

import numpy as np
import pytest

from keras_lstm_dssm.data.click_pages import Page
from keras_lstm_dssm.evaluation.interleaving import team_draft, verdicts

A, B = ["a", "b", "c", "d"], ["d", "a", "e", "b"]


def test_both_teams_pick_their_best_remaining_document():
    """Of three documents, each first pick is drawn: all cases occur."""
    found = {tuple(team_draft(A, B, 3, Random(seed))) for seed in range(99)}
    assert found == {
        ((0, 0), (1, 0), (0, 1)),  # a d b
        ((0, 0), (1, 0), (1, 2)),  # a d e
        ((1, 0), (0, 0), (0, 1)),  # d a b
        ((1, 0), (0, 0), (1, 2)),  # d a e
    }
    for seed in range(20):
        drafted = team_draft(A, B, 9, Random(seed))
        ids = [(A, B)[team][row] for team, row in drafted]
        assert len(set(ids)) == len(ids) >= 4
        teams = np.array([team for team, _ in drafted])
        assert abs((teams == 0).sum() - (teams == 1).sum()) <= 1
    assert team_draft([], B, 3, Random(1)) in ([], [(1, 0)])


def page(clicks: list[float], teams: list[int]) -> Page:
    drafted = {"versions": [3, 4], "teams": teams}
    attributes = {"model": "retriever", "interleaved": drafted}
    rows = range(1, len(clicks) + 1)
    return Page("q", ["t"] * len(clicks), clicks, [*rows])._replace(
        attributes=attributes
    )


def test_a_verdict_is_a_sign_test_of_pages():
    pages = [page([1, 0, 0], [1, 0, 1])] * 9 + [page([0, 3, 0], [1, 0, 1])]
    pages += [page([1, 1, 0], [1, 0, 1]), page([0, 0, 0], [1, 0, 1])]
    pages += [Page("q", ["t"], [1.0], [1])]
    for wrong in ({"versions": [1]}, {"versions": [1, 2], "teams": [7]}, 3):
        logged = {"model": "retriever", "interleaved": wrong}  # by others
        pages.append(pages[0]._replace(attributes=logged))
    (found,) = verdicts(pages)
    assert found[:4] == ("retriever", (3, 4), (1, 9), 1)
    assert found.p == pytest.approx(22 / 1024)  # 2 (1 + 10) / 2^10
    assert found.describe().endswith("users prefer version 4")
    (even,) = verdicts(pages[:2] + pages[9:])
    assert even.p == 1 and even.describe().endswith("no difference is shown")

from typing import Any

import pytest

from keras_lstm_dssm.data.click_lines import Pair
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.tables.dataset import DataSet, describe_words


class Log(list[Pair]):
    """A log in memory."""

    def count(self) -> int:
        return len(self)


def test_counts_by_hand() -> None:
    task = Task(
        {"q": "Red hex-bolt", "r": "lamp", "s": "?"},
        {"a": "hex bolt, hex", "b": "steel bolt", "c": "lamp"},
        {"q": {"a": 2, "b": 1, "c": 0}, "r": {"a": 1}, "s": {"c": 1}},
    )
    log: Any = Log([Pair("red bolts", "a x"), Pair("Red lamp", "a x")])
    titles = list(task.documents.values())
    data = DataSet(titles, log, task, "mrr@10", {"retrieve": task})
    assert describe_words(data) == pytest.approx(
        {
            "query_words": (3 + 1 + 0) / 3,
            "title_words": (3 + 2 + 1) / 3,
            "overlap": (2 / 3 + 1 / 3 + 0) / 3,  # hex, bolt; bolt; none
            "seen": 2 / 4,  # red, lamp
            "clicks_per_title": 2.0,
        }
    )

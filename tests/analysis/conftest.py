"""What the tests of pictures share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from keras_lstm_dssm.analysis import drawing, maps, scorer_report


@pytest.fixture
def drawn(monkeypatch) -> list[Any]:
    """Returns a list, to which the axes of each finished picture are added."""
    found: list[Any] = []
    original = drawing.drawing

    @contextmanager
    def watched(*arguments: Any, **options: Any) -> Iterator[list[Any]]:
        with original(*arguments, **options) as axes:
            yield axes
        found.extend(axes)

    for module in (drawing, maps, scorer_report):
        monkeypatch.setattr(module, "drawing", watched)
    return found

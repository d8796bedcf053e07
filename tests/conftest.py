"""Fixtures that all tests share."""

import pathlib
from collections.abc import Iterator

import keras
import pytest

SHARED_DATA = pathlib.Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def float64() -> Iterator[None]:
    """Runs a proof in double precision, Keras's own variables included."""
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx(before)


@pytest.fixture
def shared_data() -> pathlib.Path:
    """The folder of real data sets; the test is skipped without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data sets are not on this machine")
    return SHARED_DATA

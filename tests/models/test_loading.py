"""A file is checked while it is loaded, and what others build is not."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import loading

ADD_WEIGHT = keras.layers.Layer.add_weight
LARGE = (1, 1 << 21)  # of more numbers than the smallest that are compared


def build_large() -> tuple[int, ...]:
    layer = keras.layers.Dense(LARGE[1], use_bias=False)
    layer.build((None, LARGE[0]))
    return tuple(layer.kernel.shape)


@pytest.fixture
def path(tmp_path) -> Path:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.save(tmp_path / "small.keras")
    return tmp_path / "small.keras"


def test_another_thread_builds_what_it_likes(path):
    checks = loading._weights_of_file(path)
    with ThreadPoolExecutor(1) as other, checks:
        assert other.submit(build_large).result() == LARGE
        with pytest.raises(InputError, match="weight of shape .1, 2097152"):
            build_large()
    assert keras.layers.Layer.add_weight is ADD_WEIGHT


def test_threads_load_one_after_the_other(path):
    """The second one's check would end with the first one, and then stay."""
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with loading._weights_of_file(path):
            inside.set()
            assert leave.wait(30)

    with ThreadPoolExecutor(2) as others:
        waiting = [others.submit(first)]
        assert inside.wait(30)
        waiting.append(others.submit(loading.load_safely, path))
        assert not waiting[1].done()
        leave.set()
        model = [each.result(30) for each in waiting][1]
    assert np.shape(model.layers[0].kernel) == (3, 2)
    assert keras.layers.Layer.add_weight is ADD_WEIGHT

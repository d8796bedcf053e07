"""The peers compute what the model computes, and ratios point one way."""

import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.benchmarks.keras_towers import PaddedTower, SegmentTower
from keras_lstm_dssm.benchmarks.towers import compared, new_peers
from tests.benchmarks.peer_weights import copy_weights

TEXTS = tf.constant(["steel hex bolt", "glue", "18 volt drill kit", "bolt"])


def keras_towers() -> tuple[PaddedTower, SegmentTower]:
    padded, segments = PaddedTower(), SegmentTower()
    padded(PaddedTower.hash(TEXTS))
    segments(SegmentTower.hash(TEXTS))
    table, *lstm = segments.get_weights()
    padded.set_weights([np.pad(table, [(1, 0), (0, 0)]), *lstm])
    return padded, segments


def test_both_keras_forms_give_the_same_vectors() -> None:
    padded, segments = keras_towers()
    vectors = segments(SegmentTower.hash(TEXTS)).numpy()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        padded(PaddedTower.hash(TEXTS)), vectors, atol=1e-6
    )


def test_pytorch_gives_the_same_vectors() -> None:
    torch = pytest.importorskip("torch")
    from keras_lstm_dssm.benchmarks import torch_towers

    _, segments = keras_towers()
    table, kernel, recurrent, bias = segments.get_weights()
    tower = torch_towers.TorchTower()
    # Both have the gates in the order i, f, g, o; PyTorch has two biases.
    arrays = (table, kernel.T, recurrent.T, bias, np.zeros_like(bias))
    copy_weights(tower, arrays)
    with torch.no_grad():
        vectors = tower(torch_towers.hash_texts(TEXTS)).numpy()
    np.testing.assert_allclose(
        vectors, segments(SegmentTower.hash(TEXTS)), atol=1e-6
    )


def test_pytorch_has_the_threads_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    from keras_lstm_dssm.benchmarks import torch_towers

    given: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    monkeypatch.setattr(torch_towers, "usable_cores", lambda: 6)
    for threads in (1, None):
        towers = torch_towers.TorchTowers(threads)
        towers.encode(towers.prepare(["hex bolt", "glue"], 2))
    assert given == [1, 6]


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_missing_peer_is_one_line_with_its_installation(
    library: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("torch", "jax"):  # what a machine has does not matter
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(
            sys.modules, f"keras_lstm_dssm.benchmarks.{name}_towers", False
        )
    assert list(new_peers()) == ["keras_segments", "keras_padded"]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert sum(f"pip install {library}==" in line for line in lines) == 1


def test_ratios_are_ours_by_theirs() -> None:
    result: dict[str, Any] = compared(
        {
            "ours": 12.0,
            "torch_one_thread": 3.0,
            "torch_all_threads": 2.0,
            "keras_segments": 4.0,
            "keras_padded": 2.0,
            "exported": 9.0,
        },
        "titles_per_second",
    )
    assert result["ours"] == {"titles_per_second": 12.0}
    assert result["keras"] == {"titles_per_second": 4.0}
    assert result["torch"] == {"titles_per_second": 3.0}
    ratios = {k: v for k, v in result.items() if k.startswith("ratio_")}
    assert ratios == {
        "ratio_torch": 4.0,
        "ratio_torch_one_thread": 4.0,
        "ratio_torch_all_threads": 6.0,
        "ratio_keras": 3.0,
        "ratio_keras_segments": 3.0,
        "ratio_keras_padded": 6.0,
        "ratio_exported": 0.75,  # the exported one's rate by ours
    }

"""The suites of towers: peers compute what the model computes."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import peers, towers
from benchmarks.clocks import WARM_STEPS
from benchmarks.peers.keras_towers import (
    PaddedTower,
    SegmentTower,
)
from benchmarks.towers import batches_of, compared
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError
from tests.benchmarks.peer_weights import copy_weights
from tests.fresh_process import ROOT

TEXTS = tf.constant(["steel hex bolt", "glue", "18 volt drill kit", "bolt"])


@pytest.fixture(scope="module")
def log_path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "clicks.tsv"
    path.write_text("".join(f"bolt {n}\thex bolt {n}\n" for n in range(100)))
    return path


def keras_towers() -> tuple[PaddedTower, SegmentTower]:
    padded, segments = PaddedTower(96), SegmentTower(96)
    padded(PaddedTower.hash(TEXTS))
    segments(SegmentTower.hash(TEXTS))
    table, *lstm = segments.get_weights()
    padded.set_weights([np.pad(table, [(1, 0), (0, 0)]), *lstm])
    return padded, segments


def test_both_keras_forms_give_the_same_vectors():
    padded, segments = keras_towers()
    vectors = segments(SegmentTower.hash(TEXTS)).numpy()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        padded(PaddedTower.hash(TEXTS)), vectors, atol=1e-6
    )


def test_pytorch_gives_the_same_vectors():
    torch = pytest.importorskip("torch")
    from benchmarks.peers import torch_towers

    _, segments = keras_towers()
    table, kernel, recurrent, bias = segments.get_weights()
    tower = torch_towers.TorchTower(towers.HASHING.size, towers.CELLS)
    # Both have the gates in the order i, f, g, o; PyTorch has two biases.
    arrays = (table, kernel.T, recurrent.T, bias, np.zeros_like(bias))
    copy_weights(tower, arrays)
    with torch.no_grad():
        vectors = tower(torch_towers.packed(towers.hash_texts(TEXTS))).numpy()
    np.testing.assert_allclose(
        vectors, segments(SegmentTower.hash(TEXTS)), atol=1e-6
    )


def test_a_missing_peer_is_one_line_with_its_installation(
    tmp_path, monkeypatch, capsys
):
    for name in ("torch", "jax"):  # what a machine has does not matter
        monkeypatch.setitem(sys.modules, name, None)
    found = towers.contenders(tmp_path, [], [], ["hex bolt"], 1, 1)
    assert list(found) == [
        "ours", "exported", "keras_segments", "keras_padded",
    ]  # fmt: skip
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    for library, line in zip(("torch", "jax"), lines, strict=True):
        assert f"pip install {library}==" in line


def test_hashed_texts_are_read_as_they_were_written(tmp_path):
    hashed = towers.hash_texts(TEXTS)
    assert hashed.words_per_text.tolist() == [3, 1, 4, 1]
    assert len(hashed.trigrams_per_word) == 9
    assert hashed.trigrams_per_word.sum() == len(hashed.ids)
    pair = hashed, towers.hash_texts(TEXTS[:2])
    batches = [peers.as_batch(*pair), peers.as_batch(hashed)]
    peers.write_input(tmp_path, {"cells": 3}, train=batches, encode=[])
    assert peers.read_settings(tmp_path) == {"cells": 3}
    assert peers.read_batches(tmp_path, "encode") == []
    both, one = map(peers.texts_of, peers.read_batches(tmp_path, "train"))
    for found, expected in zip([*both, *one], [*pair, hashed], strict=True):
        for ours, theirs in zip(expected, found, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_peers_start_without_tensorflow():
    """Its threads and memory would be beside those of PyTorch or JAX."""
    code = (
        "import benchmarks.peers, sys\n"
        "print({'tensorflow', 'keras', 'keras_lstm_dssm'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == "set()\n", done.stderr


def test_peers_train_on_pairs_and_encode_titles(tmp_path, monkeypatch, capsys):
    four, two = towers.hash_texts(TEXTS), towers.hash_texts(TEXTS[:2])
    titles = [peers.as_batch(two), peers.as_batch(four)]
    peers.write_input(
        tmp_path, {}, train=[peers.as_batch(four, two)] * 3, encode=titles
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("train\nencode\n"))
    encoded: list[int] = []
    peers.answer_as_towers(
        tmp_path, lambda t: len(t.words_per_text), np.array, encoded.extend
    )
    assert encoded == [2, 4]
    ready, trained, seconds = capsys.readouterr().out.splitlines()
    assert (ready, trained) == ("ready", "[[4, 2], [4, 2], [4, 2]]")
    assert len(json.loads(seconds)) == 2


def test_ratios_are_ours_by_theirs():
    rates = {
        "ours": 12.0, "torch_one_thread": 3.0, "torch_all_threads": 2.0,
        "keras_segments": 4.0, "keras_padded": 2.0, "exported": 9.0,
    }  # fmt: skip
    result: dict[str, Any] = compared(rates, "titles_per_second")
    assert result["ours"] == {"titles_per_second": 12.0}
    assert result["keras"] == {"titles_per_second": 4.0}
    assert result["torch"] == {"titles_per_second": 3.0}
    ratios = {k: v for k, v in result.items() if k.startswith("ratio_")}
    # The last is the exported one's rate by ours.
    assert ratios == {
        "ratio_torch": 4.0, "ratio_torch_one_thread": 4.0,
        "ratio_torch_all_threads": 6.0, "ratio_keras": 3.0,
        "ratio_keras_segments": 3.0, "ratio_keras_padded": 6.0,
        "ratio_exported": 0.75,
    }  # fmt: skip


def test_full_batches_leave_out_the_rest(log_path):
    sizes = [len(query) for query, _ in batches_of(ClickLog(log_path), 48, 5)]
    assert sizes == [48] * (WARM_STEPS + 5)


def test_log_smaller_than_a_batch_is_refused(log_path):
    with pytest.raises(InputError, match="100 clicks.*--batch_size"):
        batches_of(ClickLog(log_path), 101, 1)

"""Vectors and ids on disk."""

import pickle

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import read_ids
from keras_lstm_dssm.export.bulk.parts import (
    read_vectors,
    write_ids,
    write_vectors,
)
from tests.limits import largest_file


def test_what_is_written_is_read(tmp_path):
    vectors = np.float32([[0.6, -0.8], [0, 1]])
    write_vectors(tmp_path / "v.npy", vectors)
    write_ids(tmp_path / "v.ids", ["上海 1", "b"])
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.npy"), vectors)
    assert read_ids(tmp_path / "v.ids", 2) == ["上海 1", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "v.ids",
        "v.npy",
    ]


def test_no_room_for_vectors(tmp_path):
    path = tmp_path / "v.npy"
    with largest_file(1000), pytest.raises(OSError) as caught:
        write_vectors(path, np.zeros([300, 4], np.float32))
    assert str(caught.value) == f"[Errno 28] the disk is full: '{path}'"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.zeros([2, 3]), r"found float64 \[2, 3\]"),
        (np.zeros([3], np.float32), r"found float32 \[3\]"),
        (np.zeros([0, 3], np.float32), r"found float32 \[0, 3\]"),
        (b"", "expected float32"),
        (b"\x93NUMPY", "expected float32"),
        (pickle.dumps([1]), "no array of numbers"),
    ],
)
def test_files_that_hold_no_vectors(tmp_path, content, message):
    path = tmp_path / "v.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_vectors(path, content)
    with pytest.raises(InputError, match=f"v.npy: .*{message}"):
        read_vectors(path)


def test_missing_files_and_archives(tmp_path):
    with pytest.raises(InputError, match="v.npy: .*No such file"):
        read_vectors(tmp_path / "v.npy")
    np.savez(tmp_path / "v.npz", a=np.zeros(2))
    with pytest.raises(InputError, match="v.npz: found several arrays"):
        read_vectors(tmp_path / "v.npz")


def test_ids_are_lines(tmp_path):
    for name in ("a\nb", "a\r"):
        with pytest.raises(
            InputError, match="v.ids: id 'a.*' has a line break"
        ):
            write_ids(tmp_path / "v.ids", ["x", name])
    write_ids(tmp_path / "v.ids", ["a"])
    with pytest.raises(InputError, match="v.ids: found 1 ids for 2 vectors"):
        read_ids(tmp_path / "v.ids", 2)

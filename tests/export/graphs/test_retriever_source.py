"""What a retriever is made of is written beside it, and read again."""

import json
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.retriever import RetrieverSource

HASHES = np.arange(48, dtype=np.uint8).reshape(3, 16)


@pytest.fixture
def extra(tmp_path) -> Path:
    RetrieverSource("sha", HASHES, "int8", 20).write(tmp_path)
    return tmp_path / "assets.extra"


def test_details_are_read_as_written(extra):
    details = RetrieverSource.read(extra.parent)
    assert details.encoder_sha256 == "sha"
    assert (details.kind, details.max_k) == ("int8", 20)
    np.testing.assert_array_equal(details.hashes, HASHES)


def wrong_hashes(extra: Path) -> None:
    np.save(extra / "title_hashes.npy", HASHES[:, :8])


def other_numbers(extra: Path) -> None:
    np.save(extra / "title_hashes.npy", HASHES.astype(np.int64))


def no_hashes(extra: Path) -> None:
    (extra / "title_hashes.npy").unlink()


def empty_hashes(extra: Path) -> None:
    (extra / "title_hashes.npy").write_bytes(b"")


def no_max_k(extra: Path) -> None:
    settings = {"encoder_sha256": "sha", "vectors": "int8"}
    (extra / "retriever.json").write_text(json.dumps(settings))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (wrong_hashes, r"damaged \(found uint8 \[3, 8\]\); export it with"),
        (other_numbers, r"damaged \(found int64 \[3, 16\]\)"),
        (no_hashes, "damaged .*No such file"),
        (empty_hashes, "damaged .*No data left"),
        (no_max_k, r"damaged \('max_k'\)"),
    ],
)
def test_damaged_details_are_one_line(damage, message, extra):
    damage(extra)
    with pytest.raises(InputError, match=message) as caught:
        RetrieverSource.read(extra.parent)
    assert "\n" not in str(caught.value)


def test_a_version_without_details(tmp_path):
    with pytest.raises(InputError, match="found no assets.extra/retriever.js"):
        RetrieverSource.read(tmp_path)

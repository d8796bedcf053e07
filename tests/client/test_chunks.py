"""Texts are divided into requests; hits are read from replies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstm_dssm_client.signatures import hits_from_outputs
from lstm_dssm_client.texts import chunked, chunked_pairs, rows_for


def test_requests_hold_512_texts_or_half_a_megabyte() -> None:
    half = 1 << 19
    sizes = [
        [len(text) for text in chunk]
        for chunk in chunked(
            ["a"] * 513 + ["b" * (half - 1), "", "c", "d" * (half + 9), "e"]
        )
    ]
    assert sizes == [[1] * 512, [1, half - 1, 0], [1], [half + 9], [1]]
    assert list(chunked([])) == []


@given(texts=st.lists(st.binary(max_size=30)), most=st.integers(1, 40))
def test_no_text_is_lost_or_moved(texts: list[bytes], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_BYTES", most)
        lists = [chunk.tolist() for chunk in chunked(texts, 5)]
    assert sum(lists, []) == texts
    for chunk in lists:
        assert 0 < len(chunk) <= 5
        assert len(chunk) == 1 or sum(map(len, chunk)) <= most


def test_pairs_count_with_both_texts() -> None:
    half = 1 << 19
    queries = [b"q"] * 513 + [b"a" * (half - 9), b"b", b"c" * half]
    documents = [b""] * 513 + [b"12345678", b"1", b"2"]
    parts = list(chunked_pairs(queries, documents))
    assert [len(part["query"]) for part in parts] == [512, 2, 1, 1]
    assert [q for part in parts for q in part["query"]] == queries
    assert [d for part in parts for d in part["document"]] == documents
    assert list(chunked_pairs([], [])) == []


def test_many_hits_are_fewer_queries() -> None:
    assert [rows_for(k) for k in (1, 512, 513, 1000, 2**20)] == [
        512, 512, 511, 262, 1,
    ]  # fmt: skip


def test_columns_beyond_k_are_a_neighbours() -> None:
    """A server that batches pads each reply to the batch's largest k."""
    ids = np.array([[b"a", b"b", b"", b""], [b"c", b"", b"", b""]], object)
    scores = np.float32([[0.5, 0.25, -2, -2], [1, -2, -2, -2]])
    hits = [[("a", 0.5), ("b", 0.25)], [("c", 1.0)]]
    assert hits_from_outputs(ids, scores, 3) == hits
    assert hits_from_outputs(ids[:, :2], scores[:, :2], 3) == hits
    assert hits_from_outputs(ids, scores, 1) == [hits[0][:1], hits[1]]

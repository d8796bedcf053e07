"""Texts, pairs and tags are checked, and divided into requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.texts import (
    chunked,
    chunked_pairs,
    pairs_as_bytes,
    query_as_bytes,
    rows_for,
    tags_as_bytes,
)


def test_texts_of_pairs():
    assert query_as_bytes("é") == query_as_bytes(b"\xc3\xa9") == b"\xc3\xa9"
    assert pairs_as_bytes(iter("ab"), [b"c", "d"]) == (
        [b"a", b"b"], [b"c", b"d"],
    )  # fmt: skip
    with pytest.raises(InputError, match=r"query is \['a'\] \(list\), expect"):
        query_as_bytes(["a"])
    with pytest.raises(InputError, match="found 1 queries and 2 documents: gi"):
        pairs_as_bytes(["a"], ["b", "c"])
    with pytest.raises(InputError, match="got one text, 'bolt'"):
        pairs_as_bytes(["a"], "bolt")


def test_tags():
    assert tags_as_bytes([]) == b""
    assert tags_as_bytes(iter(["in stock", " é "])) == "in stock,é".encode()
    for tag in ("", " ", "a,b", "a\tb", "a\nb"):
        with pytest.raises(InputError, match="found the tag .* expected a tag"):
            tags_as_bytes(["steel", tag])
    with pytest.raises(InputError, match="got 'steel'; write .tag."):
        tags_as_bytes("steel")
    with pytest.raises(InputError, match="tags, got 3"):
        tags_as_bytes(3)


def test_requests_hold_512_texts_or_half_a_megabyte():
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
def test_no_text_is_lost_or_moved(texts, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lstm_dssm_client.texts._BYTES", most)
        lists = [chunk.tolist() for chunk in chunked(texts, 5)]
    assert sum(lists, []) == texts
    for chunk in lists:
        assert 0 < len(chunk) <= 5
        assert len(chunk) == 1 or sum(map(len, chunk)) <= most


def test_pairs_count_with_both_texts():
    half = 1 << 19
    queries = [b"q"] * 513 + [b"a" * (half - 9), b"b", b"c" * half]
    documents = [b""] * 513 + [b"12345678", b"1", b"2"]
    parts = list(chunked_pairs(queries, documents))
    assert [len(part["query"]) for part in parts] == [512, 2, 1, 1]
    assert [q for part in parts for q in part["query"]] == queries
    assert [d for part in parts for d in part["document"]] == documents
    assert list(chunked_pairs([], [])) == []


def test_many_hits_are_fewer_queries():
    assert [rows_for(k) for k in (1, 512, 513, 1000, 2**20)] == [
        512, 512, 511, 262, 1,
    ]  # fmt: skip

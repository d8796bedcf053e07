"""Texts, pairs and tags are checked before they are sent."""

import pytest

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.texts import pairs_as_bytes, query_as_bytes, tags_as_bytes


def test_texts_of_pairs() -> None:
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


def test_tags() -> None:
    assert tags_as_bytes([]) == b""
    assert tags_as_bytes(iter(["in stock", " é "])) == "in stock,é".encode()
    for tag in ("", " ", "a,b", "a\tb", "a\nb"):
        with pytest.raises(InputError, match="found the tag .* expected a tag"):
            tags_as_bytes(["steel", tag])
    with pytest.raises(InputError, match="got 'steel'; write .tag."):
        tags_as_bytes("steel")
    with pytest.raises(InputError, match="tags, got 3"):
        tags_as_bytes(3)

"""What clients send, in which requests, and what they make of the replies."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstm_dssm_client import InputError, ServingError, Signature, TensorInfo
from lstm_dssm_client.signatures import (
    chunked,
    chunked_pairs,
    hits_from_outputs,
    pairs_as_bytes,
    query_as_bytes,
    rows_for,
    tags_as_bytes,
)
from lstm_dssm_client.text_client import (
    AsyncTextClient,
    GetMetadata,
    Metadata,
    Predict,
    Request,
    run_at_once,
)

Method = Callable[[AsyncTextClient], Coroutine[Any, Any, Any]]


class Reply:
    """The outputs of a version, as `text_client.PredictReply`."""

    def __init__(self, version: int | None, **outputs: np.ndarray) -> None:
        self.version = version
        self._outputs = outputs

    def outputs(self, _: Signature | None) -> dict[str, np.ndarray] | None:
        return self._outputs


def metadata(version: int, **dtypes: str) -> Metadata:
    """The metadata of an encoder, with inputs `[batch]` of these dtypes."""
    inputs = {
        name: TensorInfo(dtype, (None,))
        for name, dtype in (dtypes or {"text": "string"}).items()
    }
    return Metadata(version, {"serving_default": Signature(inputs, {})})


def answered(method: Method, *newest: int) -> Any:
    """Runs `encode` or `score_pairs` on a server whose version changes.

    Each request finds the next of `newest` as the only version. A text's
    vector is [version, length], a document's score the version.
    """
    numbers = iter(newest)

    async def send(request: Request) -> Any:
        number = next(numbers, None)
        assert number, "another request follows"
        if isinstance(request, GetMetadata):
            return metadata(number)
        assert isinstance(request, Predict)
        if request.version != number:
            raise ServingError("gone", HTTPStatus.NOT_FOUND)
        rows = request.inputs.get("text", request.inputs.get("document"))
        assert rows is not None
        vectors = np.float32([[number, len(text)] for text in rows])
        scores = np.full(len(rows), number, np.float32)
        return Reply(number, embedding=vectors, score=scores)

    return run_at_once(method(AsyncTextClient(send)))


TEXTS = ["a" * size for size in range(1, 1026)]  # three requests


@pytest.mark.parametrize(
    "versions",
    [(1, 1, 1, 1), (1, 1, 2, 2, 2, 2, 2), (1, 2, 2, 2, 3, 3, 3, 3, 3)],
)
def test_all_vectors_are_of_one_version(versions):
    vectors = answered(lambda c: c.encode(TEXTS, "m"), *versions)
    wanted = [[versions[-1], size] for size in range(1, 1026)]
    assert vectors.tolist() == wanted
    scores = answered(lambda c: c.score_pairs(TEXTS, TEXTS, "m"), *versions)
    assert scores.tolist() == [versions[-1]] * 1025


def test_versions_that_answer_in_turn():
    message = "versions 1, 2 answered in turn, in each of 3 attempts"
    with pytest.raises(InputError, match=message):
        answered(lambda c: c.encode(TEXTS, "m"), 1, 2, 2, 1, 1, 2)


class Unanswered(Exception):
    """Raised where a request follows on the last reply."""


class Server:
    """A client and its server, which sends the replies of a test."""

    def __init__(self) -> None:
        self.client = AsyncTextClient(self._send)
        self._kinds: list[str] = []
        self._replies: list[Any] = []

    async def _send(self, request: Request) -> Any:
        self._kinds.append(type(request).__name__)
        if not self._replies:
            raise Unanswered
        return self._replies.pop(0)

    def sent(self, method: Method, *replies: Any) -> list[str]:
        """Returns the kinds of requests until the last of the replies."""
        self._kinds, self._replies = [], [*replies]
        with suppress(Unanswered):
            run_at_once(method(self.client))
        return self._kinds


def test_a_signature_is_read_once_for_each_version():
    server, text = Server(), {"text": np.array([b"a"], object)}
    both, alone = ["GetMetadata", "Predict"], ["Predict"]

    def predict(client: AsyncTextClient) -> Coroutine[Any, Any, Any]:
        return client.predict("m", text)

    assert server.sent(predict, metadata(1), Reply(1)) == both
    assert server.sent(predict, Reply(1)) == alone
    assert server.sent(predict, Reply(2)) == alone
    assert server.sent(predict, metadata(2), Reply(2)) == both
    assert server.sent(lambda c: c.predict("m", text, (), 2), Reply(2)) == alone
    # By another number and in another model it is another signature.
    third = metadata(3), Reply(3)
    assert server.sent(lambda c: c.predict("m", text, (), 3), *third) == both
    assert server.sent(lambda c: c.predict("n", text), *third) == both


def test_what_does_not_fit_is_compared_with_the_signature_of_now():
    server, x = Server(), np.float32([1])
    integers, floats = metadata(1, x="int32"), metadata(2, x="float32")
    message = r"model m: input 'x' is float32 \(1,\), expected int32 \(None,\)"

    def predict(client: AsyncTextClient) -> Coroutine[Any, Any, Any]:
        return client.predict("m", {"x": x})

    for _ in range(2):
        with pytest.raises(InputError, match=message):
            server.sent(predict, integers)
    kinds = server.sent(predict, floats, Reply(2))
    assert kinds == ["GetMetadata", "Predict"]
    assert server.sent(predict, Reply(2)) == ["Predict"]


def test_texts_of_pairs():
    assert query_as_bytes("é") == query_as_bytes(b"\xc3\xa9") == b"\xc3\xa9"
    assert pairs_as_bytes(iter("ab"), [b"c", "d"]) == (
        [b"a", b"b"], [b"c", b"d"],
    )  # fmt: skip


def test_tags():
    assert tags_as_bytes([]) == b""
    assert tags_as_bytes(iter(["in stock", " é "])) == "in stock,é".encode()
    # Composed, as by another program; bytes that are no UTF-8 stay.
    assert tags_as_bytes(["e\u0301", b"\xff"]) == "é,".encode() + b"\xff"
    for tag in ("", " ", "a,b", "a\tb", "a\nb"):
        with pytest.raises(InputError, match="found the tag .* expected a tag"):
            tags_as_bytes(["steel", tag])
    with pytest.raises(InputError, match="got 'steel'; write .tag."):
        tags_as_bytes("steel")
    with pytest.raises(InputError, match="tags, got 3"):
        tags_as_bytes(3)


def test_requests_hold_512_texts_or_half_a_megabyte():
    half = 1 << 19
    long = ["b" * (half - 1), "", "c", "d" * (half + 9), "e"]
    sizes = [[*map(len, chunk)] for chunk in chunked(["a"] * 513 + long)]
    assert sizes == [[1] * 512, [1, half - 1, 0], [1], [half + 9], [1]]
    assert list(chunked([])) == []


@given(texts=st.lists(st.binary(max_size=30)), most=st.integers(1, 40))
def test_no_text_is_lost_or_moved(texts, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lstm_dssm_client.signatures._BYTES", most)
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


def test_columns_beyond_k_are_a_neighbours():
    """A server that batches pads each reply to the batch's largest k."""
    ids = np.array([[b"a", b"b", b"", b""], [b"c", b"", b"", b""]], object)
    scores = np.float32([[0.5, 0.25, -2, -2], [1, -2, -2, -2]])
    hits = [[("a", 0.5, "a"), ("b", 0.25, "b")], [("c", 1.0, "c")]]
    assert hits_from_outputs(ids, scores, 3) == hits
    assert hits_from_outputs(ids[:, :2], scores[:, :2], 3) == hits
    assert hits_from_outputs(ids, scores, 1) == [hits[0][:1], hits[1]]
    titles = np.array(
        [[b"A", b"B", b"", b""], [b"\xff", b"", b"", b""]], object
    )
    found = hits_from_outputs(ids, scores, 2, titles)
    assert found == [
        [("a", 0.5, "A"), ("b", 0.25, "B")],
        [("c", 1.0, "\ufffd")],
    ]

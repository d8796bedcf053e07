"""What clients send, and how they put the replies together."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest

from lstm_dssm_client import InputError, ServingError, Signature, TensorInfo
from lstm_dssm_client.text_client import (
    GetMetadata,
    Metadata,
    Predict,
    Requests,
    TextRequests,
)


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


def answered(requests: Requests[Any], *newest: int) -> Any:
    """Runs `encode` or `score_pairs` on a server whose version changes.

    Each request finds the next of `newest` as the only version. A text's
    vector is [version, length], a document's score the version.
    """
    request = next(requests)
    for number in newest:
        try:
            if isinstance(request, GetMetadata):
                request = requests.send(metadata(number))
                continue
            assert isinstance(request, Predict)
            if request.version != number:
                gone = ServingError("gone", HTTPStatus.NOT_FOUND)
                request = requests.throw(gone)
                continue
            rows = request.inputs.get("text", request.inputs.get("document"))
            assert rows is not None
            vectors = np.float32([[number, len(text)] for text in rows])
            scores = np.full(len(rows), number, np.float32)
            request = requests.send(
                Reply(number, embedding=vectors, score=scores)
            )
        except StopIteration as end:
            return end.value
    raise AssertionError("another request follows")


TEXTS = ["a" * size for size in range(1, 1026)]  # three requests


@pytest.mark.parametrize(
    "versions",
    [
        (1, 1, 1, 1),
        (1, 1, 2, 2, 2, 2, 2),
        (1, 2, 2, 2, 3, 3, 3, 3, 3),
    ],
)
def test_all_vectors_are_of_one_version(versions: tuple[int, ...]) -> None:
    vectors = answered(TextRequests().encode(TEXTS, "m", None), *versions)
    wanted = [[versions[-1], size] for size in range(1, 1026)]
    assert vectors.tolist() == wanted
    scores = answered(
        TextRequests().score_pairs(TEXTS, TEXTS, "m", None), *versions
    )
    assert scores.tolist() == [versions[-1]] * 1025


def test_versions_that_answer_in_turn() -> None:
    with pytest.raises(
        InputError, match="versions 1, 2 answered in turn, in each of 3 att"
    ):
        answered(TextRequests().encode(TEXTS, "m", None), 1, 2, 2, 1, 1, 2)


def sent(requests: Requests[Any], *replies: Any) -> list[str]:
    """Returns the kinds of requests until the last of the replies."""
    kinds = [type(next(requests)).__name__]
    for reply in replies:
        try:
            kinds.append(type(requests.send(reply)).__name__)
        except StopIteration:
            break
    return kinds


def test_a_signature_is_read_once_for_each_version() -> None:
    client, text = TextRequests(), {"text": np.array([b"a"], object)}
    both, alone = ["GetMetadata", "Predict"], ["Predict"]
    assert sent(client.predict("m", text), metadata(1), Reply(1)) == both
    assert sent(client.predict("m", text), Reply(1)) == alone
    assert sent(client.predict("m", text), Reply(2)) == alone
    assert sent(client.predict("m", text), metadata(2), Reply(2)) == both
    assert sent(client.predict("m", text, (), 2), Reply(2)) == alone
    # By another number and in another model it is another signature.
    for model, version in (("m", 3), ("n", None)):
        request = client.predict(model, text, (), version)
        assert sent(request, metadata(3), Reply(3)) == both


def test_what_does_not_fit_is_compared_with_the_signature_of_now() -> None:
    client, x = TextRequests(), np.float32([1])
    integers, floats = metadata(1, x="int32"), metadata(2, x="float32")
    message = r"model m: input 'x' is float32 \(1,\), expected int32 \(None,\)"
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            sent(client.predict("m", {"x": x}), integers)
    kinds = sent(client.predict("m", {"x": x}), floats, Reply(2))
    assert kinds == ["GetMetadata", "Predict"]
    assert sent(client.predict("m", {"x": x}), Reply(2)) == ["Predict"]


@pytest.mark.parametrize(
    ("requests_of", "message"),
    [
        (lambda c: c.search(["x"], 0, "m", None), "k is 0; expected 1"),
        (lambda c: c.search(["x"], 2**31, "m", None), r"below 2\*\*31"),
        (lambda c: c.predict("m", {}, version=-1), "version is -1; expected"),
        (lambda c: c.predict("m", {}, version=2**63), "a number of 63 bits"),
        (
            lambda c: c.predict("m", {"x": np.zeros([0, 3])}),
            "input 'x' has no rows; expected one or more",
        ),
    ],
)
def test_what_cannot_be_sent(
    requests_of: Callable[[TextRequests], Requests[Any]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        next(requests_of(TextRequests()))

"""What clients send, and how they put the answers together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorflow_serving.apis.predict_pb2 import PredictResponse

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.client import calls as client_calls
from keras_lstm_dssm.serving.client.calls import Steps, chunked, encode
from keras_lstm_dssm.serving.tensors import to_proto


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
        patch.setattr(client_calls, "_BYTES", most)
        chunks = [chunk.tolist() for chunk in chunked(texts, 5)]
    assert sum(chunks, []) == texts
    for chunk in chunks:
        assert 0 < len(chunk) <= 5
        assert len(chunk) == 1 or sum(map(len, chunk)) <= most


def test_many_hits_are_fewer_queries() -> None:
    assert [client_calls.rows_for(k) for k in (1, 512, 513, 1000, 2**20)] == [
        512, 512, 511, 262, 1,
    ]  # fmt: skip


def answered(steps: Steps[np.ndarray], *versions: int) -> np.ndarray:
    """Runs `encode` on a server of these versions, one a request.

    A text's vector is [version, length].
    """
    call = next(steps)
    for version in versions:
        texts = call.request.inputs["text"].string_val
        reply = PredictResponse()
        reply.model_spec.version.value = version
        vectors = np.float32([[version, len(text)] for text in texts])
        to_proto(vectors, reply.outputs["embedding"])
        try:
            call = steps.send(reply)
        except StopIteration as end:
            assert version == versions[-1]
            return end.value
    raise AssertionError("it asks for more")


TEXTS = ["a" * size for size in range(1, 1026)]  # three requests


@pytest.mark.parametrize(
    "versions", [(1, 1, 1), (1, 2, 2, 2, 2), (1, 1, 2, 2, 3, 3, 3, 3)]
)
def test_all_vectors_are_of_one_version(versions: tuple[int, ...]) -> None:
    vectors = answered(encode(TEXTS, "m", None), *versions)
    wanted = [[versions[-1], size] for size in range(1, 1026)]
    assert vectors.tolist() == wanted


def test_versions_that_answer_in_turn() -> None:
    with pytest.raises(
        InputError, match="versions 1, 2 answered in turn, 3 times; say which"
    ):
        answered(encode(TEXTS, "m", None), 1, 2, 1, 2, 1, 2)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (client_calls.search(["x"], 0, "m", None), "k is 0; expected 1"),
        (client_calls.search(["x"], 2**31, "m", None), r"below 2\*\*31"),
        (client_calls.predict("m", {}, version=-1), "version is -1; expected"),
        (client_calls.predict("m", {}, version=2**63), "a number of 63 bits"),
    ],
)
def test_numbers_that_a_message_cannot_hold(
    steps: Steps[object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        next(steps)

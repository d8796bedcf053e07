from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.export.cpp_loader import CppError, run_in_cpp
from tests.serving.wire import predict_request


@pytest.fixture(scope="module")
def encoder(tiny_models: Path) -> Path:
    return tiny_models / "query_encoder" / "2"


def test_the_same_numbers_as_in_python(encoder: Path) -> None:
    # Longer and shorter than a small string holds (22 bytes), NUL, no UTF-8.
    texts = [b"ab cd", b"", b"a\0b", b"\xff\xfe", b"long " * 50]
    requests = [
        predict_request("query_encoder", text=np.array(batch, object))
        for batch in (texts, [])
    ]
    ((outputs, nothing),) = run_in_cpp({encoder: requests})
    assert nothing["embedding"].shape == (0, 2)
    got = outputs["embedding"]
    assert got.dtype == np.float32
    want = tf.saved_model.load(str(encoder)).signatures["serving_default"](
        text=tf.constant(texts)
    )["embedding"]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(got[0], [4 / 41**0.5, 5 / 41**0.5], rtol=1e-6)


def test_strings_come_out_and_numbers_go_in(tiny_models: Path) -> None:
    # One load, two runs.
    requests = [
        predict_request("retriever", text=["bolt"], k=np.int32([k]))
        for k in (1, 3)
    ]
    retriever = tiny_models / "retriever" / "1"
    ((one, three),) = run_in_cpp({retriever: requests})
    assert one["ids"].tolist() == [[b"bolt"]]
    assert set(three["ids"][0]) == {b"bolt", b"steel angle", b"shelf bracket"}
    assert three["scores"].shape == (1, 3)


def test_ops_of_tf_text_are_not_found_without_its_libraries(
    encoder: Path,
) -> None:
    with pytest.raises(
        CppError,
        match="TF_LoadSessionFromSavedModel: code 5: .*Op type not registered",
    ):
        run_in_cpp({encoder: []}, text_ops=False)

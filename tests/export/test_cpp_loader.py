from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.export.cpp_loader import CppError, run_in_cpp


@pytest.fixture(scope="module")
def encoder(tiny_models: Path) -> Path:
    return tiny_models / "query_encoder" / "2"


def test_the_same_numbers_as_in_python(encoder: Path) -> None:
    # Longer and shorter than a small string holds (22 bytes), NUL, no UTF-8.
    texts = [b"ab cd", b"", b"a\0b", b"\xff\xfe", b"long " * 50]
    got = run_in_cpp(encoder, texts)
    assert got.dtype == np.float32
    want = tf.saved_model.load(str(encoder)).signatures["serving_default"](
        text=tf.constant(texts)
    )["embedding"]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(got[0], [4 / 41**0.5, 5 / 41**0.5], rtol=1e-6)


def test_no_texts(encoder: Path) -> None:
    assert run_in_cpp(encoder, []).shape == (0, 2)


def test_ops_of_tf_text_are_not_found_without_its_libraries(
    encoder: Path,
) -> None:
    with pytest.raises(
        CppError,
        match="TF_LoadSessionFromSavedModel: code 5: .*Op type not registered",
    ):
        run_in_cpp(encoder, ["a"], text_ops=False)

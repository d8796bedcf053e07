import pytest

from tests.export.cpp_loader import CppError, run_in_cpp


def test_ops_of_tf_text_are_not_found_without_its_libraries(tiny_models):
    """Else the loader might run by TensorFlow's Python."""
    with pytest.raises(
        CppError,
        match="TF_LoadSessionFromSavedModel: code 5: .*Op type not registered",
    ):
        run_in_cpp({tiny_models / "query_encoder" / "2": []}, text_ops=False)

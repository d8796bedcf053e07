"""A peer is left out where its library is missing, and only there."""

import pytest

from keras_lstm_dssm.benchmarks.optional_peer import optional_peer


def test_a_missing_library_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with optional_peer("torch"):
        raise ModuleNotFoundError("no torch", name="torch")
    error = capsys.readouterr().err
    assert error.startswith("no PyTorch peer: pip install torch==")
    assert error.count("\n") == 1


def test_another_missing_module_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="no numpy"):
        with optional_peer("torch"):
            raise ModuleNotFoundError("no numpy", name="numpy")

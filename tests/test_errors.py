import pytest

from keras_lstm_dssm.errors import InputError, import_optional


def test_present():
    assert import_optional("json.decoder", "baselines").JSONDecoder


def test_missing():
    with pytest.raises(InputError) as error:
        import_optional("no_such_package.part", "baselines")
    assert str(error.value) == (
        "no_such_package is not installed: pip install"
        ' "keras-lstm-dssm[baselines]"'
    )

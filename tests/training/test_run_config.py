"""config.json of a run, when it is resumed."""

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.training import resume
from keras_lstm_dssm.version import __version__


def test_a_run_of_another_version_says_so(tmp_path, capsys):
    for version, lines in (("0.1.0", 1), (__version__, 0)):
        write_json(tmp_path / "config.json", {"version": version})
        with pytest.raises(InputError, match="expected the settings of a run"):
            resume(tmp_path)
        errors = capsys.readouterr().err
        assert errors.count("\n") == lines
        assert lines == 0 or errors == (
            f"warning: {tmp_path}: the run was started with version 0.1.0, and"
            f" goes on with {__version__}: its end may differ from that of"
            " either\n"
        )

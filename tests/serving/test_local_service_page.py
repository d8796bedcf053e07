"""docs/local-service.md: its code runs."""

import pathlib
import re

import pytest

from keras_lstm_dssm.serving import PredictionServer

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "local-service.md"


def test_the_python_runs(
    server: PredictionServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    address = f"127.0.0.1:{server.port}"
    exec(code.replace("127.0.0.1:8500", address), {})
    out = capsys.readouterr().out
    assert "Hit(id='shelf bracket'" in out
    assert "(1, 2)" in out
    assert "{1: VersionStatus(state='AVAILABLE', code='OK'" in out

"""docs/local_server.md: its code runs, its defaults are those of flags."""

import pathlib
import re

import pytest

from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.tools import serve

FLAG = re.compile(r"^\| [^|]* \| [^|]*`--(\w+)=(\d+)`", re.MULTILINE)
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "local-service.md"


def test_flags_have_the_defaults_of_the_page() -> None:
    flags = dict(FLAG.findall(PAGE.read_text()))
    for name in ("max_message_mb", "max_rows", "versions", "poll_seconds"):
        assert name in flags
    for name, value in flags.items():
        assert float(value) == serve.FLAGS[name].default, name


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

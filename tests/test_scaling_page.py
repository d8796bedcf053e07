"""docs/scaling.md: its commands have the flags that they name."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs/scaling.md").read_text()
COMMANDS = re.compile(r"^lstm-dssm-(\w+) ((?:.*\\\n)*.*)$", re.MULTILINE)


def test_every_flag_of_every_command_exists() -> None:
    commands = COMMANDS.findall(PAGE)
    assert {name for name, _ in commands} == {
        "train", "encode", "index", "export",
    }  # fmt: skip
    for name, arguments in commands:
        module = __import__(f"keras_lstm_dssm.tools.{name}", fromlist=["FLAGS"])
        for flag in re.findall(r"--(\w+)", arguments):
            assert flag in module.FLAGS, (name, flag)
    for name in re.findall(r"keras_lstm_dssm\.benchmarks\.(\w+)", PAGE):
        module = __import__(
            f"keras_lstm_dssm.benchmarks.{name}", fromlist=["FLAGS"]
        )
        assert module.__doc__

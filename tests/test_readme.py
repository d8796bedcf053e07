"""The README's Python runs as it stands, and its commands exist."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_python_blocks_run_in_order(tmp_path: pathlib.Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 4
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found, first, second, shape = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("[[Hit", "(1,"))
    ]
    assert found.startswith("[[Hit(id='Titanium Drill Bit Set'")
    # In process and over gRPC the same, and the misspelled drill found.
    assert first == second
    assert "Drill" in first
    assert shape == "(1, 32)"
    assert (tmp_path / "models" / "retriever" / "1" / "saved_model.pb").exists()


def test_every_flag_of_every_command_exists() -> None:
    commands = re.findall(
        r"^lstm-dssm-(\w+) ((?:.*\\\n)*.*)$", README, re.MULTILINE
    )
    assert {name for name, _ in commands} == {
        "train", "evaluate", "export", "search", "serve", "query", "encode",
        "table_iv", "analyze",
    }  # fmt: skip
    for name, arguments in commands:
        module = __import__(f"keras_lstm_dssm.tools.{name}", fromlist=["FLAGS"])
        for flag in re.findall(r"--(\w+)", arguments):
            assert flag in module.FLAGS, (name, flag)


def test_the_page_of_negatives_runs(tmp_path: pathlib.Path) -> None:
    page = (ROOT / "docs/negatives.md").read_text()
    script = tmp_path / "negatives.py"
    script.write_text(*re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "['titanium drill bits']" in done.stdout
    module = __import__("keras_lstm_dssm.tools.train", fromlist=["FLAGS"])
    for flag in re.findall(r"`--(\w+)", page):
        assert flag in module.FLAGS, flag

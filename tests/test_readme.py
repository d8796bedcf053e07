"""The README's Python runs as it stands, and its commands exist."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.distillation.teacher_vectors import open_outside_encoder

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = re.compile(r"^lstm-dssm-(\w+) ((?:.*\\\n)*.*)$", re.MULTILINE)
"""The name of a program, and its arguments."""


@pytest.fixture
def run_blocks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str, int], str]:
    """Runs the Python of a page in an empty folder, and returns its output."""
    monkeypatch.chdir(tmp_path)

    def run(page: str, count: int) -> str:
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        assert len(blocks) == count
        exec("\n".join(blocks), {})
        return capsys.readouterr().out

    return run


def test_python_blocks_run_in_order(
    run_blocks: Callable[[str, int], str],
) -> None:
    found, first, second, shape = [
        line
        for line in run_blocks(README, 4).splitlines()
        if line.startswith(("[[Hit", "(1,"))
    ]
    assert found.startswith("[[Hit(id='Titanium Drill Bit Set'")
    # In process and over gRPC the same, and the misspelled drill found.
    assert first == second
    assert "Drill" in first
    assert shape == "(1, 32)"
    assert Path("models/retriever/1/saved_model.pb").exists()


def test_every_flag_of_every_command_exists() -> None:
    commands = COMMANDS.findall(README)
    assert {name for name, _ in commands} == {
        "train", "evaluate", "export", "search", "serve", "query", "encode",
        "table_iv", "table", "analyze", "keys", "teach",
    }  # fmt: skip
    for name, arguments in commands:
        module = __import__(f"keras_lstm_dssm.tools.{name}", fromlist=["FLAGS"])
        for flag in re.findall(r"--(\w+)", arguments):
            assert flag in module.FLAGS, (name, flag)


def test_the_page_of_negatives_runs(
    run_blocks: Callable[[str, int], str],
) -> None:
    page = (ROOT / "docs/train.md").read_text()
    assert "['titanium drill bits']" in run_blocks(page, 1)
    module = __import__("keras_lstm_dssm.tools.train", fromlist=["FLAGS"])
    for flag in re.findall(r"`--(\w+)", page):
        assert flag in module.FLAGS, flag


def test_the_page_of_mixtures_runs(
    run_blocks: Callable[[str, int], str],
) -> None:
    page = (ROOT / "docs/rerank.md").read_text()
    assert "'t1'" in run_blocks(page, 3)
    assert Path("mixed_models/retriever/1/saved_model.pb").exists()
    for name, arguments in COMMANDS.findall(page):
        module = __import__(f"keras_lstm_dssm.tools.{name}", fromlist=["FLAGS"])
        for flag in re.findall(r"--(\w+)", arguments):
            assert flag in module.FLAGS, (name, flag)


def test_the_page_of_few_clicks_runs(
    run_blocks: Callable[[str, int], str],
) -> None:
    page = (ROOT / "docs/few_clicks.md").read_text()
    run_blocks(page, 3)
    train = __import__("keras_lstm_dssm.tools.train", fromlist=["FLAGS"])
    for flag in re.findall(r"`--(teacher\w*)", page):
        assert flag in train.FLAGS, flag


def test_the_cosine_of_several_teachers_is_the_sum_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs the function on docs/few_clicks.md that joins two encoders."""
    monkeypatch.chdir(tmp_path)
    Path("two_encoders.py").write_text(
        "def small(texts): return [[len(t), 1.0] for t in texts]\n"
        "def large(texts): return [[1.0, t.count('e'), 2.0] for t in texts]\n"
    )
    page = (ROOT / "docs/few_clicks.md").read_text()
    (block,) = re.findall(r"```python\n([^`]*def both\([^`]*)```", page)
    weights = {"two_encoders:small": 0.7, "two_encoders:large": 0.3}
    names: dict[str, Any] = {}
    exec(block, names)
    names["WEIGHTS"] = weights
    texts = ["hex bolt", "wood glue", "e"]
    encoders = {name: open_outside_encoder(name) for name in weights}
    vectors = names["both"](texts)
    assert vectors.shape == (3, 5)
    np.testing.assert_allclose(
        vectors @ vectors.T,
        sum(
            weight * encoders[name](texts) @ encoders[name](texts).T
            for name, weight in weights.items()
        ),
        atol=1e-6,
    )


def test_every_flag_of_the_page_of_http_exists() -> None:
    page = (ROOT / "docs/local_server.md").read_text()
    names = set()
    for name, arguments in COMMANDS.findall(page):
        names.add(name)
        module = __import__(f"keras_lstm_dssm.tools.{name}", fromlist=["FLAGS"])
        for flag in re.findall(r"--(\w+)", arguments):
            assert flag in module.FLAGS, (name, flag)
    assert names == {"serve", "train", "export"}
    for image in re.findall(r"images/[\w.-]+", page):
        assert (ROOT / "docs" / image).exists(), image

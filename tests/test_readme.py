"""The README's Python runs as it stands, and that of three pages."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.distillation.teacher_vectors import open_outside_encoder

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def run_blocks(tmp_path, monkeypatch, capsys) -> Callable[..., str]:
    """Runs the Python of a page in an empty folder, and returns its output."""
    monkeypatch.chdir(tmp_path)

    def run(page: str, count: int, without: str = "nothing") -> str:
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        blocks = [block for block in blocks if without not in block]
        assert len(blocks) == count
        exec("\n".join(blocks), {})
        return capsys.readouterr().out

    return run


def test_python_blocks_run_in_order(run_blocks):
    in_process, served, shape = [
        line
        for line in run_blocks(README, 3).splitlines()
        if line.startswith(("[[Hit", "(1,"))
    ]
    assert in_process.startswith("[[Hit(id='Titanium Drill Bit Set'")
    assert "Drill" in served  # of another model; the misspelled drill is found
    assert shape == "(1, 32)"
    assert Path("models/retriever/1/saved_model.pb").exists()


def test_the_page_of_negatives_runs(run_blocks):
    page = (ROOT / "docs/train.md").read_text()
    out = run_blocks(page, 1, without='"FOLDER"')  # in test_guides.py
    assert "['titanium drill bits']" in out


def test_the_page_of_mixtures_runs(run_blocks):
    page = (ROOT / "docs/rerank.md").read_text()
    out = run_blocks(page, 3, without="lstm_dssm_client")  # in test_guides.py
    assert "'t1'" in out
    assert Path("mixed_models/retriever/1/saved_model.pb").exists()


def test_the_page_of_few_clicks_runs(run_blocks):
    page = (ROOT / "docs/few_clicks.md").read_text()
    run_blocks(page, 3)


def test_the_cosine_of_several_teachers_is_the_sum_of_theirs(
    tmp_path, monkeypatch
):
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

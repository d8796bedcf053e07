"""docs/analysis.md: its Python runs, its commands and pictures exist."""

import pathlib
import re

import pytest

from keras_lstm_dssm import ScorerRecipe
from keras_lstm_dssm.run_folder import RunFolder
from tests.training.small_documents import (
    QUICK_KEYVEC,
    WORDS,
    write_small_documents,
)

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analysis.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_python_blocks_run_in_order(trained_run, tmp_path, monkeypatch, capsys):
    (tmp_path / "RUN").symlink_to(trained_run)
    monkeypatch.chdir(tmp_path)
    *_, records, frames = BLOCKS
    names: dict[str, object] = {}
    exec(records, names)
    out = capsys.readouterr().out
    assert out.startswith("('hotels', 'in', 'shanghai') (3, 32)\n")
    assert "Keyword(word='in', counts=(" in out
    pytest.importorskip("pandas")
    exec(frames, names)
    table = capsys.readouterr().out
    assert table.split()[:4] == ["position", "0", "1", "2"]
    assert len(table.splitlines()) == 3 + 32


def test_python_block_for_a_pair_scorer_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = RunFolder("RUN")
    run.path.mkdir()
    recipe = ScorerRecipe("MVLSTM", words="trigrams", word_dimension=4)
    run.save(recipe.with_matcher(units=2, slices=3).build(), run.model)
    exec(BLOCKS[0], {})
    cells, matrix = capsys.readouterr().out.splitlines()
    assert cells.count("(") == 3 * 5 and "'stick'" in cells
    assert matrix == "(3, 2, 3) 0.0"


def test_python_block_for_a_keyvec_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = write_small_documents(pathlib.Path("FOLDER"))
    run = RunFolder("RUN")
    run.path.mkdir()
    run.save(QUICK_KEYVEC.build(vocabulary=WORDS["wear"]), run.model)
    exec(BLOCKS[1], {})
    first = next(iter(folder.of("test")))
    *sentences, predicted, nearest = capsys.readouterr().out.splitlines()
    assert [line[6:] for line in sentences] == first.sentences
    assert sorted(eval(predicted)) == sorted(WORDS["wear"])
    assert len(eval(nearest)) == 3


def test_no_picture_lies_unused():
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    text = "".join(page.read_text() for page in pages)
    for picture in (ROOT / "docs" / "images").iterdir():
        assert f"images/{picture.name}" in text

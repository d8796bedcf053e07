"""The pages that name tests and modules name files that exist."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PATH = re.compile(r"`((?:tests|benchmarks|keras_lstm_dssm)/[\w/]+\.py)`")


@pytest.mark.parametrize("name", ["reliability", "performance", "benchmarks"])
def test_files_named_in_a_page_exist(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    paths = PATH.findall(page)
    assert paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []

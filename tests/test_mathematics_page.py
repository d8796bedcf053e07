"""docs/mathematics.md names files that exist."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]


def test_every_file_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "mathematics.md").read_text()
    names = re.findall(r"`([a-z_/]+\.py)`", page)
    assert len(names) >= 20
    for name in names:
        folder = ROOT if name.startswith("tests/") else ROOT / "keras_lstm_dssm"
        assert (folder / name).is_file(), name

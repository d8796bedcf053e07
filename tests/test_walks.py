"""CONTRIBUTING.md lists the files that a click, a title, a query pass."""

import json
import re

import pytest

from tests.kit.walks import ROOT, WALKS

LISTED = re.compile(r"^\* An? \*\*(\w+)\*\*.*? (\d+) files:(.*?)(?=^\* |^#)",
                    re.MULTILINE | re.DOTALL)  # fmt: skip


@pytest.fixture(scope="module")
def walks(fresh_process) -> dict[str, list[str]]:
    code = "from tests.kit import walks; walks.main()"
    return json.loads(fresh_process(code)[-1])


@pytest.mark.parametrize("name", WALKS)
def test_contributing_names_all_files_of_a_walk(walks, name):
    text = (ROOT / "CONTRIBUTING.md").read_text()
    count, listed = {n: (c, t) for n, c, t in LISTED.findall(text)}[name]
    files = re.findall(r"`([^`]+\.py)`", listed)
    assert sorted(files) == sorted(set(walks[name]))
    assert int(count) == len(files)

"""Checks that notebooks hold no results: `make docs` runs them.

Example:
  python release/check_notebooks.py docs/quickstart.ipynb
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main(paths: Sequence[str]) -> int:
    """Names the notebooks with results; returns their number."""
    bad = 0
    for path in paths:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        if any(cell.get("outputs") for cell in notebook["cells"]):
            print(f"{path}: found results of cells: clear all outputs")
            bad += 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""How files are written: beside their place, then renamed."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a path to write to, renamed to `path` when all went well.

    Readers see the old file or the whole new one; a failure leaves the old
    one as it was, and nothing beside it.

    Example:
    >>> with replacing("titles.txt") as partial:
    ...     partial.write_text("Angle bracket")
    """
    path = Path(path)
    # The ending stays: some writers choose the format by it.
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes a value as JSON."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(value, indent=2) + "\n")

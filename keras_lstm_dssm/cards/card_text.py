"""The form of all cards: YAML front matter, tables, dates."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any


def now() -> str:
    """Returns the time, UTC, to the second."""
    return at(time.time())


def at(seconds: float) -> str:
    """Returns a time in seconds since 1970 as an ISO date in UTC.

    Example:
    >>> at(0)
    '1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def front_matter(values: Mapping[str, Any]) -> str:
    r"""Returns the YAML block at the start of a card.

    Example:
    >>> front_matter({"tags": ["keras"], "library_name": "keras"})
    '---\ntags:\n- "keras"\nlibrary_name: "keras"\n---\n'
    """
    return "---\n" + "".join(_yaml(values, 0)) + "---\n"


def _yaml(value: Any, depth: int) -> list[str]:
    """Returns lines of YAML; every scalar is written as in JSON."""
    margin = " " * depth
    lines = []
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, Mapping):
                lines += [f"{margin}{key}:\n", *_yaml(inner, depth + 2)]
            elif isinstance(inner, list):
                lines += [f"{margin}{key}:\n", *_yaml(inner, depth)]
            else:
                lines.append(f"{margin}{key}: {_scalar(inner)}\n")
        return lines
    for item in value:
        if isinstance(item, Mapping):
            first, *rest = _yaml(item, depth + 2)
            lines += [f"{margin}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{margin}- {_scalar(item)}\n")
    return lines


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table in Markdown, without a line break at its end."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)}"
        " |"
        for row in lines
    )

"""Turns docstrings, which use Markdown's back-ticks, into reStructuredText.

Sphinx calls `prepare` before napoleon reads the sections `Args:`, `Raises:` and
`Attributes:`. The docstrings are written for readers of the source: names in
single back-ticks, formulas in indented blocks, and several named results below
`Returns:`.
"""

import re
from typing import Any

_HEADER = re.compile(
    r"(Args|Raises|Returns|Yields|Attributes|Call arguments|Example|Examples"
    r"|Reference|References):(.*)"
)
_CODE = re.compile(r"(?<!`)`([^`]+?)`(?!`)(?=(\w)?)")
_RESULT = re.compile(r"`?\w[\w ,@/`]*: ")


def prepare(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Rewrites the lines of a docstring in place."""
    lines[:] = to_rst(lines)


def to_rst(lines: list[str]) -> list[str]:
    r"""Returns a docstring that napoleon and docutils read without a warning.

    Args:
        lines: The lines of a docstring, without common indentation.

    Example:
    >>> to_rst(["Returns `n` of |d|.", "", "    n = 1"])
    ['Returns ``n`` of \\\\|d\\\\|.', '', '::', '', '    n = 1', '']
    """
    done: list[str] = []
    for header, body in _sections(lines):
        if header.startswith("Example"):
            done += [".. rubric:: Example", "", *_dedented(body), ""]
        elif header in ("Returns", "Yields"):
            done += [*_results(header, _inline(body)), ""]
        elif header.startswith("Reference"):
            text = " ".join(line.strip() for line in _inline(body))
            done += [f"Reference: {text.strip()}", ""]
        elif header:
            done += [f"{header}:", *_inline(body), ""]
        else:
            done += [*_literal_blocks(body), ""]
    return done[:-1] if done[-2:] == ["", ""] else done


def _sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Splits lines into (header, body); the text before has the header ""."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match:
            sections.append((match[1], [match[2]] if match[2].strip() else []))
        else:
            sections[-1][1].append(line)
    return sections


def _inline(lines: list[str]) -> list[str]:
    """Makes double back-ticks of single ones, also across two lines."""
    text = _CODE.sub(
        lambda m: f"``{m[1]}``" + ("\\ " if m[2] else ""), "\n".join(lines)
    )
    parts = re.split(r"(``.*?``)", text, flags=re.DOTALL)
    parts[::2] = [re.sub(r"([|]|(?<=\w)_(?!\w))", r"\\\1", p)
                  for p in parts[::2]]  # fmt: skip
    return "".join(parts).split("\n")


def _results(header: str, lines: list[str]) -> list[str]:
    """Returns a field whose named results are paragraphs of their own."""
    field = f":{header.lower()}: "
    done: list[str] = []
    for line in _dedented(lines):
        if done and not line.startswith(" ") and _RESULT.match(line):
            done.append("")
        done.append(line.strip())
    return [
        (field if number == 0 else " " * 4) + line if line else ""
        for number, line in enumerate(done)
    ]


def _literal_blocks(lines: list[str]) -> list[str]:
    """Marks indented blocks after a blank line as literal."""
    done: list[str] = []
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        if not block.startswith("    "):
            done += [*_inline(block.split("\n")), ""]
            continue
        if len(done) < 2 or not done[-2].startswith("    "):
            done += ["::", ""]
        done += [*block.split("\n"), ""]
    return done[:-1]


def _dedented(lines: list[str]) -> list[str]:
    filled = [line for line in lines if line.strip()]
    margin = min((len(x) - len(x.lstrip()) for x in filled), default=0)
    trimmed = [line[margin:] for line in lines]
    while trimmed and not trimmed[-1].strip():
        trimmed.pop()
    return trimmed

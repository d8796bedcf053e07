"""Extracts the sentences of docstrings, also those about arguments."""

import re
from collections.abc import Iterator

from keras_lstm_dssm.data.api_sentences import sentence_runs

# "* ", "1. ", "axis: " and "**kwargs (optional): " before a description.
_LABEL = re.compile(
    r"(?:[-*+]|\(?\d+[.)])\s+"
    r"|`{0,2}\*{0,2}\w[\w, .*]{0,40}`{0,2}(?: ?\([^)]*\))?:\s+(?=\S+\s+\S)"
)
_TYPE = re.compile(r"[\w*, .`]+ : ")  # "axis : int, optional"


def prose_sentences(text: str) -> list[str]:
    r"""Returns the sentences of a docstring or of a part of it.

    `sentence_runs` leaves out what is indented. Here the descriptions of
    arguments and the items of lists are read as well; code, examples, types
    and headings are left out. Markup is removed, and each sentence ends with
    a full stop.

    >>> doc = "Sort `a` now.\n\nArgs:\n    a: The list to sort. It stays."
    >>> prose_sentences(doc)
    ['Sort a now.', 'The list to sort.']
    """
    return [
        f"{sentence}."
        for block in _blocks(text)
        for run in sentence_runs("\n".join(block))
        for sentence in run
    ]


def _blocks(text: str) -> Iterator[list[str]]:
    """Yields groups of lines that form a text, without indentation.

    The lines of a group have one indentation; those after a label, such as
    "axis: ", are indented further than it.
    """
    block: list[str] = []
    first, following = 0, 0
    in_example = in_fence = False
    for line in text.splitlines():
        indent, line = len(line) - len(line.lstrip()), line.strip()
        if line.startswith("```"):
            in_fence = not in_fence
            line = ""
        in_example = bool(line) and (in_example or line.startswith(">>>"))
        if in_example or in_fence or _TYPE.match(line):
            line = ""
        label = _LABEL.match(line)
        if label:
            line = line[label.end() :]
        continues = not label and (
            indent > first if following < 0 else indent == following
        )
        if continues:
            following = indent
        if block and not (line and continues):
            yield block
            block = []
        if line and not block:
            first, following = indent, -1 if label else indent
        if line:
            block.append(line)
    if block:
        yield block

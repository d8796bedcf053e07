"""The file of titles that a retriever is made from."""

import os
from typing import NamedTuple

from keras_lstm_dssm.data.text_files import text_lines
from keras_lstm_dssm.errors import InputError


class Documents(NamedTuple):
    """Titles and what the retriever answers with."""

    ids: list[str]
    titles: list[str]


def read_documents(path: str | os.PathLike[str]) -> Documents:
    """Reads documents, one a line: a title, or an id, a tab and a title.

    A title without an id is its own id; repeated ones count once, blank
    lines not at all.

    Raises:
        InputError: The file is missing or has no title; a line is not UTF-8,
            has more than one tab or a blank id or title; an id stands for
            two titles.
    """
    titles: dict[str, str] = {}
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) > 2 or not all(fields):
            raise InputError(
                f"{path}:{number}: found {line!r:.80}, expected a title, or "
                "an id, one tab and a title"
            )
        name, title = fields[0], fields[-1]
        if titles.setdefault(name, title) != title:
            raise InputError(
                f"{path}:{number}: id {name!r} has another title above; give "
                "each document its own id"
            )
    if not titles:
        raise InputError(f"{path}: no titles; expected one a line")
    return Documents(list(titles), list(titles.values()))

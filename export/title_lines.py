"""Lines of a file of titles: a title, perhaps with an id and with tags."""

from collections.abc import Sequence
from typing import NamedTuple

from keras_lstm_dssm.errors import InputError

MAX_TAGS = 32
"""Maximum number of tags of a title."""


class TitleLine(NamedTuple):
    """Holds what a line of a file of titles has.

    Attributes:
        id: The id, or the title if there is none.
        title: The title.
        tags: Its tags, each once.
    """

    id: str
    title: str
    tags: tuple[str, ...]


def parse_title(line: str) -> TitleLine | str:
    r"""Parses a title; an id and a title; or these and tags, with tabs between.

    White space around fields and tags is left out.

    Args:
        line: A line that is not blank.

    Returns:
        Its content; or, if it is wrong, what was found and expected.

    Example:
    >>> parse_title("a7\thex bolt\tsteel, in stock")
    TitleLine(id='a7', title='hex bolt', tags=('steel', 'in stock'))
    """
    fields = [field.strip() for field in line.split("\t")]
    tags = split_tags(fields[2]) if len(fields) == 3 else ()
    if len(fields) > 3 or not all(fields) or not all(tags):
        return (
            f"found {line!r:.80}, expected a title, or an id, one tab and a "
            "title, or these, one more tab and tags that are separated by "
            "commas"
        )
    try:
        check_tag_count(tags)
    except InputError as error:
        return str(error)
    return TitleLine(fields[0], fields[min(1, len(fields) - 1)], tags)


def check_tag_count(tags: Sequence[str]) -> None:
    """Checks how many tags a title has.

    Raises:
        InputError: They are more than 32.
    """
    if len(tags) > MAX_TAGS:
        raise InputError(
            f"found {len(tags)} tags of one title, expected {MAX_TAGS} at most"
        )


def split_tags(field: str) -> tuple[str, ...]:
    """Returns the tags in a field, once each, without white space around them.

    Args:
        field: Tags, separated by commas.

    Example:
    >>> split_tags("steel, in stock")
    ('steel', 'in stock')
    """
    return tuple(dict.fromkeys(tag.strip() for tag in field.split(",")))

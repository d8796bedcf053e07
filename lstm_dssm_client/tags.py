"""Tags of documents, `name:value` or plain, and tags that no document has.

Values of one name are alternatives; names, and plain tags, must all hold.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from lstm_dssm_client.errors import InputError

_NEAREST = 3


def tag_name(tag: bytes) -> bytes:
    """Returns the name of a tag with its colon; a plain tag is its own name."""
    name, colon, _ = tag.partition(b":")
    return name + colon


def by_name(tags: bytes) -> list[list[bytes]]:
    """Groups the tags of a query, with commas between, by their names."""
    groups: dict[bytes, list[bytes]] = {}
    for tag in tags.split(b","):
        groups.setdefault(tag_name(tag), []).append(tag)
    return [*groups.values()]


def check_known(model: str, tags: bytes, known: Mapping[str, int]) -> None:
    """Raises `InputError` for a tag that no document has.

    Args:
        model: The name of the retriever, for the error.
        tags: Tags of a query, with commas between.
        known: Tag -> number of documents with it.
    """
    for tag in tags.decode(errors="replace").split(","):
        if tag in known:
            continue
        folded = {each.casefold(): each for each in known}
        near = get_close_matches(tag.casefold(), folded, _NEAREST)
        some = [folded[each] for each in near] or [*known][:_NEAREST]
        raise InputError(
            f"{model}: found the tag {tag!r:.60}, which no document has:"
            f" give another, such as {', '.join(some)}"
        )


def facets(known: Sequence[str], most: int) -> dict[str, list[str]]:
    """Returns name -> its tags, of names with fewer than `most` values.

    Plain tags are left out.

    Example:
    >>> facets(["stock:no", "stock:yes", "new"], most=50)
    {'stock': ['stock:no', 'stock:yes']}
    """
    tags_of: dict[str, list[str]] = {}
    for tag in known:
        name, colon, _ = tag.partition(":")
        if colon:
            tags_of.setdefault(name, []).append(tag)
    return {name: tags for name, tags in tags_of.items() if len(tags) < most}

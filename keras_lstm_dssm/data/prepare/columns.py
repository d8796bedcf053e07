"""The columns of a catalogue and of a log, found by common names or flags."""

from typing import Any

from keras_lstm_dssm.data.prepare.tables import Table, normal
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.prepare import PrepareSettings

COMMON = {
    "id": (
        "id", "_id", "product_id", "productid", "item_id", "itemid", "objectid",
        "object_id", "sku", "handle", "doc_id", "docid", "document_id", "asin",
    ),
    "title": (
        "title", "name", "product_name", "product_title", "item_name",
    ),
    "query": (
        "query", "q", "user_query", "search_query", "search_term", "searchterm",
        "search", "keywords", "keyword", "term", "query_text", "query_string",
    ),
    "clicked": (
        "clicked", "clicked_id", "product_id", "productid", "item_id", "itemid",
        "object_id", "objectid", "doc_id", "docid", "document_id", "sku",
        "asin", "corpus_id", "id", "clicked_title", "title",
    ),
    "time": (
        "timestamp", "time", "datetime", "event_time", "created_at", "ts",
        "click_time", "date",
    ),
    "session": (
        "session", "session_id", "sessionid", "client_id", "user_id", "user",
        "visitor_id", "anonymous_id", "anonymousid", "user_pseudo_id",
        "usertoken",
    ),
    "weight": ("weight", "count", "clicks"),
    "action": (
        "action", "action_name", "event_type", "event_name", "event",
    ),
    "grade": ("grade", "rating", "score", "label", "esci_label", "relevance"),
}  # fmt: skip
"""Role -> the names, without case and punctuation, that are tried in order."""


def find_columns(
    table: Table,
    source: str,
    settings: PrepareSettings,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> dict[str, str]:
    """Returns role -> name of the column, for the roles that have one.

    Args:
        table: The table.
        source: What messages call it.
        settings: The names that were given.
        needed: Roles that must have a column.
        optional: Roles that may have one.

    Raises:
        InputError: A named column is missing, or a needed one is not found.
    """
    found: dict[str, str] = {}
    names = {normal(name): name for name in table.columns}
    for role in (*needed, *optional):
        flag = getattr(settings, role)
        if flag is not None:
            if table.column(flag) is None:
                raise InputError(_unknown(table, source, role, flag))
            found[role] = flag
            continue
        taken = set(found.values())
        common = (names.get(name) for name in COMMON[role])
        name = next((n for n in common if n and n not in taken), None)
        if name is not None:
            found[role] = name
    if missing := [role for role in needed if role not in found]:
        flags = " and ".join(f"--{role}" for role in missing)
        named = " ".join(f"--{role}=COLUMN" for role in missing)
        raise InputError(
            f"{source}: found no column of a usual name for {flags}, expected"
            f" one: name it by {named}; the columns are: {_columns_of(table)}"
        )
    return found


def check_named(table: Table, source: str, role: str, names: Any) -> None:
    """Checks that a table has the columns that a flag names."""
    for name in names:
        if table.column(name) is None:
            raise InputError(_unknown(table, source, role, name))


def _unknown(table: Table, source: str, role: str, name: str) -> str:
    return (
        f"{source}: found no column {name!r}, expected --{role} to name one of:"
        f" {_columns_of(table)}"
    )


def _columns_of(table: Table) -> str:
    """Lists the columns of a table, with the values of the first row."""
    first = table.sample[0] if table.sample else {}
    columns = ", ".join(
        f"{key} ({first[key][:30]!r})" if first.get(key) else key
        for key in table.columns
    )
    if not table.has_header:
        columns += (
            "; the first line is read as a row, since no column has a usual"
            " name: name columns as they are there"
        )
    return columns

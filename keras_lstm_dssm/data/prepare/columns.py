"""Finds the columns of a catalogue or a log by common names or by flags."""

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
"""Role -> names of columns to try in order, without case and punctuation."""


def find_columns(
    table: Table,
    source: str,
    settings: PrepareSettings,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> dict[str, str]:
    """Returns role -> name of the column, for the roles that have a column.

    Settings may name the column of a role. Raises `InputError` if the table
    lacks a named column, or a `needed` role has no column.
    """
    columns: dict[str, str] = {}
    names = {normal(name): name for name in table.columns}
    for role in (*needed, *optional):
        flag = getattr(settings, role)
        if flag is not None:
            if table.column(flag) is None:
                raise InputError(_unknown(table, source, role, flag))
            columns[role] = flag
            continue
        taken = set(columns.values())
        common = (names.get(name) for name in COMMON[role])
        name = next((n for n in common if n and n not in taken), None)
        if name is not None:
            columns[role] = name
    if missing := [role for role in needed if role not in columns]:
        flags = " and ".join(f"--{role}" for role in missing)
        named = " ".join(f"--{role}=COLUMN" for role in missing)
        raise InputError(
            f"{source}: found no column of a usual name for {flags}, expected"
            f" one: name it by {named}; the columns are: {_list_columns(table)}"
        )
    return columns


def check_named(table: Table, source: str, role: str, names: Any) -> None:
    """Raises `InputError` unless the table has all columns of a flag."""
    for name in names:
        if table.column(name) is None:
            raise InputError(_unknown(table, source, role, name))


def _unknown(table: Table, source: str, role: str, name: str) -> str:
    return (
        f"{source}: found no column {name!r}, expected --{role} to name one of:"
        f" {_list_columns(table)}"
    )


def _list_columns(table: Table) -> str:
    """Lists the columns of a table, with the values of the first row."""
    first = table.sample[0] if table.sample else {}
    columns = ", ".join(
        f"{key} ({first[key][:30]!r})" if first.get(key) else key
        for key in table.columns
    )
    if not table.has_header:
        columns += (
            "; the first line is read as a row, because no column has a usual"
            " name: use the names of this list"
        )
    return columns

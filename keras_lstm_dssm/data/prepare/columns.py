"""Finds columns of a catalogue or a log, by settings or by usual names."""

from typing import Any

from keras_lstm_dssm.data.prepare.tables import Table, normal
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.prepare import PrepareSettings

COMMON = {
    "id": (
        "id", "_id", "product_id", "productid", "item_id", "itemid", "objectid",
        "object_id", "sku", "handle", "doc_id", "docid", "document_id", "asin",
    ),
    "title": ("title", "name", "product_name", "product_title", "item_name"),
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
    "action": ("action", "action_name", "event_type", "event_name", "event"),
    "grade": ("grade", "rating", "score", "label", "esci_label", "relevance"),
}  # fmt: skip
"""Role -> usual names of the role's column; earlier names are preferred.

A role is a field of `PrepareSettings`.
"""


def find_columns(
    table: Table,
    source: str,
    settings: PrepareSettings,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> dict[str, str]:
    """Returns role -> column, found by the settings or by usual names."""
    columns: dict[str, str] = {}
    names = {normal(name): name for name in table.columns}
    for role in (*needed, *optional):
        if (named := getattr(settings, role)) is not None:
            check_named(table, source, role, [named])
            columns[role] = named
            continue
        usual = (names.get(name) for name in COMMON[role])
        for name in usual:
            if name and name not in columns.values():
                columns[role] = name
                break
    if missing := [role for role in needed if role not in columns]:
        roles = " and ".join(f"--{role}" for role in missing)
        flags = " ".join(f"--{role}=COLUMN" for role in missing)
        raise InputError(
            f"{source}: found no column with a usual name for {roles}, expected"
            f" one: name it by {flags}; the columns are: {_list_columns(table)}"
        )
    return columns


def check_named(table: Table, source: str, role: str, names: Any) -> None:
    """Raises `InputError` if one of the columns `names` is not in the table."""
    for name in names:
        if table.column(name) is None:
            raise InputError(
                f"{source}: found no column {name!r}, expected --{role} to name"
                f" one of: {_list_columns(table)}"
            )


def _list_columns(table: Table) -> str:
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

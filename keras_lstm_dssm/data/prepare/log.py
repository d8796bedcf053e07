"""A log of clicks as the rows that all forms of logs become.

A row is `(q, id, weight, time, client, page, position)`: the query as it was
written, the product's id, the weight of the click (0: shown and not clicked),
seconds since 1970, a hash of the session, and, in logs of whole pages of
results, a number of the page and the position on it, from 1.
"""

from typing import Any

from keras_lstm_dssm.data.prepare.catalogue import id_of
from keras_lstm_dssm.data.prepare.columns import find_columns
from keras_lstm_dssm.data.prepare.tables import Table, quoted
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.prepare import PrepareSettings

ROW = (
    "q VARCHAR, id VARCHAR, weight DOUBLE, time DOUBLE, client UBIGINT,"
    " page BIGINT, position INTEGER"
)
"""The columns of a row of a log."""

_PLAIN = ("query", "clicked", "weight")


def define_functions(con: Any) -> None:
    """Defines the functions of SQL that reading a log needs."""
    con.execute(
        "CREATE MACRO seconds_of(x) AS CASE"
        r" WHEN regexp_full_match(x, '\d{9,}(\.\d+)?') THEN CAST(x AS DOUBLE)"
        " / CASE WHEN CAST(x AS DOUBLE) > 1e14 THEN 1e6"
        " WHEN CAST(x AS DOUBLE) > 1e11 THEN 1e3 ELSE 1 END"
        " ELSE epoch(TRY_CAST(x AS TIMESTAMPTZ)) END"
    )


def seconds_of(con: Any, text: str) -> float:
    """Reads a time: ISO 8601, or a number since 1970; UTC without a zone.

    Raises:
        InputError: It is none of these.
    """
    ((seconds,),) = con.execute("SELECT seconds_of(?)", [text]).fetchall()
    if seconds is None:
        raise InputError(
            f"test_after is {text!r:.60}: expected a date or a time of ISO"
            " 8601, such as 2026-11-01"
        )
    return float(seconds)


class ClickTable:
    """A log of one click a row, of which the columns are known.

    Attributes:
        columns: Role -> name of the column that was taken.
        titles: SQL of `(id, title)`, for a log without a catalogue.
        rows: SQL of the rows, see the module.
    """

    def __init__(
        self,
        con: Any,
        table: Table,
        source: str,
        settings: PrepareSettings,
        has_catalogue: bool,
    ) -> None:
        self.con, self.table, self.source = con, table, source
        names = list(table.columns)
        flags = any(getattr(settings, role) for role in _PLAIN)
        if table.is_plain and not flags:
            self.columns = dict(zip(_PLAIN, names, strict=False))
        else:
            self.columns = find_columns(
                table,
                source,
                settings,
                ("query", "clicked"),
                ("time", "session", "weight", "action"),
            )
        query = table.column(self.columns["query"])
        key = id_of(con, table, self.columns["clicked"])
        if not has_catalogue:
            clicked = table.column(self.columns["clicked"])
            key = f"nullif(one_line({clicked}), '')"
        self.titles = f"SELECT {key} AS id, {key} AS title FROM {table.sql}"
        self.has_actions = "action" in self.columns
        self.weight = self._weight(settings)
        time, session = (
            table.column(self.columns[role]) if role in self.columns else None
            for role in ("time", "session")
        )
        self.rows = (
            f"SELECT {query} AS q, {key} AS id, {self.weight} AS weight,"
            f" {f'seconds_of({time})' if time else 'CAST(NULL AS DOUBLE)'}"
            " AS time,"
            f" {f'hash({session})' if session else 'CAST(NULL AS UBIGINT)'}"
            " AS client, CAST(NULL AS BIGINT) AS page,"
            f" CAST(NULL AS INTEGER) AS position FROM {table.sql}"
        )

    def _weight(self, settings: PrepareSettings) -> str:
        """Returns the SQL of a weight, NULL for an action that is no click."""
        weight = "CAST(1 AS DOUBLE)"
        if "weight" in self.columns:
            column = self.table.column(self.columns["weight"])
            weight = f"greatest(TRY_CAST({column} AS DOUBLE), 0)"
        if "action" not in self.columns:
            return weight
        action = self.table.column(self.columns["action"])
        actions = settings.weight_of_action()
        check_actions(
            self.con, f"{action} AS action FROM {self.table.sql}", actions,
            self.source,
        )  # fmt: skip
        return f"{weight} * {case_of_actions(str(action), actions)}"


def case_of_actions(action: str, actions: dict[str, float]) -> str:
    """Returns the SQL of an action's weight, NULL for what is no click."""
    cases = "".join(
        f" WHEN {quoted(name)} THEN {weight}"
        for name, weight in actions.items()
    )
    return f"CASE {action}{cases} END"


def check_actions(
    con: Any, select: str, actions: dict[str, float], source: str
) -> dict[str, int]:
    """Returns the number of rows of each action; one must be a click."""
    counts = dict(
        con.execute(
            f"SELECT action, count(*) FROM (SELECT {select}) WHERE action IS"
            " NOT NULL GROUP BY action ORDER BY 2 DESC, 1"
        ).fetchall()
    )
    if counts and not actions.keys() & counts.keys():
        found = ", ".join(f"{name} ({n:,})" for name, n in counts.items())
        raise InputError(
            f"{source}: found the actions {found:.300}, expected one of"
            f" {', '.join(actions)}: name those that are clicks, with weights,"
            f" by --actions, such as {next(iter(counts))}:1"
        )
    return counts

"""Opens click logs.

Logs of any form, such as User Behavior Insights (UBI), become rows with these
columns:

- `q`: the original spelling of the query;
- `id`: the id of the product, or the title if there is no catalogue;
- `weight`: the weight of the click; 0 for a product that was only shown; NULL
  if the log's weight is not a number from 0 to 1e9;
- `clicks`: the number of equal clicks; above 1 only in logs without times;
- `time`: seconds since 1970; NaN if it cannot be read, NULL if it is missing;
- `client`: a hash of the session;
- `page`: in UBI, the number of the page of results; otherwise NULL;
- `position`: in UBI, the product's position on the page, from 1, or 0 if the
  page does not show the product; otherwise NULL;
- `file`: the row's file, as an index into `Table.files`; not in UBI.
"""

from typing import Any, NamedTuple

from keras_lstm_dssm.data.prepare.columns import COMMON, find_columns
from keras_lstm_dssm.data.prepare.tables import (
    FILE,
    BadRows,
    Table,
    normal,
    quoted,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.prepare import PrepareSettings

_PLAIN = ("query", "clicked", "weight")
_IDS = {normal(name) for name in COMMON["id"]}
_POSITIONS = {"position", "click_position", "result_position", "rank"}


def define_functions(con: Any) -> None:
    """Defines SQL functions to read a log."""
    con.execute(r"""
        CREATE MACRO seconds_of(x) AS
          CASE WHEN regexp_full_match(x, '\d{9,}(\.\d+)?')
            THEN CAST(x AS DOUBLE) / CASE
              WHEN CAST(x AS DOUBLE) > 1e14 THEN 1e6
              WHEN CAST(x AS DOUBLE) > 1e11 THEN 1e3 ELSE 1 END
            ELSE epoch(TRY_CAST(x AS TIMESTAMPTZ)) END""")


def seconds_of(con: Any, text: str) -> float:
    """Converts `test_after` (UTC if it names no zone) to seconds since 1970."""
    ((seconds,),) = con.execute("SELECT seconds_of(?)", [text]).fetchall()
    if seconds is None:
        raise InputError(
            f"test_after is {text!r:.60}: expected a date or a time of ISO"
            " 8601, such as 2026-11-01"
        )
    return float(seconds)


class Log(NamedTuple):
    """Holds a log that was opened, with the SQL to read its rows."""

    name: str  # name of the log in messages
    rows: str  # SQL for rows with the columns that the module's docstring lists
    titles: str  # SQL for ids and titles; used if there is no catalogue
    has_ids: bool  # whether the column `id` of `titles` has ids, not titles
    has_time: bool  # whether rows have times
    columns: dict[str, str]  # role, such as "query" -> name of its column
    notes: tuple[str, ...] = ()  # lines for the report
    table: Table | None = None  # table with a click in each row; `None` for UBI
    bad: BadRows = BadRows(0, "")  # lines of UBI that cannot be read
    unread_times: str = ""  # SQL for times that cannot be read


def open_clicks(
    con: Any,
    table: Table,
    name: str,
    settings: PrepareSettings,
    has_catalogue: bool,
) -> Log:
    """Opens a log with a click in each row."""
    names = list(table.columns)
    is_named = any(getattr(settings, role) for role in _PLAIN)
    if table.is_plain and not is_named:
        columns = dict(zip(_PLAIN, names, strict=False))
    else:
        columns = find_columns(
            table,
            name,
            settings,
            ("query", "clicked"),
            ("time", "session", "weight", "action"),
        )
    expression = {role: table.column(c) or "" for role, c in columns.items()}
    key = f"id_of({expression['clicked']})"
    if not has_catalogue:
        column = columns["clicked"]
        if settings.clicked is None and normal(column) in _IDS:
            raise InputError(
                f"{name}: found ids of products in the column {column!r},"
                " expected titles where there is no catalogue: give the"
                " catalogue, or name a column of titles by --clicked"
            )
        key = f"nullif(one_line({expression['clicked']}), '')"
    weight, where = "CAST(1 AS DOUBLE)", ""
    if "weight" in columns:
        number = f"TRY_CAST({expression['weight']} AS DOUBLE)"
        weight = f"CASE WHEN {number} BETWEEN 0 AND 1e9 THEN {number} END"
    if "action" in columns:
        actions = settings.weight_of_action()
        action = expression["action"]
        check_actions(
            con, f"{action} AS action FROM {table.sql}", actions, name
        )
        case = case_of_actions(action, actions)
        weight, where = f"{weight} * {case}", f" WHERE {case} IS NOT NULL"
    time, unread = "CAST(NULL AS DOUBLE)", ""
    if "time" in columns:
        written = expression["time"]
        seconds = f"seconds_of({written})"
        if settings.time_format:
            pattern = quoted(settings.time_format)
            import duckdb

            try:
                con.execute(f"SELECT try_strptime('', {pattern})")
            except duckdb.Error as error:
                raise InputError(
                    f"time_format is {settings.time_format!r:.60}: expected a"
                    " format such as %d/%m/%Y %H:%M:%S"
                ) from error
            seconds = f"epoch(try_strptime({written}, {pattern}))"
        time = (
            f"CASE WHEN trim({written}) <> ''"
            f" THEN coalesce({seconds}, 'nan'::DOUBLE) END"
        )
        unread = (
            f"SELECT written FROM (SELECT {written} AS written, {time} AS"
            f" seconds FROM {table.sql}{where}) WHERE isnan(seconds)"
        )
    client, notes = "CAST(NULL AS UBIGINT)", tuple[str, ...]()
    if "session" in columns and "time" in columns:
        session = expression["session"]
        client = f"CASE WHEN {session} <> '' THEN hash({session}) END"
    elif "time" in columns:
        notes = (
            "  no session: double clicks are not removed; name the column of"
            " the session or of the user by --session",
        )
    for column in names:
        if normal(column) in _POSITIONS - {*map(normal, columns.values())}:
            notes += (
                f"  {column}: not read: positions are used only if a log also"
                " has the products that were shown, see --ubi",
            )
    first = f"""{expression["query"]} AS q, {key} AS id, {weight} AS weight,
          {FILE} AS file"""
    last = f"""{time} AS time, {client} AS client, CAST(NULL AS BIGINT) AS page,
          CAST(NULL AS INTEGER) AS position"""
    relation = f"{table.sql}{where}"
    rows = f"SELECT {first}, 1 AS clicks, {last} FROM {relation}"
    if "time" not in columns:
        # Threads read rows in any order. Only a single thread could number the
        # rows in the log's order. Sorted rows have the same order in each run.
        rows = f"""
            SELECT {first}, CAST(count(*) AS INTEGER) AS clicks, {last}
            FROM {relation} GROUP BY 1, 2, 3, 4
            ORDER BY clicks DESC, q, id, weight, file"""
    return Log(
        name=name,
        rows=rows,
        titles=f"SELECT {key} AS id, {key} AS title FROM {relation}",
        has_ids=False,
        has_time="time" in columns,
        columns=columns,
        notes=notes,
        table=table,
        unread_times=unread,
    )


def case_of_actions(action: str, actions: dict[str, float]) -> str:
    """Returns SQL for the weight of an action; NULL for unknown actions."""
    cases = "".join(
        f" WHEN {quoted(name)} THEN {weight}"
        for name, weight in actions.items()
    )
    return f"CASE {action}{cases} END"


def check_actions(
    con: Any, select: str, actions: dict[str, float], source: str
) -> dict[str, int]:
    """Counts rows by action; `InputError` if only unknown actions are found."""
    counts = dict(
        con.execute(
            f"SELECT action, count(*) FROM (SELECT {select}) WHERE action IS"
            " NOT NULL GROUP BY action ORDER BY 2 DESC, 1"
        ).fetchall()
    )
    if counts and not actions.keys() & counts.keys():
        listed = ", ".join(f"{name} ({n:,})" for name, n in counts.items())
        raise InputError(
            f"{source}: found the actions {listed:.300}, expected one of"
            f" {', '.join(actions)}: name the actions that are clicks, with"
            f" weights, by --actions, such as {next(iter(counts))}:1"
        )
    return counts

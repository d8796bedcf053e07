"""Reads User Behavior Insights (UBI): queries, shown products, and events.

A row with an `action_name` is an event; any other row is a query.

Source of the schema: https://github.com/o19s/ubi, version 1.3.
"""

from collections.abc import Sequence
from typing import Any

from keras_lstm_dssm.data.prepare.log import Log, case_of_actions, check_actions
from keras_lstm_dssm.data.prepare.tables import BadRows, File, json_rows, quoted
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.prepare import PrepareSettings

_SHOWN = (
    "query_response_hit_ids",
    "query_response_object_ids",  # Elasticsearch, OpenSearch to 2.18.0.1
    "query_response_objects_ids",  # the documentation of UBI 1.0
    "doc_ids",  # Solr
)
_IMPRESSIONS = ("impression", "impressions", "view")


def define_functions(con: Any) -> None:
    """Defines SQL functions to read UBI."""
    # In DuckDB 1, the version for Python 3.10, comparisons bind tighter than
    # `->>`. Therefore `->>` is put in parentheses.
    con.execute(r"""
        CREATE MACRO present(object, path) AS
          CASE WHEN json_type(object, path) <> 'NULL'
            THEN json_extract(object, path) END;
        -- Reads an object, or a string with an object as JSON.
        CREATE MACRO object_in(object, path) AS
          CASE json_type(object, path) WHEN 'VARCHAR'
            THEN TRY_CAST(json_extract_string(object, path) AS JSON)
            ELSE json_extract(object, path) END;
        -- Reads a list of ids, a string with a list as JSON, or "a,b,c".
        CREATE MACRO ids_in(x) AS
          CASE json_type(x) WHEN 'ARRAY' THEN from_json(x, '["VARCHAR"]')
            WHEN 'VARCHAR' THEN CASE
              WHEN json_valid(x ->> '$') AND (x ->> '$') LIKE '[%'
              THEN from_json(CAST(x ->> '$' AS JSON), '["VARCHAR"]')
              ELSE string_split(x ->> '$', ',') END END""")


def read_ubi(
    con: Any, files: Sequence[File], source: str, settings: PrepareSettings
) -> Log:
    """Reads pages (the products shown for a `query_id`) and all clicks."""
    for file in files:
        if file.form == "text":
            raise InputError(
                f"{file.path}: found text, expected UBI as JSON or parquet"
            )
    sql = " UNION ALL ".join(map(json_rows, files))
    shown = ", ".join(f"present(row, '$.{name}')" for name in _SHOWN)
    con.execute(f"""
        CREATE TABLE ubi AS
        SELECT row_number() OVER () AS n, row IS NULL AS is_bad,
          CASE WHEN row IS NULL THEN line END AS line,
          row ->> '$.action_name' AS action,
          coalesce(row ->> '$.query_id', CASE WHEN action <> ''
            THEN 'event ' || row_number() OVER () END) AS query_id,
          CASE json_type(row, '$.user_query')
            WHEN 'OBJECT' THEN row ->> '$.user_query.query'
            ELSE row ->> '$.user_query' END AS q,
          ids_in(coalesce({shown})) AS shown,
          id_of(item ->> '$.object.object_id') AS id,
          item ->> '$.object.description' AS title,
          TRY_CAST(coalesce(item ->> '$.position.ordinal.index',
            item ->> '$.position.ordinal') AS DOUBLE) AS ordinal,
          seconds_of(coalesce(row ->> '$.timestamp',
            row ->> '$."@timestamp"')) AS time,
          CASE WHEN (row ->> '$.client_id') <> ''
            THEN hash(row ->> '$.client_id') END AS client
        FROM (SELECT row, line, object_in(row, '$.event_attributes') AS item
              FROM ({sql}))
        WHERE row IS NOT NULL OR trim(line) <> ''""")
    ((queries, bad, example),) = con.execute(
        "SELECT count(q), count(*) FILTER (is_bad), min(line) FROM ubi"
    ).fetchall()
    actions = settings.weight_of_action()
    counts = check_actions(con, "action FROM ubi", actions, source)
    if not (queries and counts):
        missing = "queries (user_query)" if counts else "events (action_name)"
        raise InputError(
            f"{source}: found no {missing}, expected the queries and the events"
            " of UBI: name a folder or files that have both"
        )
    _make_pages(con, case_of_actions("action", actions))
    ((with_shown, without_shown),) = con.execute("""
        SELECT count(DISTINCT number) FILTER (page IS NOT NULL),
          count(DISTINCT number) FILTER (page IS NULL) FROM ubi_rows
        """).fetchall()
    listed = ", ".join(f"{name} ({n:,})" for name, n in counts.items())
    return Log(
        name=source,
        rows="""SELECT q, id, weight, 1 AS clicks, time, client, page, position
            FROM ubi_rows ORDER BY number, position""",
        titles="""SELECT r.id, coalesce(t.title, r.id) AS title
            FROM ubi_rows r LEFT JOIN (
              SELECT id, arg_min(title, n) AS title FROM ubi
              WHERE title <> '' GROUP BY id) t ON r.id = t.id
            ORDER BY number, position""",
        has_ids=not _has_spaces(con),
        has_time=True,
        columns={"actions": listed},
        notes=(
            f"  {with_shown:,} queries with shown products, {without_shown:,}"
            " queries with clicks only (their products are graded 1 to 4 by the"
            " clicks)",
        ),
        bad=BadRows(bad, example or ""),
    )


def _has_spaces(con: Any) -> bool:
    rows = con.execute("SELECT 1 FROM ubi_rows WHERE contains(id, ' ') LIMIT 1")
    return bool(rows.fetchall())


def _make_pages(con: Any, weight: str) -> None:
    """Makes the table `ubi_rows` of the shown and the clicked products."""
    con.execute("""
        CREATE TABLE ubi_query AS
        SELECT *, row_number() OVER (ORDER BY time, n) AS number FROM (
          SELECT query_id, min(n) AS n,
            first(q ORDER BY action IS NOT NULL, n)
              FILTER (trim(q) <> '') AS q,
            first(time ORDER BY action IS NOT NULL, n)
              FILTER (time IS NOT NULL) AS time,
            first(client ORDER BY n) FILTER (client IS NOT NULL) AS client
          FROM ubi WHERE query_id IS NOT NULL GROUP BY query_id)""")
    # If a query lists no shown products, the products of the query's impression
    # events are the shown products.
    con.execute(f"""
        CREATE TABLE ubi_shown AS
        WITH listed AS (
          SELECT query_id, id_of(shown[i]) AS id, min(i) AS position
          FROM (SELECT *, unnest(range(1, len(shown) + 1)) AS i FROM ubi
                WHERE action IS NULL)
          GROUP BY ALL),
        seen AS (
          SELECT query_id, id, min(ordinal) AS ordinal, min(n) AS n FROM ubi
          WHERE action IN ({", ".join(map(quoted, _IMPRESSIONS))})
            AND id IS NOT NULL AND coalesce(ordinal, 0) >= 0
            AND query_id NOT IN (SELECT query_id FROM listed)
          GROUP BY ALL)
        FROM listed WHERE id IS NOT NULL
        UNION ALL SELECT query_id, id, row_number() OVER (
          PARTITION BY query_id ORDER BY ordinal, n) FROM seen""")
    con.execute(f"""
        CREATE TABLE ubi_rows AS
        WITH clicked AS (
          SELECT query_id, id, max({weight}) AS weight, min(time) AS time,
            arg_min(q, n) AS q
          FROM ubi WHERE {weight} IS NOT NULL GROUP BY ALL),
        joined AS (
          SELECT coalesce(s.query_id, c.query_id) AS query_id,
            coalesce(s.id, c.id) AS id, coalesce(weight, 0) AS weight,
            position, c.time, c.q
          FROM ubi_shown s FULL JOIN clicked c
            ON s.query_id = c.query_id AND s.id = c.id),
        paged AS (SELECT DISTINCT query_id AS paged FROM ubi_shown)
        SELECT coalesce(q.q, j.q) AS q, id, weight,
          coalesce(q.time, j.time) AS time, client,
          coalesce(number, 0) AS number,
          CASE WHEN paged IS NOT NULL THEN number END AS page,
          CAST(CASE WHEN paged IS NOT NULL THEN coalesce(position, 0) END
            AS INTEGER) AS position
        FROM joined j LEFT JOIN ubi_query q ON j.query_id = q.query_id
        LEFT JOIN paged ON j.query_id = paged""")

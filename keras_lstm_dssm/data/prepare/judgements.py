"""Reads judgements (query, product, grade), which become the test split."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.prepare.columns import COMMON, find_columns
from keras_lstm_dssm.data.prepare.tables import Table, quoted
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import MAX_GRADE
from keras_lstm_dssm.plain_files import cleaned
from keras_lstm_dssm.settings.prepare import PrepareSettings

STORED = "judgements.parquet"

_QUERY_IDS = ("query_id", "qid", "topic_id", "topic")
_GRADE = re.compile("-?[0-9]+").fullmatch
_TOPIC = re.compile(
    r"<num>\s*(?:Number:)?\s*([^\s<]+)\s*(?:</num>\s*)?"
    r"<title>\s*(?:Topic:)?([^<]*)"
)


def read_judgements(
    con: Any, tables: Sequence[Table], source: str, settings: PrepareSettings
) -> dict[str, str]:
    """Makes the table `judged`, with grades from 0 to 4.

    Returns role -> column, for the roles "query", "clicked" and "grade". The
    columns are from the last table that has grades.
    """
    texts = ["SELECT NULL AS number, NULL AS q WHERE false"]
    rows, columns = [], dict[str, str]()
    for table in tables:
        table = _with_names(con, table)
        grades = [settings.grade] if settings.grade else COMMON["grade"]
        # A table without grades may have the texts of the queries.
        if len(tables) > 1 and not _first(table, grades):
            number = _first(table, ("_id", "id", *_QUERY_IDS))
            text = _first(table, ("text", *COMMON["query"]))
            if number and text and table.column("title") is None:
                texts.append(
                    f"SELECT id_of({table.column(number)}) AS number,"
                    f" {table.column(text)} AS q FROM {table.sql}"
                )
            continue
        # --query or --clicked may name a column that only the log has. Then
        # the flag is ignored.
        flags = {
            role: name and _first(table, [name])
            for role in ("query", "clicked")
            for name in [getattr(settings, role)]
        }
        number = None
        if not (flags["query"] or _first(table, COMMON["query"])):
            flags["query"] = number = _first(table, _QUERY_IDS)
        columns = find_columns(
            table, source, settings.replace(**flags),
            ("query", "clicked", "grade"),
        )  # fmt: skip
        query = table.column(columns["query"])
        if number:
            query = f"id_of({table.column(number)})"
        rows.append(f"""
            SELECT {query} AS q, {bool(number)} AS is_number,
              id_of({table.column(columns["clicked"])}) AS id,
              trim({table.column(columns["grade"])}) AS text
            FROM {table.sql}""")
    if not rows:
        raise InputError(
            f"{source}: found no column of grades, expected query, product and"
            " grade: name the column by --grade"
        )
    # E, S, C and I are the labels of the ESCI data: exact, substitute,
    # complement and irrelevant. If a grade exceeds 4, or if the grades are
    # fractions from 0 to 1, all grades are rescaled to 0 to 4.
    con.execute(f"""
        CREATE TABLE judged AS
        WITH texts AS (
          SELECT number, any_value(q) AS q
          FROM ({" UNION ALL ".join(texts)}) GROUP BY number),
        rows AS (
          SELECT CASE WHEN is_number THEN t.q ELSE r.q END AS q, id, text
          FROM ({" UNION ALL ".join(rows)}) r
          LEFT JOIN texts t ON is_number AND t.number = r.q),
        numbers AS (
          SELECT *, coalesce(TRY_CAST(text AS DOUBLE), CASE upper(text)
            WHEN 'E' THEN 4 WHEN 'S' THEN 2 WHEN 'C' THEN 1
            WHEN 'I' THEN 0 END) AS grade
          FROM rows WHERE text <> ''),
        scale AS (
          SELECT max(grade) AS most, bool_or(grade <> trunc(grade)) AS parts
          FROM numbers)
        SELECT q, id, text, CAST(round(grade * CASE
          WHEN most > {MAX_GRADE} THEN {MAX_GRADE} / most
          WHEN most <= 1 AND parts THEN {MAX_GRADE} ELSE 1 END) AS INTEGER)
          AS grade
        FROM numbers, scale""")
    ((has_queries, has_rows),) = con.execute(
        "SELECT count(q) > 0, count(*) > 0 FROM judged"
    ).fetchall()
    if has_rows and not has_queries:
        raise InputError(
            f"{source}: found ids of queries without texts, expected also a"
            " file of queries or topics: add its path after a comma"
        )
    wrong = con.execute(
        "SELECT text FROM judged WHERE grade IS NULL OR grade < 0 LIMIT 1"
    ).fetchone()
    if wrong:
        raise InputError(
            f"{source}: found the grade {wrong[0]!r:.60}, expected numbers of 0"
            " or more, or the labels E, S, C and I: name the column by --grade"
        )
    return columns


def _first(table: Table, names: Iterable[str]) -> str | None:
    return next((n for n in names if table.column(n) is not None), None)


def _with_names(con: Any, table: Table) -> Table:
    """Gives usual column names to a table of OpenSearch, TREC or plain TSV."""
    lines = [" ".join(row.values()).split() for row in table.sample]
    if ratings := table.column("ratings"):
        return _renamed(table, ("query", "docid", "rating"), f"""
            SELECT {table.column("query")} AS query, r ->> '$.docId' AS docid,
              r ->> '$.rating' AS rating
            FROM (SELECT *, unnest(CAST({ratings} AS JSON[])) AS r
                  FROM {table.sql})""")  # fmt: skip
    if table.has_header or table.form != "text":
        return table
    if lines[:1] == [["<top>"]]:
        topics = [
            [key, cleaned(text)]
            for path in table.files
            for key, text in _TOPIC.findall(
                Path(path).read_text("utf-8", "replace")
            )
        ]
        con.execute("CREATE TABLE IF NOT EXISTS topic (_id TEXT, text TEXT)")
        con.executemany("INSERT INTO topic VALUES (?, ?)", topics)
        return _renamed(table, ("_id", "text"), "FROM topic")
    if table.is_plain and len(table.columns) == 2:
        key, text = table.columns.values()
        columns = {"_id": key, "text": text}
        return table._replace(columns=columns, has_header=True)
    if lines and all(len(w) == 4 and _GRADE(w[3]) for w in lines):
        line = f"concat_ws(' ', {', '.join(table.columns.values())})"
        return _renamed(table, ("query_id", "docid", "rating"), rf"""
            SELECT w[1] AS query_id, w[3] AS docid, w[4] AS rating
            FROM (SELECT string_split_regex(trim({line}), '\s+') AS w
                  FROM {table.sql}) WHERE len(w) = 4""")  # fmt: skip
    return table


def _renamed(table: Table, names: Sequence[str], select: str) -> Table:
    columns = {name: name for name in names}
    return table._replace(sql=f"({select})", columns=columns, has_header=True)


def read_stored(con: Any, path: Path) -> None:
    """Makes the table `judged` from the parquet file of a data folder."""
    con.execute(
        f"CREATE TABLE judged AS FROM read_parquet({quoted(str(path))})"
    )


def use_judgements(con: Any) -> None:
    """Replaces the grades of the split "test" by the judged grades."""
    con.execute("DELETE FROM grade WHERE split = 'test'")
    con.execute("""
        INSERT INTO grade BY NAME
        SELECT 'test' AS split, query, p.number AS product,
          max(grade) AS grade
        FROM judged j JOIN written w ON j.q = w.q
        JOIN product p ON p.id = j.id
        WHERE query IS NOT NULL GROUP BY ALL""")

"""Judgements: query, product and grade, which become the test split."""

from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.prepare.catalogue import id_of
from keras_lstm_dssm.data.prepare.columns import find_columns
from keras_lstm_dssm.data.prepare.tables import Table, quoted
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import MAX_GRADE
from keras_lstm_dssm.settings.prepare import PrepareSettings

STORED = "judgements.parquet"


def read_judgements(
    con: Any, table: Table, source: str, settings: PrepareSettings
) -> dict[str, str]:
    """Makes the table `judged` of `(q, id, grade)`; returns the columns.

    Grades are whole numbers from 0 to 4, or numbers that are brought to this
    scale: those of a scale that ends above 4, such as 0 to 100, and fractions
    from 0 to 1. The labels of ESCI are E 4, S 2, C 1, I 0. Rows without a grade
    are left out.
    """
    if ratings := table.column("ratings"):  # of OpenSearch's workbench
        query = table.column("query")
        sql = f"""(
            SELECT {query} AS query, r ->> '$.docId' AS docid,
              r ->> '$.rating' AS rating
            FROM (SELECT *, unnest(CAST({ratings} AS JSON[])) AS r
                  FROM {table.sql}))"""
        names = ("query", "docid", "rating")
        table = table._replace(sql=sql, columns={n: n for n in names})
    columns = find_columns(
        table, source, settings, ("query", "clicked", "grade")
    )
    key = id_of(con, table, columns["clicked"])
    con.execute(f"""
        CREATE TABLE judged AS
        WITH rows AS (
          SELECT {table.column(columns["query"])} AS q, {key} AS id,
            trim({table.column(columns["grade"])}) AS text FROM {table.sql}),
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
    wrong = con.execute(
        "SELECT text FROM judged WHERE grade IS NULL OR grade < 0 LIMIT 1"
    ).fetchone()
    if wrong:
        raise InputError(
            f"{source}: found the grade {wrong[0]!r:.60}, expected numbers of 0"
            " or more, or the labels E, S, C and I: name the column by --grade"
        )
    return columns


def read_stored(con: Any, folder: Path) -> None:
    """Makes the table `judged` of those that a data folder has."""
    con.execute(
        f"CREATE TABLE judged AS FROM read_parquet({quoted(str(folder))})"
    )


def use_judgements(con: Any) -> None:
    """Replaces the grades of the split test by those of the judgements."""
    con.execute("DELETE FROM grade WHERE split = 'test'")
    con.execute("""
        INSERT INTO grade BY NAME
        SELECT 'test' AS split, query, p.number AS product,
          max(grade) AS grade
        FROM judged j JOIN written w ON j.q = w.q
        JOIN product p ON p.id = j.id
        WHERE query IS NOT NULL GROUP BY ALL""")

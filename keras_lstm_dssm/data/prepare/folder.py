"""Writes the files of a data folder, see docs/data.md."""

from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.collection import COUNTED_CLICKS
from keras_lstm_dssm.data.prepare.judgements import STORED
from keras_lstm_dssm.data.prepare.tables import quoted
from keras_lstm_dssm.settings.prepare import PrepareSettings

LOGS = "log"
"""The subfolder that has a parquet file for each log, with the log's rows."""

_TSV = "FORMAT csv, DELIMITER '\t', QUOTE '', ESCAPE '', HEADER"


def write_folder(con: Any, folder: Path, settings: PrepareSettings) -> None:
    """Writes the products, the graded queries, their grades, and the clicks."""
    fields = ", fields" * bool(settings.text) + ", tags" * bool(settings.tags)
    _copy(
        con,
        f"SELECT key AS _id, title, text{fields} FROM product ORDER BY number",
        folder / "corpus.jsonl",
        "FORMAT json",
    )
    _copy(
        con,
        """SELECT 'q' || number AS _id, text FROM query_text
           WHERE number IN (SELECT query FROM grade) ORDER BY number""",
        folder / "queries.jsonl",
        "FORMAT json",
    )
    (folder / "qrels").mkdir()
    for (split,) in con.execute("SELECT DISTINCT split FROM grade").fetchall():
        _copy(
            con,
            f"""SELECT 'q' || query AS "query-id", key AS "corpus-id",
                  grade AS score
                FROM grade JOIN product ON product = product.number
                WHERE split = {quoted(split)} ORDER BY query, product""",
            folder / "qrels" / f"{split}.tsv",
            _TSV,
        )
    write_clicks(con, folder / COUNTED_CLICKS, after=0)


def write_clicks(con: Any, path: Path, after: int) -> None:
    """Writes the training clicks of each log whose number is above `after`."""
    _copy(
        con,
        f"""SELECT w.text AS query, p.key AS id,
              format('{{:.7g}}', weight) AS weight,
              CAST(sum(clicks) AS BIGINT) AS clicks
            FROM click JOIN written w ON spelling = w.n
            JOIN product p ON product = p.number
            WHERE split = 'train' AND kind = 'clicks' AND weight > 0
              AND part > {after}
            GROUP BY ALL ORDER BY min(hash(w.text, p.key)), 1, 2, 3""",
        path,
        _TSV,
    )


def write_rows(con: Any, folder: Path, part: int, rows: str) -> Path:
    """Writes the result of the SQL query `rows` to the file of log `part`."""
    path = folder / f"{part:04}.parquet"
    _copy(con, rows, path, "FORMAT parquet, COMPRESSION zstd")
    return path


def write_judged(con: Any, folder: Path) -> None:
    """Writes the judgements, which the next `--append` reads."""
    _copy(con, "FROM judged", folder / LOGS / STORED, "FORMAT parquet")


def stored_logs(folder: Path | None, count: int) -> list[Path]:
    """Returns the parquet files of the logs in a data folder."""
    if folder is None:
        return []
    return [folder / LOGS / f"{n:04}.parquet" for n in range(1, count + 1)]


def _copy(con: Any, select: str, path: Path, options: str) -> None:
    con.execute(f"COPY ({select}) TO {quoted(str(path))} ({options})")

"""The files of a data folder, see docs/data.md."""

import shutil
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.collection import CLICKS
from keras_lstm_dssm.data.prepare.judgements import STORED
from keras_lstm_dssm.data.prepare.tables import quoted
from keras_lstm_dssm.settings.prepare import PrepareSettings

LOGS = "log"
"""Folder of the rows of the logs, a file of parquet for each time of adding."""

NEW_CLICKS = "clicks.new.tsv"
"""The training clicks that the last `--append` has added."""

_ROWS_AT_ONCE = 1 << 20
_QRELS = "FORMAT csv, DELIMITER '\t', QUOTE '', ESCAPE '', HEADER"
_LINES = "FORMAT csv, DELIMITER '\x01', QUOTE '', ESCAPE '', HEADER false"


def write_folder(con: Any, folder: Path, settings: PrepareSettings) -> None:
    """Writes the products, queries, grades and training clicks."""
    extra = ", fields" * bool(settings.text) + ", tags" * bool(settings.tags)
    _copy(
        con,
        f"SELECT key AS _id, title, text{extra} FROM product ORDER BY number",
        folder / "corpus.jsonl",
        "FORMAT json",
    )
    _copy(
        con,
        """SELECT 'q' || number AS _id, text FROM asked
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
            _QRELS,
        )
    write_clicks(con, folder / CLICKS, after=0)


def write_clicks(con: Any, path: Path, after: int) -> None:
    """Writes the training clicks of the logs after a part, in their order.

    Each is there as often as it was made. The third column is a weight other
    than 1, as the lines of a click file. Blocks of rows are sorted, whose texts
    fit into memory.
    """
    ((rows,),) = con.execute("SELECT count(*) FROM entry").fetchall()
    block = path.with_suffix(".block")
    with path.open("wb") as target:
        for first in range(0, rows, _ROWS_AT_ONCE):
            _copy(
                con,
                f"""SELECT text || chr(9) || body || CASE WHEN weight = 1
                      THEN '' ELSE chr(9) || format('{{:.7g}}', weight) END
                    FROM click WHERE n >= {first}
                      AND n < {first + _ROWS_AT_ONCE} AND split = 'train'
                      AND kind = 'clicks' AND weight > 0 AND part > {after}
                    ORDER BY n""",
                block,
                _LINES,
            )
            with block.open("rb") as lines:
                shutil.copyfileobj(lines, target, 1 << 24)
    block.unlink(missing_ok=True)


def write_log(con: Any, folder: Path, part: int, is_judged: bool) -> None:
    """Writes the rows of the log that were read this time."""
    (folder / LOGS).mkdir()
    if is_judged:
        _copy(con, "FROM judged", folder / LOGS / STORED, "FORMAT parquet")
    _copy(
        con,
        f"""SELECT q, id, weight, time, client, page, position
            FROM entry WHERE part = {part}""",
        folder / LOGS / f"{part:04}.parquet",
        "FORMAT parquet, COMPRESSION zstd",
    )


def stored_logs(folder: Path | None, parts: int) -> list[str]:
    """Returns the first files of rows of the logs in a data folder."""
    if folder is None:
        return []
    return [str(folder / LOGS / f"{n:04}.parquet") for n in range(1, parts + 1)]


def _copy(con: Any, select: str, path: Path, form: str) -> None:
    con.execute(f"COPY ({select}) TO {quoted(str(path))} ({form})")

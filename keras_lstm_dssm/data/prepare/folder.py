"""The data folder: grades of held-out queries, training clicks, all products.

The tables `product`, `entry` (the rows of the logs), `written` and `asked` are
there when these functions are called.
"""

from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.collection import CLICKS, SEEN, UNSEEN
from keras_lstm_dssm.data.prepare.judgements import STORED
from keras_lstm_dssm.data.prepare.tables import quoted
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import MAX_GRADE
from keras_lstm_dssm.settings.prepare import PrepareSettings

LOGS = "log"
"""Folder of the rows of the logs, a file of parquet for each time of adding."""

NEW_CLICKS = "clicks.new.tsv"
"""The training clicks that the last `--append` has added."""

KINDS = ("clicks", "no id", "unknown id", "empty query", "double click")


def define_clicks(con: Any, split: str, seconds: float) -> None:
    """Makes the view `click`, the rows of `entry` with a kind and a split."""
    con.execute(
        "CREATE OR REPLACE TABLE doubled AS SELECT n FROM (SELECT rowid AS n,"
        " time - lag(time) OVER (PARTITION BY lower(q), id, client ORDER BY"
        " time, rowid) AS gap FROM entry WHERE time IS NOT NULL AND page IS"
        f" NULL AND weight > 0) WHERE gap <= {seconds!r}"
    )
    ((has_doubles,),) = con.execute(
        "SELECT count(*) > 0 FROM doubled"
    ).fetchall()
    is_double = "e.rowid IN (SELECT n FROM doubled)" if has_doubles else "false"
    con.execute(
        "CREATE OR REPLACE VIEW click AS SELECT e.rowid AS n, e.id, e.q,"
        " a.number AS query, w.text, words, p.number AS product, p.key, title,"
        f" body, weight, time, client, page, position, part, {split} AS split,"
        " CASE WHEN e.id IS NULL THEN 'no id'"
        " WHEN a.number IS NULL THEN 'empty query'"
        " WHEN p.number IS NULL THEN 'unknown id'"
        f" WHEN {is_double} THEN 'double click' ELSE 'clicks' END AS kind"
        " FROM entry e LEFT JOIN written w ON e.q = w.q"
        " LEFT JOIN asked a ON w.key = a.key LEFT JOIN product p ON e.id = p.id"
    )


def count_kinds(con: Any) -> tuple[dict[str, tuple[int, str]], int]:
    """Counts the rows of the log by kind, and the training clicks.

    Returns:
        Kind -> number of rows and an example, and the number of clicks of the
        split train.
    """
    rows = con.execute(
        "SELECT kind, count(*), arg_min(coalesce(q, ''), n),"
        " arg_min(coalesce(id, ''), n), count(*) FILTER (split = 'train' AND"
        " weight > 0) FROM click WHERE weight > 0 OR weight IS NULL"
        " GROUP BY kind"
    ).fetchall()
    found = {
        kind: (count, f"{query[:40]!r} and {key[:40]!r}")
        for kind, count, query, key, _ in rows
    }
    kinds = {kind: found.get(kind, (0, "")) for kind in KINDS}
    return kinds, sum(row[4] for row in rows if row[0] == "clicks")


def make_grades(con: Any) -> None:
    """Makes the table `grade` of the dev and test queries.

    The grade of a title that was clicked is 4 to 1 by its share of the query's
    clicks, as by `click_grades`. For a query of pages with the shown products,
    it is round(2 * clicks / expected clicks), at most 4: expected clicks are
    the sum, over the pages that showed the product, of the share of clicks at
    its position in the whole log (COEC). So 2 is a product that is clicked as
    often as others at its positions. A query, a product and a client count
    once, clicked if they were on any page.

    Source: Zhang and Jones 2007, "Comparing Click Logs and Editorial Labels for
    Training Query Rewriting", for clicks over expected clicks.
    """
    con.execute(
        "CREATE OR REPLACE TABLE held AS SELECT split, query, product, weight,"
        " client, position, n FROM click WHERE"
        " split <> 'train' AND kind = 'clicks'"
    )
    con.execute(
        "CREATE OR REPLACE TABLE rate AS SELECT position,"
        " avg(CAST(weight > 0 AS INTEGER)) AS rate FROM click WHERE position"
        " IS NOT NULL AND product IS NOT NULL GROUP BY position"
    )
    con.execute(
        "CREATE OR REPLACE TABLE grade AS"
        " WITH once AS (SELECT split, query, product,"
        " max(CAST(weight > 0 AS INTEGER)) AS clicked,"
        " arg_min(rate, n) AS expected FROM held JOIN rate USING (position)"
        " GROUP BY split, query, product,"
        " CASE WHEN client IS NULL THEN 'n' || n ELSE 'c' || client END),"
        " pages AS (SELECT split, query, product, CAST(least("
        f"{MAX_GRADE}, floor(coalesce(2 * sum(clicked) / nullif(sum(expected),"
        " 0), 0) + 0.5)) AS INTEGER) AS grade FROM once GROUP BY ALL),"
        " shares AS (SELECT split, query, product, CAST(greatest(1, round("
        f"log2(1 + {2**MAX_GRADE - 1} * clicks / max(clicks) OVER"
        " (PARTITION BY split, query)))) AS INTEGER) AS grade FROM (SELECT"
        " split, query, product, sum(weight) AS clicks FROM held ANTI JOIN"
        " pages USING (split, query) WHERE weight > 0 GROUP BY ALL)),"
        " graded AS (FROM pages UNION ALL FROM shares)"
        " SELECT * FROM graded WHERE (split, query) IN (SELECT (split, query)"
        " FROM graded WHERE grade > 0)"
    )


def divide_test(con: Any) -> None:
    """Also grades test queries apart by whether training has their words."""
    con.execute(
        "CREATE TABLE trained AS SELECT DISTINCT words FROM click WHERE split ="
        " 'train' AND kind = 'clicks' AND weight > 0"
    )
    con.execute(
        "INSERT INTO grade BY NAME SELECT CASE WHEN query IN (SELECT a.number"
        " FROM asked a JOIN written w USING (key) JOIN trained USING (words))"
        f" THEN {quoted(SEEN)} ELSE {quoted(UNSEEN)} END AS split, query,"
        " product, grade FROM grade WHERE split = 'test'"
    )


def write_folder(con: Any, folder: Path, settings: PrepareSettings) -> None:
    """Writes the products, queries, grades and training clicks."""
    extra = ", fields" if settings.text else ""
    if settings.tags:
        extra += ", tags"
    _copy(
        con,
        f"SELECT key AS _id, title, text{extra} FROM product ORDER BY number",
        folder / "corpus.jsonl",
        "FORMAT json",
    )
    _copy(
        con,
        "SELECT 'q' || number AS _id, text FROM asked WHERE number IN (SELECT"
        " query FROM grade) ORDER BY number",
        folder / "queries.jsonl",
        "FORMAT json",
    )
    (folder / "qrels").mkdir(exist_ok=True)
    for (split,) in con.execute("SELECT DISTINCT split FROM grade").fetchall():
        _copy(
            con,
            'SELECT \'q\' || query AS "query-id", key AS "corpus-id", grade'
            " AS score FROM grade JOIN product ON product = product.number"
            f" WHERE split = {quoted(split)} ORDER BY query, product",
            folder / "qrels" / f"{split}.tsv",
            _LINES.replace("HEADER false", "HEADER true"),
        )
    write_clicks(con, folder / CLICKS, "true")


_LINES = "FORMAT csv, DELIMITER '\t', QUOTE '', ESCAPE '', HEADER false"


def write_clicks(con: Any, path: Path, where: str) -> None:
    """Writes the training clicks, each as often as it was made.

    The third column is a weight other than 1, as the lines of a click file.
    """
    weight = "chr(9) || format('{:.7g}', weight)"
    _copy(
        con,
        "SELECT text || chr(9) || body || CASE WHEN weight = 1 THEN '' ELSE"
        f" {weight} END FROM click WHERE split = 'train' AND kind = 'clicks'"
        f" AND weight > 0 AND {where} ORDER BY n",
        path,
        _LINES.replace("\t", "\x01"),
    )


def write_log(con: Any, folder: Path, part: int, is_judged: bool) -> None:
    """Writes the rows of the log that were read this time."""
    (folder / LOGS).mkdir(exist_ok=True)
    if is_judged:
        _copy(con, "FROM judged", folder / LOGS / STORED, "FORMAT parquet")
    _copy(
        con,
        "SELECT q, id, weight, time, client, page, position FROM entry"
        f" WHERE part = {part}",
        folder / LOGS / f"{part:04}.parquet",
        "FORMAT parquet, COMPRESSION zstd",
    )


def _copy(con: Any, select: str, path: Path, form: str) -> None:
    con.execute(f"COPY ({select}) TO {quoted(str(path))} ({form})")


def stored_logs(folder: Path | None, parts: int) -> list[str]:
    """Returns the first files of rows of the logs in a data folder."""
    if folder is None:
        return []
    return [str(folder / LOGS / f"{n:04}.parquet") for n in range(1, parts + 1)]


def count_queries(con: Any) -> dict[str, int]:
    """Returns the number of queries of each split but train."""
    counts = dict(
        con.execute(
            "SELECT split, count(DISTINCT query) FROM grade GROUP BY split"
        ).fetchall()
    )
    counts = dict.fromkeys(("dev", "test"), 0) | counts
    return {f"{split}_queries": number for split, number in counts.items()}


def check_splits(
    counts: dict[str, int],
    settings: PrepareSettings,
    source: str,
    is_judged: bool,
) -> None:
    """Checks that each split that is asked for has a query."""
    expected = {
        "train_clicks": True,
        "dev_queries": settings.dev_percent > 0,
        "test_queries": settings.test_percent > 0
        or settings.test_after is not None
        or is_judged,
    }
    for name, is_expected in expected.items():
        if is_expected and not counts[name]:
            raise InputError(
                f"{source}: found no query for the split"
                f" {name.partition('_')[0]}, expected one or more: give more"
                " clicks, or other percentages or times"
            )

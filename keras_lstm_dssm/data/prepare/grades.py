"""Classifies the rows of logs, and grades products for held-out queries."""

from typing import Any

from keras_lstm_dssm.data.collection import SEEN, UNSEEN
from keras_lstm_dssm.evaluation.measures import MAX_GRADE

BAD_KINDS = ("no id", "empty query", "wrong weight", "wrong time")
KINDS = ("clicks", *BAD_KINDS, "unknown id", "double click")


def define_clicks(con: Any, split: str, seconds: float, by_time: bool) -> None:
    """Makes view `row` and table `click`; `split` is SQL for a row's split."""
    wrong_time = "isnan(time)" + " OR time IS NULL" * by_time
    # `part` is the number of a row's log, from 1; 0 for judged queries.
    # A double click repeats client, query and id, at most `seconds` later.
    con.execute(f"""
        CREATE TABLE doubled AS
        WITH clicked AS MATERIALIZED (
          SELECT n, time, hash(lower(q), id, client) AS h FROM entry
          WHERE time IS NOT NULL AND client IS NOT NULL AND page IS NULL
            AND weight > 0)
        SELECT n FROM (
          SELECT n, time - lag(time) OVER (
            PARTITION BY h ORDER BY time, n) AS gap
          FROM clicked
          WHERE h IN (SELECT h FROM clicked GROUP BY h HAVING count(*) > 1))
        WHERE gap <= {seconds!r}""")
    ((doubles,),) = con.execute("SELECT count(*) FROM doubled").fetchall()
    is_double = "e.n IN (SELECT n FROM doubled)" if doubles else "false"
    con.execute(f"""
        CREATE VIEW row AS
        SELECT e.n, e.q, e.id, weight, clicks, client, position, part, file,
          w.n AS spelling, w.query, p.number AS product, {split} AS split,
          CASE WHEN e.id IS NULL THEN 'no id'
            WHEN w.query IS NULL THEN 'empty query'
            WHEN weight IS NULL THEN 'wrong weight'
            WHEN {wrong_time} THEN 'wrong time'
            WHEN p.number IS NULL THEN 'unknown id'
            WHEN {is_double} THEN 'double click'
            ELSE 'clicks' END AS kind
        FROM entry e LEFT JOIN written w ON e.q = w.q
        LEFT JOIN product p ON e.id = p.id""")
    con.execute("""
        CREATE TABLE click AS
        SELECT spelling, query, product, weight, part, file, split, kind,
          sum(clicks) AS clicks, min(n) AS n,
          arg_min(q, n) FILTER (kind <> 'clicks') AS q,
          arg_min(id, n) FILTER (kind <> 'clicks') AS id
        FROM row GROUP BY ALL""")


def first_clicks(con: Any, after: int, count: int) -> list[tuple[str, ...]]:
    """Returns query, id and title of the first clicks with `part` > `after`."""
    return con.execute(f"""
        SELECT w.text, p.key, title
        FROM click JOIN written w ON spelling = w.n
        JOIN product p ON product = p.number
        WHERE kind = 'clicks' AND weight > 0 AND part > {after}
        ORDER BY click.n LIMIT {count}""").fetchall()


def count_kinds(con: Any, after: int) -> tuple[dict[str, tuple[int, str]], int]:
    """Counts the rows of each kind, and the training clicks.

    Returns kind -> (number of rows, an example) for the logs with `part` >
    `after`, and the number of training clicks of all logs. Rows with weight 0
    are not counted.
    """
    rows = con.execute(f"""
        SELECT kind, coalesce(sum(clicks) FILTER (part > {after}), 0),
          arg_min(coalesce(q, ''), n) FILTER (part > {after}),
          arg_min(coalesce(id, ''), n) FILTER (part > {after}),
          coalesce(sum(clicks) FILTER (split = 'train' AND weight > 0), 0)
        FROM click WHERE weight > 0 OR weight IS NULL GROUP BY kind""")
    counted = {
        kind: (
            int(count),
            " and ".join(repr((t or "")[:40]) for t in texts),
            int(train),
        )
        for kind, count, *texts, train in rows.fetchall()
    }
    kinds = {kind: counted.get(kind, (0, "", 0)) for kind in KINDS}
    return {k: v[:2] for k, v in kinds.items()}, kinds["clicks"][2]


def joined_files(con: Any, part: int) -> set[int]:
    """Returns the indices of a log's files that contain clicks on products."""
    rows = con.execute(
        f"SELECT DISTINCT file FROM click WHERE part = {part}"
        " AND kind IN ('clicks', 'double click')"
    )
    return {number for (number,) in rows.fetchall()}


def make_grades(con: Any) -> None:
    """Makes the table `grade` of the dev and test queries.

    If a query's rows have positions, a product's grade is round(2 * clicks /
    expected clicks), at most 4. The expected clicks are the sum of the
    click-through rates of the positions at which the product was shown. Rows of
    one client, query and product count once, with the position of the first
    row. Other queries get the grades that `data.click_grades` describes.

    Source: Zhang and Jones 2007, "Comparing Click Logs and Editorial Labels for
    Training Query Rewriting", for clicks over expected clicks.
    """
    con.execute(f"""
        CREATE TABLE grade AS
        WITH placed AS MATERIALIZED (
          SELECT *, CAST(weight > 0 AS INTEGER) AS clicked FROM row
          WHERE position IS NOT NULL AND product IS NOT NULL),
        rates AS (
          SELECT position, avg(clicked) AS rate FROM placed GROUP BY position),
        once AS (
          SELECT split, query, product, arg_min(rate, n) AS expected,
            max(clicked) AS clicked
          FROM placed JOIN rates USING (position)
          WHERE split <> 'train' AND kind = 'clicks'
          GROUP BY split, query, product, client,
            CASE WHEN client IS NULL THEN n END),
        pages AS (
          SELECT split, query, product, coalesce(least({MAX_GRADE}, floor(
            2 * sum(clicked) / nullif(sum(expected), 0) + 0.5)), 0) AS grade
          FROM once GROUP BY ALL),
        clicks AS (
          SELECT split, query, product, sum(weight * clicks) AS clicks
          FROM click ANTI JOIN pages USING (split, query)
          WHERE split <> 'train' AND kind = 'clicks' AND weight > 0
          GROUP BY ALL),
        shares AS (
          SELECT split, query, product, greatest(1, round(log2(
            1 + {2**MAX_GRADE - 1} * clicks / max(clicks) OVER (
              PARTITION BY split, query)))) AS grade
          FROM clicks),
        graded AS (FROM pages UNION ALL FROM shares)
        SELECT split, query, product, CAST(grade AS INTEGER) AS grade
        FROM graded WHERE (split, query) IN (
          SELECT (split, query) FROM graded WHERE grade > 0)""")


def divide_test(con: Any) -> None:
    """Copies the grades of each test query to the split `SEEN` or `UNSEEN`.

    A test query is `SEEN` if a training click's query has the same words.
    """
    con.execute(f"""
        INSERT INTO grade BY NAME
        WITH trained AS (
          SELECT DISTINCT words FROM click JOIN written w ON spelling = w.n
          WHERE split = 'train' AND kind = 'clicks' AND weight > 0),
        seen AS (SELECT w.query FROM written w JOIN trained USING (words))
        SELECT query, product, grade, CASE WHEN query IN (FROM seen)
          THEN '{SEEN}' ELSE '{UNSEEN}' END AS split
        FROM grade WHERE split = 'test'""")


def count_queries(con: Any) -> dict[str, int]:
    """Counts the queries of each split except train, as `{split}_queries`."""
    rows = con.execute(
        "SELECT split, count(DISTINCT query) FROM grade GROUP BY split"
    )
    counts = dict.fromkeys(("dev", "test"), 0) | dict(rows.fetchall())
    return {f"{split}_queries": number for split, number in counts.items()}

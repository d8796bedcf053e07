"""Normalises the queries of a log, and assigns them to splits."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_lstm_dssm.data.split import WORD_RULE, percent_of
from keras_lstm_dssm.plain_files import cleaned
from keras_lstm_dssm.settings.prepare import PrepareSettings
from keras_lstm_dssm.text.word_hashing import normalize

_AT_ONCE = 1 << 16


def read_queries(con: Any, seed: int) -> None:
    """Makes the tables `query_text` and `written` from the view `entry`."""
    con.execute("""
        CREATE TABLE spelled (q VARCHAR, text VARCHAR, key VARCHAR,
          words VARCHAR, percent INTEGER, n BIGINT)""")
    for chunk in _distinct(con, seed):
        con.register("chunk", chunk)
        con.execute("INSERT INTO spelled FROM chunk")
        con.unregister("chunk")
    # Spellings that differ only in letter case or white space are one query.
    # Queries are numbered in the order of hashes, so that the numbers do not
    # depend on the order of the log.
    con.execute("""
        CREATE TABLE query_text AS
        SELECT row_number() OVER (ORDER BY hash(key), key) AS number, key,
          max(text) AS text  -- "bolt" rather than "Bolt"
        FROM spelled WHERE key <> '' GROUP BY key""")
    # `written` has a row for each spelling `q`. `n` is the number of the first
    # row of `entry` with this spelling.
    con.execute("""
        CREATE TABLE written AS
        SELECT s.*, a.number AS query
        FROM spelled s LEFT JOIN query_text a ON s.key = a.key""")


def _distinct(con: Any, seed: int) -> Iterator[dict[str, np.ndarray]]:
    """Yields rows for the table `spelled`, in blocks: column -> values."""
    # Python normalises the words, because DuckDB has no NFKC.
    reader = con.cursor()
    reader.execute("SELECT q, min(n) FROM entry WHERE q IS NOT NULL GROUP BY q")
    while rows := reader.fetchmany(_AT_ONCE):
        queries, numbers = zip(*rows, strict=True)
        texts = [cleaned(query) for query in queries]
        words = normalize(texts, WORD_RULE)
        columns = {
            "q": queries,
            "text": texts,
            "key": [text.casefold() for text in texts],
            "words": words,
        }
        yield {
            **{name: np.array(c, object) for name, c in columns.items()},
            "percent": np.array([percent_of(w, seed) for w in words], np.int32),
            "n": np.array(numbers, np.int64),
        }


def split_of(
    settings: PrepareSettings, test_after: float | None, is_judged: bool
) -> str:
    """Returns an SQL expression for the split of a row of the log.

    The expression reads columns of `entry` and `written`. If `is_judged`, the
    test split has the rows whose query has the same words as a query in the
    table `judged`. Otherwise, if `test_after` (seconds since 1970) is set, the
    test split has the rows from that time on.
    """
    test_percent = settings.test_percent
    is_test = f"percent < {test_percent}"
    if is_judged:
        test_percent = 0
        is_test = "words IN (SELECT words FROM judged JOIN written USING (q))"
    elif test_after is not None:
        test_percent = 0
        is_test = f"time >= {test_after!r}"
    return (
        f"CASE WHEN {is_test} THEN 'test' WHEN percent <"
        f" {test_percent + settings.dev_percent} THEN 'dev' ELSE 'train' END"
    )

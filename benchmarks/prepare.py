"""The suite `prepare` compares `data.prepare` with SQL in DuckDB."""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.clocks import interleaved_medians
from benchmarks.measure import memory_megabytes
from keras_lstm_dssm.data.prepare import prepare

_STATEMENT = """
COPY (SELECT query, product_id, count(*) AS clicks
      FROM read_csv('{folder}/clicks.csv', header=true, all_varchar=true) l
      JOIN read_csv('{folder}/catalogue.csv', header=true, all_varchar=true) p
      USING (product_id) GROUP BY ALL)
TO '{folder}/clicks.parquet' (FORMAT parquet, COMPRESSION zstd)"""

_CATALOGUE = """
COPY (SELECT format('{{:07}}', range) AS product_id,
        array_to_string(list_transform(range(6),
          lambda n: concat('w', hash(range, n) % 20000)), ' ') AS title
      FROM range({products}))
TO '{folder}/catalogue.csv'"""

_CLICKS = """
COPY (SELECT concat('w', hash(q) % 20000, ' w', hash(q, 1) % 20000) AS query,
        format('{{:07}}', (q * 7 + n % 20) % {products}) AS product_id
      FROM (SELECT range AS n, CAST(least(pow(1 - hash(range) / pow(2, 64),
              -1), {queries}) AS BIGINT) * 50 % {queries} AS q
            FROM range({clicks})))
TO '{folder}/clicks.csv'"""
"""Writes random clicks. The frequencies of queries follow a power law."""


def measure_prepare(clicks: int, rounds: int) -> dict[str, Any]:
    """Times `prepare` and a DuckDB SQL statement on the same random files."""
    import duckdb

    with tempfile.TemporaryDirectory() as name:
        folder, shop = Path(name), Path(name, "SHOP")
        tenth = clicks // 10
        values = {"folder": folder, "clicks": clicks, "products": tenth,
                  "queries": tenth}  # fmt: skip

        def seconds_of(statement: str) -> float:
            start = time.perf_counter()
            duckdb.connect().execute(statement.format(**values))
            return time.perf_counter() - start

        def seconds_of_prepare() -> float:
            shutil.rmtree(shop, ignore_errors=True)
            log, catalogue = folder / "clicks.csv", folder / "catalogue.csv"
            start = time.perf_counter()
            prepare(shop, clicks=log, catalogue=catalogue)
            return time.perf_counter() - start

        for statement in (_CATALOGUE, _CLICKS):
            seconds_of(statement)
        medians = interleaved_medians(
            {
                "prepare": seconds_of_prepare,
                "statement": lambda: seconds_of(_STATEMENT),
            },
            rounds,
        )
    return {
        **medians,
        "ratio": medians["prepare"] / medians["statement"],
        "megabytes": memory_megabytes("VmHWM"),
    }

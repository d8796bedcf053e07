"""The SQL in docs/data.md reads logs of GA4, Algolia and others as it says."""

import csv
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from keras_lstm_dssm.data.prepare import prepare
from tests.data.prepare.shop import PRODUCTS, clicks, write_json_lines

PAGE = Path(__file__).parents[3] / "docs/data.md"
STATEMENTS = {
    re.split(r"\W", block)[0]: f"-- {block}"
    for block in re.findall(r"```sql\n-- (.*?)```", PAGE.read_text(), re.S)
}
ROWS = [("s1", 1, "hex bolt", "007"), ("s2", 2, "glue", "12:30"),
        ("s1", 9, "lamp", "1E5")]  # fmt: skip
"""Session, second, query and product of each click."""


def ga4() -> None:
    def param(key: str, text: str | None, number: int | None) -> Any:
        return {
            "key": key,
            "value": {"string_value": text, "int_value": number},
        }

    rows = []
    for session, second, query, key in ROWS:
        both = [
            param("ga_session_id", None, 5),
            param("search_term", query, None),
        ]
        micros = (1_700_000_000 + second) * 1_000_000
        for name, params, items, later in (
            ("view_search_results", both, [], 0),
            ("select_item", both[:1], [{"item_id": key}], 500),
        ):
            rows.append(
                {
                    "event_name": name,
                    "event_timestamp": micros + later,
                    "user_pseudo_id": session,
                    "event_params": params,
                    "items": items,
                }
            )
    parquet.write_table(pa.Table.from_pylist(rows), "events_1.parquet")


def algolia() -> None:
    write_json_lines(Path("queries.jsonl"), [
        {"queryID": f"{n:032x}", "query": query}
        for n, (_, _, query, _) in enumerate(ROWS)
    ])  # fmt: skip
    write_json_lines(Path("events.jsonl"), [
        {"eventType": kind, "eventName": "Clicked", "queryID": f"{n:032x}",
         "objectIDs": [key], "positions": [1], "userToken": session,
         "timestamp": 1_700_000_000_000 + second}
        for n, (session, second, _, key) in enumerate(ROWS)
        for kind in ("click", "conversion")
    ])  # fmt: skip


def segment() -> None:
    rows = []
    for session, second, query, key in ROWS:
        text = query if second % 2 else {"query": query}
        for event, properties, at in (
            ("Products Searched", {"query": text}, f"{second}.000Z"),
            ("Product Clicked", {"product_id": key}, f"{second}.500Z"),
        ):
            rows.append(
                {
                    "event": event,
                    "anonymousId": session,
                    "timestamp": f"2026-03-01T10:00:0{at}",
                    "properties": properties,
                }
            )
    write_json_lines(Path("events.jsonl"), rows)


WRITERS = {"GA4": ga4, "Algolia": algolia, "Segment": segment}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_join_queries_and_clicks(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    WRITERS[name]()
    duckdb.connect().execute(STATEMENTS[name])
    with Path("clicks.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted((row["query"], row["id"]) for row in rows) == sorted(
        (query, key) for _, _, query, key in ROWS
    )
    assert {row["session"].split(".")[0] for row in rows} == {"s1", "s2"}
    assert all(row["timestamp"] for row in rows)
    assert len(STATEMENTS) == len(WRITERS)


def typesense(row):
    return {"query": row["query"], "doc_id": row["product_id"],
            "event_type": "click", "timestamp": row["time"]}  # fmt: skip


def elastic(row):
    return {
        "@timestamp": row["time"],
        "event": {"action": "search_click"},
        "session": {"id": row["session"]},
        "search": {"query": row["query"]},
        "document": {"id": row["product_id"], "index": "products"},
    }


@pytest.mark.parametrize("write", [typesense, elastic])
def test_logs_that_need_no_statement(write, tmp_path):
    """By the flags of docs/data.md."""
    write_json_lines(tmp_path / "log.jsonl", [write(row) for row in clicks()])
    write_json_lines(tmp_path / "catalogue.jsonl", PRODUCTS)
    (flags,) = re.findall(r"Elastic Behavioral.*`(--.*)`", PAGE.read_text())
    options = dict(flag[2:].split("=") for flag in flags.split())
    counts = prepare(
        None, clicks=tmp_path / "log.jsonl",
        catalogue=tmp_path / "catalogue.jsonl",
        **(options if write is elastic else {}),
    ).counts  # fmt: skip
    assert counts["log"]["clicks"] == 1500

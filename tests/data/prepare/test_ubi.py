"""UBI of every writer: equal products, clicks, splits and grades."""

import gzip
import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.errors import InputError
from tests.data.prepare.shop import (
    contents,
    trained,
    write_csv,
    write_json_lines,
)

PRODUCTS = [{"id": f"p{n}", "title": f"bolt {n}"} for n in range(20)]
OPTIONS: dict[str, Any] = {"dev_percent": 20, "test_percent": 30}


def searches() -> list[dict[str, Any]]:
    """400 searches of 40 queries, each with five results and a click."""
    rng = random.Random(0)
    rows = []
    for number in range(400):
        shown = [p["id"] for p in rng.sample(PRODUCTS, 5)]
        place = min(int(rng.expovariate(0.7)), 4)
        rows.append(
            {
                "id": f"q{number}",
                "query": f"hex {number % 40}",
                "client": f"c{number % 7}",
                "time": 1_700_000_000 + number,
                "shown": shown,
                "clicked": [place] * (number % 5 > 0),
            }
        )
    return rows


def queries(key: str = "query_response_hit_ids", **more: Any) -> list[Any]:
    return [
        {
            "query_id": s["id"],
            "user_query": s["query"],
            "client_id": s["client"],
            "timestamp": s["time"] * 1000,
            key: s["shown"],
            **more,
        }
        for s in searches()
    ]


def events(
    ordinal: Any = lambda place: place + 1,
    action: str = "click",
    **more: Any,
) -> list[Any]:
    return [
        {
            "action_name": action,
            "query_id": s["id"],
            "timestamp": "2023-11-14T22:13:20Z",
            "event_attributes": {
                "object": {"object_id": s["shown"][place]},
                "position": {"ordinal": ordinal(place)},
            },
            **more,
        }
        for s in searches()
        for place in s["clicked"]
    ]


def opensearch(folder: Path) -> None:
    write_json_lines(folder / "queries-1.ndjson", queries())
    data = "".join(json.dumps({"_source": row}) + "\n" for row in events())
    (folder / "events-1.ndjson.gz").write_bytes(gzip.compress(data.encode()))
    (folder / "events-2.ndjson").write_text("")


def elasticsearch(folder: Path) -> None:
    shown = "query_response_object_ids"
    write_json_lines(folder / "ubi_queries.ndjson", queries(shown))
    rows = events(lambda place: {"index": place})
    write_json_lines(folder / "ubi_events.ndjson", rows)


def solr(folder: Path) -> None:
    rows = [
        {**row, "doc_ids": ",".join(row["doc_ids"]), "query_attributes": "{}"}
        for row in queries("doc_ids")
    ]
    write_json_lines(folder / "ubi_queries.jsonl", rows)
    write_json_lines(folder / "page.jsonl", events(str))


def data_prepper(folder: Path) -> None:
    """Both prefixes have files of one name; codec ndjson, and codec json."""
    for name, rows in (("ubi_queries", queries()), ("ubi_events", events())):
        (folder / name).mkdir()
        write_json_lines(folder / name / "events-2026-1-8f.ndjson", rows[:200])
        (folder / name / "events-2026-2-8f.json").write_text(
            json.dumps({"events": rows[200:]})
        )


def chorus(folder: Path) -> None:
    """One bulk file; queries occur twice, once without the shown ids."""
    lines = []
    for index, rows in (
        ("ubi_queries", [{**q, "query_response_hit_ids": []} for q in
                         queries()]),
        ("ubi_events", events(action="item_click", user_query="hex")),
        ("ubi_queries", queries()),
    ):  # fmt: skip
        for row in rows:
            lines += [json.dumps({"index": {"_index": index}}), json.dumps(row)]
    (folder / "dump.ndjson").write_text("\n".join(lines) + "\n")


def old_chorus(folder: Path) -> None:
    """A name before each line; impressions in place of the shown ids."""
    rows = [
        {
            "action_name": "impression",
            "query_id": s["id"],
            "user_query": s["query"],
            "client_id": s["client"],
            "timestamp": s["time"] * 1000,
            "event_attributes": {
                "object": {"object_id": key},
                "position": {"ordinal": place + number % 2},
            },
        }
        for number, s in enumerate(searches())
        for place, key in enumerate(s["shown"])
    ]
    lines = [f"ubi_events\t{json.dumps(row)}\n" for row in [*rows, *events()]]
    (folder / "log_events.json").write_text("".join(lines))


def pandas_files(folder: Path) -> None:
    """Nanoseconds, structs whose keys differ, and lists of objects."""
    frame = pd.DataFrame(queries())
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="ms").astype(
        "datetime64[ns]"
    )
    frame.to_parquet(folder / "queries.parquet")
    rows = events(float)
    rows[0]["event_attributes"]["extra"] = "x"
    parquet.write_table(pa.Table.from_pylist(rows), folder / "e.parquet")


def texts_of_lists(folder: Path) -> None:
    """Objects and lists as texts of JSON."""
    frame = pd.DataFrame(queries())
    frame["query_response_hit_ids"] = frame["query_response_hit_ids"].map(
        json.dumps
    )
    frame.to_parquet(folder / "queries.parquet")
    rows = [
        {**row, "event_attributes": json.dumps(row["event_attributes"])}
        for row in events()
    ]
    write_json_lines(folder / "events.json", rows)


WRITERS = [opensearch, elasticsearch, solr, data_prepper, chorus, old_chorus,
           pandas_files, texts_of_lists]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("ubi")
    write_csv(base / "catalogue.csv", PRODUCTS)
    (base / "ubi").mkdir()
    opensearch(base / "ubi")
    prepare(base / "SHOP", catalogue=base / "catalogue.csv",
            ubi=base / "ubi", **OPTIONS)  # fmt: skip
    return base


def expected_grades(texts: set[str]) -> dict[str, dict[str, int]]:
    """Computes grades by clicks over expected clicks in Python, as a check."""
    shown, clicked = Counter[int](), Counter[int]()
    for search in searches():
        shown.update(range(5))
        clicked.update(search["clicked"])
    sums: dict[tuple[str, str], list[float]] = {}
    counted: dict[tuple[str, str, str], bool] = {}
    for search in searches():
        if search["query"] not in texts:
            continue
        for place, key in enumerate(search["shown"]):
            both = sums.setdefault((search["query"], key), [0, 0])
            client = search["client"], search["query"], key
            before = counted.get(client)
            if before is None:
                both[1] += clicked[place] / shown[place]
            is_clicked = place in search["clicked"]
            both[0] += is_clicked and not before
            counted[client] = is_clicked or bool(before)
    grades: dict[str, dict[str, int]] = {}
    for (query, key), (clicks, expected) in sums.items():
        grade = min(4, math.floor(2 * clicks / expected + 0.5))
        grades.setdefault(query, {})[key] = grade
    return grades


def test_grades_are_clicks_over_expected_clicks(folder):
    from keras_lstm_dssm.data import Collection

    shop = Collection(folder / "SHOP")
    found = {
        shop.queries[query]: grades
        for split in ("dev", "test")
        for query, grades in shop.qrels(split).items()
    }
    assert found == expected_grades(set(found)) and len(found) > 8
    every = {g for grades in found.values() for g in grades.values()}
    assert every == {0, 2, 3, 4}
    assert Counter(trained(shop)) == Counter(
        (s["query"], f"bolt {s['shown'][place][1:]}")
        for s in searches()
        if s["query"] not in found
        for place in s["clicked"]
    )


@pytest.mark.parametrize("write", WRITERS[1:])
def test_writers_are_equal(folder, tmp_path, write):
    (tmp_path / "ubi").mkdir()
    write(tmp_path / "ubi")
    prepare(tmp_path / "SHOP", catalogue=folder / "catalogue.csv",
            ubi=tmp_path / "ubi", **OPTIONS)  # fmt: skip
    assert contents(tmp_path / "SHOP") == contents(folder / "SHOP")


def test_without_shown_ids_grades_are_shares(folder, tmp_path):
    """As of a CSV of the same clicks; the report says so."""
    (tmp_path / "ubi").mkdir()
    rows = [{**row, "query_response_hit_ids": None} for row in queries()]
    write_json_lines(tmp_path / "ubi/queries", rows)
    write_json_lines(tmp_path / "ubi/events.json", events())
    (tmp_path / "ubi/queries").rename(tmp_path / "ubi/queries.json")
    lines: list[str] = []
    prepare(tmp_path / "SHOP", report=lines.append, ubi=tmp_path / "ubi",
            catalogue=folder / "catalogue.csv", **OPTIONS)  # fmt: skip
    assert lines[3] == (
        "  0 queries with shown products, 320 queries with clicks only"
        " (their products are graded 1 to 4 by the clicks)"
    )
    csv = [
        {"query": s["query"], "product_id": s["shown"][place]}
        for s in searches()
        for place in s["clicked"]
    ]
    write_csv(tmp_path / "clicks.csv", csv)
    prepare(tmp_path / "CSV", clicks=tmp_path / "clicks.csv",
            catalogue=folder / "catalogue.csv", **OPTIONS)  # fmt: skip
    assert contents(tmp_path / "SHOP") == contents(tmp_path / "CSV")


def test_actions_have_weights_or_are_listed(folder, tmp_path):
    (tmp_path / "ubi").mkdir()
    write_json_lines(tmp_path / "ubi/queries.json", queries())
    rows = events(action="tap") + events(action="purchase")[:9]
    write_json_lines(tmp_path / "ubi/events.json", rows)
    options = {"catalogue": folder / "catalogue.csv",
               "ubi": tmp_path / "ubi", **OPTIONS}  # fmt: skip
    with pytest.raises(InputError, match=r"found the actions tap \(320\), "
                       r"purchase \(9\), expected one of click, click_through"
                       ".* by --actions, such as tap:1"):  # fmt: skip
        prepare(None, **options)
    shop = prepare(tmp_path / "SHOP", **options, actions="tap:1, purchase:3")
    weights = [w for _, w, _ in shop.collection.training_clicks()]
    assert 0 < weights.count(3) < 10
    (tmp_path / "ubi/queries.json").unlink()
    with pytest.raises(InputError, match=r"found no queries \(user_query\)"):
        prepare(None, **options, actions="tap:1")


def test_titles_on_the_events(tmp_path):
    """Without a catalogue, a product has the title of its events, or its id."""
    rows = events()
    for row in rows:
        item = row["event_attributes"]["object"]
        if item["object_id"] != "p7":
            item["description"] = f"bolt  no {item['object_id']}"
    (tmp_path / "ubi").mkdir()
    write_json_lines(tmp_path / "ubi/queries.json", queries())
    write_json_lines(tmp_path / "ubi/events.json", rows)
    shop = prepare(tmp_path / "S", ubi=tmp_path / "ubi", **OPTIONS).collection
    assert shop.documents["p3"] == "bolt no p3"
    assert shop.documents["p7"] == "p7" and len(shop.documents) == 20


def test_odd_rows(folder, tmp_path):
    """Repeated and missing ids, clicks without a query, and no JSON."""
    (tmp_path / "ubi").mkdir()
    write_json_lines(tmp_path / "ubi/queries.json", queries())
    rows = [*events(), *events()]
    odd = [
        {**rows[0], "query_id": "unknown"},
        {**rows[0], "query_id": None, "user_query": "hex 0"},
        {**rows[0], "event_attributes": {}},
    ]
    write_json_lines(tmp_path / "ubi/events.json", rows + odd)
    with (tmp_path / "ubi/events.json").open("a") as file:
        file.write('{"action_name": \n[]\n')
    prepared = prepare(tmp_path / "SHOP", catalogue=folder / "catalogue.csv",
                       ubi=tmp_path / "ubi", **OPTIONS)  # fmt: skip
    assert prepared.counts["log"] == {
        "clicks": 321, "no id": 1, "empty query": 1, "wrong weight": 0,
        "wrong time": 0, "unknown id": 0, "double click": 0, "bad lines": 1,
    }  # fmt: skip


@pytest.mark.parametrize("has_time", [True, False])
def test_clicks_that_both_logs_have_are_refused(folder, tmp_path, has_time):
    (tmp_path / "ubi").mkdir()
    opensearch(tmp_path / "ubi")
    rows = [
        {
            "query": search["query"].upper(),
            "product_id": search["shown"][place],
            **({"time": search["time"] + 9} if has_time else {}),
        }
        for search in searches()
        for place in search["clicked"]
    ]
    options = {"catalogue": folder / "catalogue.csv",
               "ubi": tmp_path / "ubi", **OPTIONS}  # fmt: skip
    log = write_csv(tmp_path / "log.csv", rows)
    message = r"log.csv and .*ubi: found 3\d\d clicks in both logs, expected"
    with pytest.raises(InputError, match=message):
        prepare(None, clicks=log, **options)
    other = [{**row, "query": f"other {row['query']}"} for row in rows]
    counts = prepare(None, clicks=write_csv(log, other), **options).counts
    assert counts["log"]["clicks"] > 2 * 300

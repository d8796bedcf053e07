"""Logs in the form of UBI, as plugins of search engines write them."""

import gzip
import json
import pathlib
from typing import Any

TITLES = {f"d{n}": f"title {n}" for n in range(1, 9)}

SEARCHES = [  # the query, the ids that were shown, and the actions on them
    ("hex bolt", ["d3", "d1", "d2"], [("click", "d1"), ("click", "d1")]),
    ("wood glue", ["d2", "d4"], [("click", "d4"), ("purchase", "d4")]),
    ("lamp", ["d5", "d6"], []),
    ("lamp", ["d6", "d5"], [("click", "d6"), ("impression", "d5")]),
]


def write_ubi(
    folder: pathlib.Path,
    base: int,
    searches: Any = SEARCHES,
    shown: bool = True,
    start: int = 1_700_000_000,
) -> None:
    """Writes queries and events as OpenSearch's plugin dumps them.

    Without `shown`, every second query has no ids of results, as if another
    client had written it.
    """
    folder.mkdir(exist_ok=True)
    queries, events = [], []
    for number, (query, ids, actions) in enumerate(searches):
        time = start + 60 * number
        queries.append({
            "query_id": f"q-{number}", "user_query": query,
            "client_id": f"c{number % 2}", "timestamp": time * 1000,
        })  # fmt: skip
        if shown or number % 2:
            queries[-1]["query_response_hit_ids"] = ids
        for action, key in actions:
            events.append({
                "action_name": action, "query_id": f"q-{number}",
                "timestamp": "2023-11-14T22:13:20Z",
                "event_attributes": {
                    "object": {"object_id": key, "object_id_field": "sku"},
                    "position": {"ordinal": ids.index(key) + base},
                },
            })  # fmt: skip
    lines = "".join(json.dumps(row) + "\n" for row in queries)
    (folder / "queries-1.ndjson").write_text(lines)
    with gzip.open(folder / "events-1.ndjson.gz", "wt") as file:
        file.writelines(json.dumps({"_source": row}) + "\n" for row in events)

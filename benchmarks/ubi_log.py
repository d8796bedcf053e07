"""Measure time and memory of reading a click log in the form of UBI.

UBI is User Behavior Insights, see docs/clicks.md.

Each part is a process, as memory is counted by process:

    python -m keras_lstm_dssm.benchmarks.ubi_log write FOLDER EVENTS
    python -m keras_lstm_dssm.benchmarks.ubi_log read FOLDER

The second one prints JSON.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.benchmarks.clocks import wall_and_cpu
from keras_lstm_dssm.benchmarks.measure import memory_megabytes
from keras_lstm_dssm.benchmarks.scaling import synthetic_lines
from keras_lstm_dssm.data.click_pages import ClickPages, write_clicks

_SHOWN = 10
_CLICKS = 2  # of each page
_QUERIES = 100_000
_TITLES = 1_000_000


def write(folder: str, events: int) -> None:
    """Writes a log of searches: ten titles are shown, two of them clicked."""
    path, random = Path(folder), np.random.default_rng(0)
    path.mkdir(parents=True)
    lines = "".join(synthetic_lines(_QUERIES)).splitlines()
    texts = [line.split("\t")[0] for line in lines]
    with (
        open(path / "queries-1.ndjson", "w") as queries,
        open(path / "events-1.ndjson", "w") as clicks,
    ):
        for page in range(events // _CLICKS):
            first = int(random.integers(_TITLES - _SHOWN))
            row = {
                "query_id": f"q{page}",
                "user_query": texts[int(random.integers(_QUERIES))],
                "query_response_hit_ids": [
                    f"t{first + n}" for n in range(_SHOWN)
                ],
                "timestamp": 1_700_000_000_000 + page,
            }
            queries.write(json.dumps(row) + "\n")
            for place in random.integers(_SHOWN, size=_CLICKS).tolist():
                click = {
                    "action_name": "click",
                    "query_id": f"q{page}",
                    "timestamp": 1_700_000_000_000 + page,
                    "event_attributes": {
                        "object": {"object_id": f"t{first + place}"},
                        "position": {"ordinal": place + 1},
                    },
                }
                clicks.write(json.dumps(click) + "\n")


def read(folder: str) -> dict[str, Any]:
    """Measures reading all searches, and writing a click file of them."""
    counts: list[int] = []
    with tempfile.TemporaryDirectory() as made:
        pages = ClickPages(f"ubi:{folder}")
        wall, cpu = wall_and_cpu(lambda: counts.append(sum(1 for _ in pages)))
        whole, _ = wall_and_cpu(lambda: write_clicks(pages, f"{made}/c.tsv"))
    return {
        "pages": counts[0],
        "events": counts[0] * _CLICKS,
        "read_seconds": round(wall, 1),
        "read_processor_seconds": round(cpu, 1),
        "events_per_second": round(counts[0] * _CLICKS / wall),
        "clicks_seconds": round(whole, 1),
        "peak_megabytes": round(memory_megabytes("VmHWM")),
    }


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        print(json.dumps(read(sys.argv[2])))

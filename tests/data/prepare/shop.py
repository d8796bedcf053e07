"""A small shop: products, clicks, and the same in the forms that shops have."""

import csv
import json
import random
from pathlib import Path
from typing import Any

PRODUCTS = [
    {
        "id": f"{number:03}",
        "title": f'Hex bolt {number}/2" & nut',
        "brand": "Acme" if number % 2 else "Bolt, Sons",
        "stock": "true" if number % 3 else "false",
    }
    for number in range(120)
]


def clicks(count: int = 1500, seed: int = 0) -> list[dict[str, str]]:
    """Clicks of 150 queries, some in two spellings, in 40 sessions."""
    rng = random.Random(seed)
    rows = []
    for second in range(count):
        number = rng.randrange(150)
        query = f"Bolt {number}" if second % 2 else f"bolt  {number}"
        minute, rest = divmod(second * 7, 60)
        rows.append(
            {
                "time": f"2026-03-01T{minute // 60:02}:{minute % 60:02}"
                f":{rest:02}Z",
                "session": f"s{rng.randrange(40)}",
                "query": query,
                "product_id": f"{(number + rng.choice([0, 0, 0, 1])) % 120:03}",
            }
        )
    return rows


def write_csv(
    path: Path,
    rows: list[dict[str, str]],
    delimiter: str = ",",
    encoding: str = "utf-8",
    end: str = "\r\n",
    header: bool = True,
) -> Path:
    """Writes rows as Python's `csv` quotes them."""
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(
            file, list(rows[0]), delimiter=delimiter, lineterminator=end
        )
        if header:
            writer.writeheader()
        writer.writerows(rows)
    return path


def write_json_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Writes JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def trained(collection: Any) -> list[tuple[str, str]]:
    """Returns the training pairs, each as often as it was clicked."""
    return [
        tuple(pair)
        for pair, _, clicks in collection.training_clicks()
        for _ in range(clicks)
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """Returns the decompressed files of a data folder, without its sources."""
    import gzip

    found = {}
    for path in sorted(folder.rglob("*")):
        skipped = path.name == ".lock" or path.suffix in (".json", ".parquet")
        if path.is_file() and not skipped:
            data = path.read_bytes()
            found[str(path.relative_to(folder))] = (
                gzip.decompress(data) if path.suffix == ".gz" else data
            )
    return found

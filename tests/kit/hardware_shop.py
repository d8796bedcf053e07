"""The shop of docs/shop.md: its catalogue, and its logs of three days.

`python -m tests.kit.hardware_shop FOLDER` writes them. They have what files of
shops have: a byte order mark, inch marks in quotes, HTML entities, two rows of
one product, ids with leading zeros or written as 655.0, rows without an id,
unknown ids, empty queries, double clicks and queries in any letter case.
"""

import csv
import gzip
import io
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Title, brand, category, sizes, and what people ask for.
KINDS: list[tuple[str, str, str, str, tuple[str, ...]]] = [
    ("Angle Bracket", "Simpson", "Brackets", '1" 2" 3" 4"',
     ("angle bracket", "corner brace", "l bracket")),
    ("Hex Bolt", "Hillman", "Fasteners", '1/4" 1/2" 3/4" 1"',
     ("hex bolt", "machine bolt", "hexagon screw")),
    ("Deck Screws", "Hillman", "Fasteners", '1-1/2" 2" 2-1/2" 3"',
     ("deck screws", "decking fasteners", "outdoor wood screws")),
    ("Cordless Drill", "Makita", "Power Tools", "12V 18V 20V 40V",
     ("cordless drill", "battery drill", "screw gun")),
    ("Titanium Drill Bit Set", "Irwin", "Power Tools",
     "8-piece 14-piece 21-piece 29-piece",
     ("drill bits", "metal drilling set", "titanium bits")),
    ("Wood Glue", "Titebond", "Adhesives", "4oz 8oz 16oz 32oz",
     ("wood glue", "carpenter adhesive", "furniture glue")),
    ("LED Desk Lamp", "Philips", "Lighting", "5W 8W 10W 12W",
     ("desk lamp", "reading light", "table lamp")),
    ("LED Bulb", "Philips", "Lighting", "40W 60W 75W 100W",
     ("led bulb", "light bulb", "warm white bulb")),
    ("Garden Hose", "Gilmour", "Garden", "25ft 50ft 75ft 100ft",
     ("garden hose", "water pipe", "lawn hose")),
    ("Interior Wall Paint", "Behr", "Paint", "1qt 2qt 1gal 5gal",
     ("wall paint", "white emulsion", "bedroom paint")),
    ("Paint Roller Kit", "Purdy", "Paint", '4" 6" 9" 18"',
     ("paint roller", "wall roller", "painting kit")),
    ("Claw Hammer", "Estwing", "Hand Tools", "12oz 16oz 20oz 24oz",
     ("claw hammer", "nail hammer", "carpenter hammer")),
    ("Tape Measure", "Stanley", "Hand Tools", "12ft 16ft 25ft 35ft",
     ("tape measure", "measuring tape", "ruler")),
    ("Men&#39;s Work Gloves", "Wells &amp; Lamont", "Safety",
     "Small Medium Large XL",
     ("work gloves", "mens gloves", "hand protection")),
    ("Safety Glasses", "Uvex", "Safety", "Clear Grey Amber Blue",
     ("safety glasses", "eye protection", "goggles")),
]  # fmt: skip

IDS = ["007", "012", *map(str, range(600, 658))]
DAYS = "2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"
NEW = {
    "product_id": "700", "title": 'Pipe Wrench 14"', "brand": "Ridgid",
    "category": "Hand Tools", "colour": "red", "in_stock": "true",
}  # fmt: skip
"""A product of the third day, whose log has no click on it."""


def products() -> list[dict[str, str]]:
    """Returns the rows of the catalogue; a hose has a row for each colour."""
    rows = []
    ids = iter(IDS)
    for title, brand, category, sizes, _ in KINDS:
        for size in sizes.split():
            row = {
                "product_id": next(ids),
                "title": f"{title} {size}",
                "brand": brand,
                "category": category,
                "colour": "green" if category == "Garden" else "",
                "in_stock": "false" if size == sizes.split()[2] else "true",
            }
            rows.append(row)
            if category == "Garden":
                rows.append({**row, "colour": "black"})
    return rows


def clicks(day: int, count: int) -> list[dict[str, str]]:
    """Returns the rows of a day's log: a click each, and what is no click."""
    rng = random.Random(day)
    rows = []
    for number in range(count):
        kind = rng.randrange(len(KINDS))
        _, brand, _, sizes, queries = KINDS[kind]
        size = rng.choices(range(4), [4, 3, 2, 1])[0]
        query = rng.choices(queries, [4, 2, 1])[0]
        if rng.random() < 0.4:
            query += " " + sizes.split()[size]
        elif rng.random() < 0.3:
            query = f"{brand.split()[0]} {query}"
        if rng.random() < 0.1:  # a letter is missing
            place = rng.randrange(1, len(query))
            query = query[:place] + query[place + 1 :]
        if rng.random() < 0.15:  # somebody looks at something else
            kind = rng.randrange(len(KINDS))
        row = {
            "time": _time(day, 40 * number),
            "session": f"s{day}{rng.randrange(400):03}",
            "query": rng.choices([query, query.title(), query.upper()],
                                 [6, 2, 1])[0],
            "product_id": IDS[4 * kind + size],
        }  # fmt: skip
        rows.append(row)
        for dirt in ({"product_id": ""}, {"product_id": "9001"}, {"query": ""}):
            if rng.random() < 0.01:
                rows.append({**row, **dirt})
        if rng.random() < 0.02:
            rows.append({**row, "time": _time(day, 40 * number + 1)})
    return rows


def _time(day: int, seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{DAYS[day]}T{hour:02}:{minute:02}:{second:02}Z"


def with_gaps(rows: Sequence[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Writes ids as a table library does whose column of numbers has gaps."""
    for row in rows:
        key = row["product_id"]
        yield {**row, "product_id": key and f"{float(key)}"}


def write_csv(path: Path, rows: Sequence[dict[str, Any]], mark: str) -> None:
    """Writes rows as spreadsheets do, with or without a byte order mark."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*rows[0]])
    writer.writeheader()
    writer.writerows(rows)
    data = (mark + text.getvalue()).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_shop(folder: Path) -> None:
    """Writes the files that docs/shop.md names.

    Two days with a catalogue, and the logs of the two days after, of which the
    first comes with a new catalogue.
    """
    mark = "\N{ZERO WIDTH NO-BREAK SPACE}"
    write_csv(folder / "catalogue.csv", products(), mark)
    write_csv(folder / "catalogue-3.csv", [*products(), NEW], mark)
    for day in (0, 1):
        path = folder / f"log-{DAYS[day]}.csv.gz"
        write_csv(path, clicks(day, 1000), mark)
    for day in (2, 3):
        rows = [r for r in clicks(day, 400) if r["product_id"][:1] != "0"]
        write_csv(folder / f"log-{DAYS[day]}.csv", [*with_gaps(rows)], "")


if __name__ == "__main__":
    write_shop(Path(sys.argv[1]))

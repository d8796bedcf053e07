"""Equal products, clicks and splits of all forms of a catalogue and a log."""

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from keras_lstm_dssm.data import Collection, click_grades
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.data.split import splits_of
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import normalize
from tests.data.prepare.shop import (
    PRODUCTS,
    clicks,
    contents,
    trained,
    write_csv,
    write_json_lines,
)

OPTIONS = {"text": ("brand",), "tags": ("brand", "stock"),
           "dev_percent": 20, "test_percent": 20}  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The data folder of two CSV files, and the folder of the files."""
    base = tmp_path_factory.mktemp("shop")
    write_csv(base / "catalogue.csv", PRODUCTS)
    write_csv(base / "log.csv", clicks())
    prepared = prepare(
        base / "SHOP",
        catalogue=base / "catalogue.csv",
        clicks=base / "log.csv",
        **OPTIONS,
    )
    return base, prepared


def expected_clicks() -> pd.DataFrame:
    """Joins, splits and leaves out double clicks, written with pandas."""
    log = pd.DataFrame(clicks())
    log["time"] = pd.to_datetime(log["time"])
    log["text"] = log["query"].str.split().str.join(" ")
    log = log.merge(pd.DataFrame(PRODUCTS), left_on="product_id", right_on="id")
    log["body"] = log["title"] + " " + log["brand"]
    log["split"] = splits_of(list(log["text"]), 20, 20)
    return log


def test_the_folder_equals_a_join_of_pandas(shop, tmp_path):
    _, (counts, collection) = shop
    expected = expected_clicks()
    train = expected[expected["split"] == "train"]
    pairs = train.groupby(["text", "id"], sort=False).size()
    folder = contents(type(shop[0])(collection.folder))
    head, *lines = folder["clicks.tsv"].decode().splitlines()
    assert head == "query\tid\tweight\tclicks"
    assert sorted(lines) == sorted(
        f"{query}\t{key}\t1\t{count}" for (query, key), count in pairs.items()
    )
    log = collection.training_log(write_to=tmp_path / "clicks.tsv")
    lines = (train["text"] + "\t" + train["body"] + "\n").tolist()
    assert sorted(Path(*log.paths).read_text().splitlines(True)) == sorted(
        lines
    )
    assert counts["train_clicks"] == len(train) > 800
    assert collection.documents == {
        p["id"]: f"{p['title']} {p['brand']}" for p in PRODUCTS
    }
    for split in ("dev", "test"):
        held = expected[expected["split"] == split]
        by_query = held.groupby(held["text"].str.lower())
        grades = {
            query: click_grades(rows["id"].value_counts().to_dict())
            for query, rows in by_query
        }
        found = {
            collection.queries[query].lower(): judged
            for query, judged in collection.qrels(split).items()
        }
        assert found == grades and len(grades) > 15
    rows = [json.loads(r) for r in folder["corpus.jsonl"].splitlines()]
    assert rows[4] == {
        "_id": "004", "title": 'Hex bolt 4/2" & nut', "text": "Bolt, Sons",
        "fields": {"brand": "Bolt, Sons"},
        "tags": ["brand:Bolt Sons", "stock:true"],
    }  # fmt: skip


def test_no_test_query_has_the_words_of_a_training_query(tmp_path):
    """As runs of letters and digits, which `best` reads."""
    spellings = ["query {}", "QUERY-{}", "(query) {}!", "query/{}"]
    (tmp_path / "log.tsv").write_text(
        "".join(
            f"{spelling.format(i)}\ttitle {i}\n"
            for i in range(100)
            for spelling in spellings
        )
    )
    _, collection = prepare(tmp_path / "new", clicks=tmp_path / "log.tsv")
    parts = [
        {query for query, _ in trained(collection)},
        *(
            {collection.queries[query] for query in collection.qrels(split)}
            for split in collection.splits
        ),
    ]
    normalized = [set(normalize(part, "alphanumeric")) for part in parts]
    assert sum(map(len, normalized)) == len(set.union(*normalized)) == 100
    # What is written in other signs is another query, of the same split.
    assert sum(map(len, parts)) == 400


def excel(path, rows):
    write_csv(path, rows, ";", "utf-8-sig")


def unicode_text(path, rows):
    write_csv(path, rows, "\t", "utf-16")


def macintosh(path, rows):
    write_csv(path, rows, ",", "mac_roman", "\r")


def tabs(path, rows):
    write_csv(path, rows, "\t", end="\n")


def zipped(path, rows):
    data = write_csv(path, rows).read_bytes()
    path.unlink()
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data))


def json_lines(path, rows):
    write_json_lines(path, rows)


def json_array(path, rows):
    path.write_text(json.dumps(rows, indent=1))


def one_object(path, rows):
    path.write_text(json.dumps({"rows": rows}))


def parquet(path, rows):
    pd.DataFrame(rows).to_parquet(path)


@pytest.mark.parametrize(
    "write",
    [excel, unicode_text, macintosh, tabs, zipped, json_lines, json_array,
     one_object, parquet],
)  # fmt: skip
def test_forms_are_equal(shop, tmp_path, write):
    base, _ = shop
    write(tmp_path / "catalogue", PRODUCTS)
    rows = clicks()
    write(tmp_path / "log-1", rows[:600])
    write(tmp_path / "log-2", rows[600:])
    prepare(
        tmp_path / "SHOP",
        catalogue=f"{tmp_path}/catalogue*",
        clicks=f"{tmp_path}/log-*",
        **OPTIONS,
    )
    assert contents(tmp_path / "SHOP") == contents(base / "SHOP")


@pytest.mark.parametrize(("encoding", "end"), [
    ("utf-8", "\n"), ("cp1252", "\r\n"), ("mac_roman", "\r"),
    ("utf-16", "\n"), ("utf-16-le", "\r\n"), ("utf-16-be", "\n"),
])  # fmt: skip
def test_encodings(tmp_path, encoding, end):
    rows = [{"id": "1", "title": "Schlüssel für Größe 5 ÷ „M“"},
            {"id": "2", "title": "€ café"}]  # fmt: skip
    rows = rows if encoding != "mac_roman" else rows[:1] * 2
    write_csv(tmp_path / "c.csv", rows, encoding=encoding, end=end)
    lines = [json.dumps({"query": f"q {n}", "id": 1}) + "\n" for n in range(60)]
    (tmp_path / "l.jsonl").write_text("".join(lines) + '{"query": \n{}\n')
    counts, shop = prepare(
        tmp_path / "SHOP", catalogue=tmp_path / "c.csv",
        clicks=tmp_path / "l.jsonl", dev_percent=20,
    )  # fmt: skip
    assert shop.documents == {row["id"]: row["title"] for row in rows}
    assert counts["log"]["bad lines"] == counts["log"]["no id"] == 1


def arrow(rows):
    import pyarrow

    return pyarrow.Table.from_pylist(rows)


def polars(rows):
    return pytest.importorskip("polars").DataFrame(rows)


def relation(rows):
    """Of a connection of its own."""
    import duckdb

    return duckdb.connect().from_arrow(arrow(rows))


@pytest.mark.parametrize("frame", [pd.DataFrame, arrow, polars, relation])
def test_frames_are_read(shop, tmp_path, frame):
    base, _ = shop
    prepare(tmp_path / "SHOP", catalogue=frame(PRODUCTS),
            clicks=frame(clicks()), **OPTIONS)  # fmt: skip
    assert contents(tmp_path / "SHOP") == contents(base / "SHOP")


@pytest.mark.parametrize("first", ['{"query": "bolt", "prod', 'rod": "5"}'])
def test_a_bad_first_line_of_json_is_one_bad_line(shop, tmp_path, first):
    """As in a log that was cut where it was rotated."""
    base, _ = shop
    write_json_lines(tmp_path / "log.jsonl", clicks())
    text = (tmp_path / "log.jsonl").read_text()
    (tmp_path / "log.jsonl").write_text(f"{first}\n{text}")
    counts, _ = prepare(
        tmp_path / "SHOP", catalogue=base / "catalogue.csv",
        clicks=tmp_path / "log.jsonl", **OPTIONS,
    )  # fmt: skip
    assert counts["log"]["bad lines"] == 1
    assert contents(tmp_path / "SHOP") == contents(base / "SHOP")


def test_another_seed_is_another_division(shop, tmp_path):
    base, (_, first) = shop
    options = {"catalogue": base / "catalogue.csv", **OPTIONS}
    prepare(tmp_path / "A", clicks=base / "log.csv", seed=1, **options)
    other = prepare(tmp_path / "B", clicks=base / "log.csv", seed=1, **options)
    assert contents(tmp_path / "A") == contents(tmp_path / "B")
    texts = [
        {c.queries[query].lower() for query in c.qrels("test")}
        for c in (first, other.collection)
    ]
    # Of 150 queries a fifth is test: some are in both.
    assert 0 < len(texts[0] & texts[1]) < min(map(len, texts))
    for name, seed in ((base / "SHOP", 0), (tmp_path / "A", 1)):
        rules = json.loads((name / "data.json").read_text())["rules"]
        assert rules["seed"] == seed
    more = write_csv(tmp_path / "more.csv", clicks(200, seed=1))
    with pytest.raises(InputError, match="seed is 2, expected 1 as in the dat"):
        prepare(tmp_path / "A", clicks=more, seed=2, append=True)


def test_ids_are_text(tmp_path):
    """007 and 7 are two products; ids of a column with gaps are floats."""
    products = [
        {"id": key, "title": f"bolt {key}"}
        for key in ("007", "7", "1e5", "12:30", "2026-01-01", "NA", "655")
    ]
    log = [{"query": f"q {n % 30}", "id": products[n % 7]["id"]}
           for n in range(300)]  # fmt: skip
    write_csv(tmp_path / "c.csv", products)
    write_csv(tmp_path / "l.csv", log)
    prepared = prepare(
        tmp_path / "A", catalogue=tmp_path / "c.csv", clicks=tmp_path / "l.csv",
        dev_percent=20, test_percent=20,
    )  # fmt: skip
    assert list(prepared.collection.documents) == [p["id"] for p in products]
    assert prepared.counts["log"]["clicks"] == 300
    gaps = pd.DataFrame({"query": [f"q {n % 30}" for n in range(300)],
                         "id": [655.0, None, *[655.0] * 298]})  # fmt: skip
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    gaps.to_parquet(tmp_path / "gaps.parquet")
    for name in ("gaps.csv", "gaps.parquet"):
        counts = prepare(
            None, catalogue=tmp_path / "c.csv", clicks=tmp_path / name,
            dev_percent=20, test_percent=20,
        ).counts  # fmt: skip
        assert counts["log"]["clicks"] == 299
        assert counts["log"]["no id"] == 1


DECIMALS = [
    {"id": key, "title": f"screw {key}"} for key in ("1.0", "1.1", "1.10", "7")
]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_ids_are_equal_across_files(tmp_path, form):
    """Of the files of a catalogue and of a log, one has a column with gaps."""
    write = {"csv": write_csv, "jsonl": write_json_lines}[form]
    log = [{"query": f"q {n % 30}", "id": f"{600 + n % 4}"} for n in range(300)]
    floats = [{**row, "id": f"{row['id']}.0"} for row in log]
    write(tmp_path / f"log-1.{form}", log)
    write(tmp_path / f"log-2.{form}", [*floats, {"query": "q", "id": ""}])
    products = [{"id": f"{600 + n}", "title": f"bolt {n}"} for n in range(4)]
    write(tmp_path / f"c-1.{form}", products[:3])
    gaps = [{**row, "id": f"{row['id']}.0"} for row in products[2:]]
    write(tmp_path / f"c-2.{form}", gaps)
    options = {"dev_percent": 20, "test_percent": 20}
    files = {"catalogue": f"{tmp_path}/c-*", "clicks": f"{tmp_path}/log-*"}
    counts, shop = prepare(tmp_path / "SHOP", **files, **options)
    assert list(shop.documents) == ["600", "601", "602", "603"]
    assert (counts["log"]["clicks"], counts["log"]["unknown id"]) == (600, 0)
    assert counts["log"]["no id"] == 1
    write_csv(tmp_path / "decimals.csv", DECIMALS)
    rows = [{"query": f"q {n}", "id": DECIMALS[n % 4]["id"]} for n in range(99)]
    write(tmp_path / f"log-1.{form}", rows)
    write(tmp_path / f"log-2.{form}", [{"query": "x", "id": "7.0"}] * 2)
    files["catalogue"] = tmp_path / "decimals.csv"
    found = prepare(tmp_path / "B", **files, **options)
    assert list(found.collection.documents) == [row["id"] for row in DECIMALS]
    assert found.counts["log"]["clicks"] == 101
    more = {"clicks": pd.DataFrame(rows), "append": True}
    again = prepare(tmp_path / "B", **more).counts["log"]
    assert (again["clicks"], again["unknown id"]) == (99, 0)
    clicked = {
        (pair.query, pair.document): n
        for pair, _, n in Collection(tmp_path / "B").training_clicks()
    }
    pairs = [(row["query"], f"screw {row['id']}") for row in rows]
    expected = dict.fromkeys([*pairs, ("x", "screw 7")], 2)
    assert clicked.items() <= expected.items() and len(clicked) > 50


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_without_a_joined_row_is_named(tmp_path, form):
    rows = clicks(900)
    logs = [rows[:400], rows[400:500], rows[500:]]
    for row in logs[1]:
        row["product_id"] = f"x{row['product_id']}"
    for number, part in enumerate(logs):
        pd.DataFrame(part).to_parquet(path := tmp_path / f"{number}.{form}")
        if form != "parquet":
            {"csv": write_csv, "jsonl": write_json_lines}[form](path, part)
    lines: list[str] = []
    write_csv(tmp_path / "c", PRODUCTS)
    files = {"catalogue": tmp_path / "c", "clicks": f"{tmp_path}/[0-9].{form}"}
    counts = prepare(None, report=lines.append, **files).counts
    assert counts["log"]["unknown id"] == 100
    named = [line for line in lines if "no row is joined" in line]
    assert named == [f"  no row is joined with a product: {tmp_path}/1.{form}"]


def test_types_of_parquet(tmp_path):
    """DuckDB reads UUIDs and decimals as types of their own."""
    import duckdb

    duckdb.connect().execute(f"""
        COPY (SELECT range AS n, uuid() AS id, 'bolt ' || range AS title,
                '2026-03-01'::TIMESTAMP_NS AS time FROM range(30))
        TO '{tmp_path}/catalogue.parquet';
        COPY (SELECT 'q ' || n AS query, id, time, [1, 0.5][n % 2 + 1] AS weight
              FROM '{tmp_path}/catalogue.parquet')
        TO '{tmp_path}/log.parquet'""")
    counts, shop = prepare(
        tmp_path / "SHOP", catalogue=tmp_path / "catalogue.parquet",
        clicks=tmp_path / "log.parquet", dev_percent=20,
    )  # fmt: skip
    assert counts["log"]["clicks"] == 30
    weights = {weight for _, weight, _ in shop.training_clicks()}
    assert weights == {1, 0.5}
    assert shop.training_log(write_to=tmp_path / "clicks.tsv").weighted


def test_titles_without_a_catalogue(tmp_path):
    """Strict query TAB title lines, quoted ones, and a header."""
    lines = [('1/2" bolt', 'Hex bolt 1/2" x 3"')] * 2
    lines += [(f"query {n % 40}", f"title {n % 9}") for n in range(400)]
    plain = "".join(f"{q}\t{t}\n" for q, t in lines)
    pd.DataFrame(lines).to_csv(
        tmp_path / "quoted.tsv", sep="\t", header=False, index=False
    )
    (tmp_path / "plain.tsv").write_text(plain)
    (tmp_path / "header.tsv").write_text(f"query\ttitle\n{plain}")
    assert '"1/2"" bolt"\t' in (tmp_path / "quoted.tsv").read_text()
    folders = []
    for name in ("plain", "quoted", "header"):
        prepared = prepare(tmp_path / name, clicks=tmp_path / f"{name}.tsv",
                           dev_percent=20, test_percent=20)  # fmt: skip
        assert prepared.collection.documents["d1"] == 'Hex bolt 1/2" x 3"'
        assert len(prepared.collection.documents) == 10
        folders.append(contents(tmp_path / name))
    assert folders[0] == folders[1] == folders[2]


def test_bad_rows_are_counted_and_stop(shop, tmp_path):
    base, _ = shop
    rows = clicks()
    text = write_csv(tmp_path / "log.csv", rows).read_text()
    bad = ['x,s1,"never closed,003\r\n', "x,s1\r\n"]
    more = [
        {**rows[0], "product_id": ""},
        {**rows[1], "product_id": "999"},
        {**rows[2], "query": " \u00a0"},
        rows[-1],  # at the same second as the last
    ]
    lines = []
    report = lines.append

    def counts_of(text, **options):
        (tmp_path / "bad.csv").write_text(text)
        return prepare(
            None, report=report, catalogue=base / "catalogue.csv",
            clicks=tmp_path / "bad.csv", **{**OPTIONS, **options},
        ).counts["log"]  # fmt: skip

    write_csv(tmp_path / "more.csv", rows + more)
    found = counts_of((tmp_path / "more.csv").read_text() + "".join(bad))
    assert found == {
        "clicks": 1500, "no id": 1, "empty query": 1, "wrong weight": 0,
        "wrong time": 0, "unknown id": 1, "double click": 1, "bad lines": 2,
    }  # fmt: skip
    assert "  unknown id: 1, such as 'Bolt 49' and '999'" in [
        line.replace(rows[1]["query"], "Bolt 49") for line in lines
    ]
    with pytest.raises(InputError, match=r"found 0\.3 % bad rows, most of them"
                       " 'bad lines'.*raise --max_bad_percent"):  # fmt: skip
        counts_of(
            (tmp_path / "more.csv").read_text() + "".join(bad),
            max_bad_percent=0.1,
        )
    swallowed = text.replace("\n", '\nx,s1,"never closed,003\n', 1)
    with pytest.raises(InputError, match="bad.csv:2: found a quote that does"
                       " not close, 'x,s1,.never"):  # fmt: skip
        counts_of(swallowed)
    weights = pd.DataFrame(rows).assign(weight=["2", "x", "-1", ""] * 375)
    log = prepare(None, clicks=weights, catalogue=base / "catalogue.csv",
                  max_bad_percent=80, **OPTIONS).counts["log"]  # fmt: skip
    assert (log["clicks"], log["wrong weight"]) == (375, 1125)
    unknown = text.replace(",0", ",x0")
    with pytest.raises(InputError, match="half or more on products: name the"):
        counts_of(unknown)


@pytest.mark.parametrize("has_time", [False, True])
def test_the_order_of_the_rows_does_not_matter(tmp_path, has_time):
    """Of many rows in several files, which DuckDB reads in parallel."""
    rows = [(f"q{n * 7919 % 1000}", f"p{n % 297}") for n in range(300_000)]
    head, end = (
        ("query,id,time", ",1772359200") if has_time else ("query,id", "")
    )
    catalogue = [{"id": f"p{n}", "title": f"t{n}"} for n in range(297)]
    folders = []
    for name in ("first", "again"):
        lines = [",".join(row) + end for row in rows]
        for part in range(3):
            text = "\n".join([head, *lines[part::3], ""])
            (tmp_path / f"{part}.csv").write_text(text)
        shop = prepare(
            tmp_path / name, clicks=f"{tmp_path}/*.csv",
            catalogue=pd.DataFrame(catalogue),
        ).collection  # fmt: skip
        folders.append(contents(tmp_path / name))
        random.Random(0).shuffle(rows)
    assert folders[0] == folders[1]
    found = {tuple(pair): n for pair, _, n in shop.training_clicks()}
    queries = {query for query, _ in found}
    assert found == Counter(
        (query, f"t{key[1:]}") for query, key in rows if query in queries
    )
    assert len(found) > 250_000


def test_columns_are_named_or_listed(shop, tmp_path):
    base, _ = shop
    rows = [{"suchbegriff": r["query"], "artikel": r["product_id"]}
            for r in clicks()]  # fmt: skip
    write_csv(tmp_path / "log.csv", rows)
    options = {"catalogue": base / "catalogue.csv",
               "clicks": tmp_path / "log.csv", **OPTIONS}  # fmt: skip
    with pytest.raises(InputError, match=r"by --query=COLUMN --clicked=COLUMN"
                       r"; the columns are: 1 \('suchbegriff'\), 2"
                       r" \('artikel'\); the first line is"):  # fmt: skip
        prepare(None, **options)
    with pytest.raises(InputError, match="no column 'such', expected --query"
                       " to name one of: suchbegriff"):  # fmt: skip
        prepare(None, **options, query="such", clicked="artikel")
    named = prepare(None, **options, query="suchbegriff", clicked="artikel")
    write_csv(tmp_path / "log.csv", rows, header=False)
    numbered = prepare(None, **options, query="1", clicked="2")
    assert named == numbered and named.counts["train_clicks"] > 800


def test_split_by_time(shop, tmp_path):
    """No test click is trained on, while a query may be in both."""
    base, _ = shop
    _, collection = prepare(
        tmp_path / "SHOP", catalogue=base / "catalogue.csv",
        clicks=base / "log.csv", test_after="2026-03-01T02:00:00+00:00",
        **OPTIONS,
    )  # fmt: skip
    log = expected_clicks()
    late = log["time"] >= pd.Timestamp("2026-03-01T02:00:00Z")
    log["split"] = splits_of(list(log["text"]), 20, 0)
    train = log[~late & (log["split"] == "train")]
    pairs = zip(train["text"], train["body"], strict=True)
    assert Counter(trained(collection)) == Counter(pairs)
    tested = {collection.queries[q].lower() for q in collection.qrels("test")}
    assert tested == set(log[late]["text"].str.lower())
    seen, unseen = (
        {collection.queries[q].lower() for q in collection.qrels(split)}
        for split in ("test_seen", "test_unseen")
    )
    assert seen == tested & set(train["text"].str.lower()) and len(seen) > 50
    assert seen | unseen == tested and not seen & unseen
    with pytest.raises(InputError, match="test_after is '1.3.': expected a"):
        prepare(None, clicks=base / "log.csv", test_after="1.3.")


def test_nothing_half_written(shop, tmp_path):
    base, _ = shop
    options = {"catalogue": base / "catalogue.csv", "clicks": base / "log.csv"}
    with pytest.raises(InputError, match="is already there, expected a new"):
        prepare(base / "SHOP", **options)
    few = pd.DataFrame(clicks(3))
    with pytest.raises(InputError, match="found no query for the split dev"):
        prepare(tmp_path / "new", **{**options, "clicks": few})
    for percents in ((0, 0), (50, 50)):
        with pytest.raises(InputError, match="expected a sum of 1 to 99"):
            prepare(None, **options, dev_percent=percents[0],
                    test_percent=percents[1])  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def read(folder, rows, products=PRODUCTS, **options):
    """Reports what is found in some rows; returns counts and lines."""
    lines: list[str] = []
    files = {"clicks": write_csv(folder / "log.csv", rows)}
    if products:
        files["catalogue"] = write_csv(folder / "catalogue.csv", products)
    counts = prepare(None, report=lines.append, **files, **options).counts
    return counts, lines


def test_a_column_of_positions_is_said_not_to_be_read(tmp_path):
    rows = [{**row, "Click Position": "3"} for row in clicks(300)]
    _, lines = read(tmp_path, rows)
    assert sum("  Click Position: not read" in line for line in lines) == 1
    _, lines = read(tmp_path, rows, weight="Click Position")
    assert not any("not read" in line for line in lines)


def test_only_a_session_makes_a_double_click(tmp_path):
    """Two customers may click on one product in one second."""
    rows = [{**row, "time": "2026-03-01T10:00:00Z"} for row in clicks(300)]
    first = {
        (r["session"], r["query"].split()[1], r["product_id"]) for r in rows
    }
    counts, lines = read(tmp_path, rows)
    assert not any("no session" in line for line in lines)
    without = [{k: v for k, v in r.items() if k != "session"} for r in rows]
    kept, lines = read(tmp_path, without)
    assert kept["log"]["clicks"] == 300
    assert any("no session" in line and "--session" in line for line in lines)
    # "bolt  7" and "Bolt 7" are two spellings, of which each is looked at.
    assert len(first) <= counts["log"]["clicks"] < 300
    for row in rows[100:]:
        row["session"] = ""
    some, _ = read(tmp_path, rows)
    assert counts["log"]["clicks"] < some["log"]["clicks"] < 300


def test_times_that_cannot_be_read_are_bad_rows(tmp_path):
    rows = clicks(1000)
    for row in rows[::40]:
        row["time"] = "20.10.2026 08:01:04"
    rows[1]["time"] = ""
    counts, _ = read(tmp_path, rows)
    assert counts["log"]["wrong time"] == 25
    # A click without a time may be of any split by time.
    counts, _ = read(tmp_path, rows, test_after="2026-03-01T01:30:00")
    assert counts["log"]["wrong time"] == 26
    for row in rows[::4]:
        row["time"] = "20.10.2026 08:01:04"
    message = "'wrong time' such as '20.10.2026 08:01:04', .*by --time_format"
    with pytest.raises(InputError, match=message):
        read(tmp_path, rows)
    for row in rows:
        row["time"] = f"20.10.2026 08:01:{rows.index(row) % 60:02}"
    counts, _ = read(tmp_path, rows, time_format="%d.%m.%Y %H:%M:%S",
                     test_after="2026-10-20T08:01:30")  # fmt: skip
    assert counts["log"]["wrong time"] == 0 and counts["test_queries"] > 50
    for wrong, message in (
        ("%Q", "time_format is '%Q': expected a format such as %d/%m/%Y"),
        ("%d/%m/%Y", "'wrong time'.*correct --time_format=%d/%m/%Y"),
    ):
        with pytest.raises(InputError, match=message):
            read(tmp_path, rows, time_format=wrong)


def test_products_without_a_title_are_counted(tmp_path):
    products = [
        {**product, "title": "" if number < 3 else product["title"]}
        for number, product in enumerate(PRODUCTS)
    ]
    counts, lines = read(tmp_path, clicks(), products, text=("brand",))
    assert counts["catalogue"]["no title"] == 3
    assert any("117 products of 120 rows; no title: 3" in x for x in lines)


def test_ids_without_a_catalogue_are_no_titles(tmp_path):
    with pytest.raises(InputError, match="found ids of products in the column"):
        read(tmp_path, clicks(), None)
    counts, _ = read(tmp_path, clicks(), None, clicked="product_id")
    assert counts["catalogue"]["products"] == 120


def test_lost_zeros_of_ids_are_named(tmp_path):
    products = [{**p, "id": f"0{p['id']}"} for p in PRODUCTS]
    message = "'[0-9]+' in the log and '0[0-9]+' in the catalogue differ only"
    with pytest.raises(InputError, match=message):
        read(tmp_path, clicks(), products)

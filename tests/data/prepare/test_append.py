"""New logs are added to a data folder, and queries keep their splits."""

import json
from collections import Counter

import pytest

from keras_lstm_dssm.data import Collection, open_log
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.data.sources import training_queries
from keras_lstm_dssm.errors import InputError
from tests.data.prepare.shop import (
    PRODUCTS,
    clicks,
    contents,
    trained,
    write_csv,
)

OPTIONS = {"text": ("brand",), "tags": ("stock",), "dev_percent": 20,
           "test_percent": 20}  # fmt: skip


def test_three_nights_equal_one_log(tmp_path):
    """New products come in unclicked; the new clicks have a file."""
    rows = clicks()
    nights = [rows[:700], rows[700:1100], rows[1100:]]
    write_csv(tmp_path / "all.csv", rows)
    write_csv(tmp_path / "first.csv", PRODUCTS[:110])
    write_csv(tmp_path / "last.csv", PRODUCTS)
    files = [
        write_csv(tmp_path / f"night{n}.csv", night)
        for n, night in enumerate(nights)
    ]
    shop = tmp_path / "SHOP"
    first = tmp_path / "first.csv"
    prepare(shop, catalogue=first, clicks=files[0], **OPTIONS)
    before = Collection(shop)
    judged = {
        split: {before.queries[q].lower() for q in before.qrels(split)}
        for split in before.splits
    }
    prepare(shop, clicks=files[1], catalogue=first, append=True)
    earlier = Counter(trained(Collection(shop)))
    assert list(Collection(shop).documents) == list(before.documents)
    lines: list[str] = []
    found = prepare(
        shop, clicks=files[2], catalogue=tmp_path / "last.csv", append=True,
        report=lines.append,
    )  # fmt: skip
    changes = f" -> {found.counts['train_clicks']:,}, dev queries"
    (line,) = [line for line in lines if line.startswith("changes:")]
    assert line.startswith("changes: 10 new products, 0 removed; train clicks ")
    assert changes in line
    whole = prepare(
        tmp_path / "ALL", catalogue=tmp_path / "last.csv",
        clicks=tmp_path / "all.csv", **OPTIONS,
    )  # fmt: skip
    expected = contents(tmp_path / "ALL")
    for name, data in expected.items():
        assert contents(shop)[name] == data
    known = set(before.documents.values())  # others had no product before
    new, every = (
        Counter(
            (query, title)
            for query, title in open_log(
                str(shop / name), write_to=tmp_path / "x"
            )
            if title in known
        )
        for name in ("clicks.new.tsv", "clicks.tsv")
    )
    assert earlier + new == every and 200 < new.total() < 400
    night = {"data": str(shop / "clicks.new.tsv"), "replay": f"{shop}:0.2"}
    asked = training_queries({"data": str(shop)})
    assert training_queries(night) == asked
    assert len(training_queries({**night, "replay": None})) < len(asked)
    assert found.counts["train_clicks"] == whole.counts["train_clicks"]
    after = Collection(shop)
    for split, texts in judged.items():
        assert texts <= {after.queries[q].lower() for q in after.qrels(split)}
    data = json.loads((shop / "data.json").read_text())
    assert data["logs"] == 3 and len(data["sources"]) == 6


def test_a_log_is_added_to_a_catalogue(tmp_path):
    """Until then, and with judgements alone, there is nothing to train on."""
    catalogue = write_csv(tmp_path / "catalogue.csv", PRODUCTS)
    log = write_csv(tmp_path / "log.csv", clicks())
    shop, lines = tmp_path / "SHOP", []
    prepare(shop, catalogue=catalogue, report=lines.append, **OPTIONS)
    assert "no log: --append --clicks=LOG adds the first" in lines
    found = Collection(shop)
    assert len(found.documents) == 120 and found.splits == ()
    assert found.describe() == "120 titles, 0 queries\ntrain: 0 clicks"
    with pytest.raises(InputError, match="without a log, expected queries of t"
                       "est: add a log by lstm-dssm-prepare"):  # fmt: skip
        found.qrels(found.last_split)
    with pytest.raises(InputError, match="found no training click.*add a log"):
        found.training_log(write_to=tmp_path / "x")
    judged = [{"query": "bolt", "id": "004", "grade": "2"}]
    _, judged_shop = prepare(
        tmp_path / "JUDGED", catalogue=catalogue, **OPTIONS,
        judgements=write_csv(tmp_path / "judged.csv", judged),
    )  # fmt: skip
    assert judged_shop.qrels("test") == {"q1": {"004": 2}}
    assert judged_shop.queries == {"q1": "bolt"}
    prepare(shop, clicks=log, append=True)
    prepare(tmp_path / "ALL", catalogue=catalogue, clicks=log, **OPTIONS)
    expected = contents(tmp_path / "ALL")
    new = {"clicks.new.tsv": expected["clicks.tsv"]}
    assert contents(shop) == {**expected, **new}


def test_titles_keep_their_ids(tmp_path):
    for name, first in (("a", 0), ("b", 30)):
        lines = [f"query {n}\ttitle {n}\n" for n in range(first, first + 60)]
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    options = {"dev_percent": 20, "test_percent": 20}
    shop = tmp_path / "SHOP"
    prepare(shop, clicks=tmp_path / "a.tsv", **options)
    prepare(shop, clicks=tmp_path / "b.tsv", append=True)
    assert Collection(shop).documents == {
        f"d{n + 1}": f"title {n}" for n in range(90)
    }


def test_what_cannot_be_added(tmp_path):
    write_csv(tmp_path / "log.csv", clicks())
    write_csv(tmp_path / "catalogue.csv", PRODUCTS)
    shop, log = tmp_path / "SHOP", tmp_path / "log.csv"
    with pytest.raises(InputError, match="SHOP.*data.json"):
        prepare(shop, clicks=log, append=True)
    prepare(shop, clicks=log, catalogue=tmp_path / "catalogue.csv")
    before = contents(shop)
    with pytest.raises(InputError, match="log.csv: found a file that the data"):
        prepare(shop, clicks=log, append=True)
    (tmp_path / "bad.csv").write_text("query,product_id\n" + "x,\n" * 900)
    with pytest.raises(InputError, match="% bad rows, most of them 'no id'"):
        prepare(shop, clicks=tmp_path / "bad.csv", append=True)
    assert contents(shop) == before
    other = [{"suche": "bolt 5", "product_id": "005"}] * 9
    write_csv(tmp_path / "other.csv", other)
    with pytest.raises(InputError, match="test_percent is 20, expected 10 as"):
        prepare(shop, clicks=tmp_path / "other.csv", test_percent=20,
                query="suche", append=True)  # fmt: skip
    found = prepare(shop, clicks=tmp_path / "other.csv", query="suche",
                    test_percent=10, append=True)  # fmt: skip
    assert found.counts["log"]["clicks"] == 9
    data = json.loads((shop / "data.json").read_text())
    (shop / "data.json").write_text(json.dumps({**data, "version": "0.1.0"}))
    with pytest.raises(InputError, match="data.json.*make it again"):
        prepare(shop, clicks=tmp_path / "bad.csv", append=True)

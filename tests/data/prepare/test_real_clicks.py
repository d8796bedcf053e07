"""The clicks of a real shop are the same in every form."""

import random

import duckdb
import pandas as pd
import pytest

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.data.prepare import prepare
from tests.conftest import SHARED_DATA
from tests.data.prepare import test_ubi
from tests.data.prepare.shop import contents, write_csv


def pandas(path, rows):
    pd.DataFrame(rows).to_parquet(path)
    return path


def polars(path, rows):
    pytest.importorskip("polars").DataFrame(rows).write_parquet(path)
    return path


def relation(path, rows):
    frame = pd.DataFrame(rows)
    duckdb.from_df(frame).write_parquet(str(path))
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Products and searches of bestbuy; the folder of its clicks as CSV."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data sets are not on this machine")
    collection = Collection(SHARED_DATA / "bestbuy")
    products = [
        {"id": key, "title": title}
        for key, title in collection.documents.items()
    ]
    id_of = {product["title"]: product["id"] for product in products}
    ids, rng, searches = [*id_of.values()], random.Random(0), []
    pairs = [*collection.training_log()][::4]
    for number, (query, title) in enumerate(pairs):
        shown = [key for key in rng.sample(ids, 5)
                 if key != id_of[title]][:4]  # fmt: skip
        place = min(int(rng.expovariate(0.7)), 4)
        searches.append(
            {
                "id": f"q{number}",
                "query": query,
                "client": f"c{number}",
                "time": 1_700_000_000 + number,
                "shown": [*shown[:place], id_of[title], *shown[place:]],
                "clicked": [place],
            }
        )
    clicks = [
        {"query": s["query"], "product_id": s["shown"][s["clicked"][0]]}
        for s in searches
    ]
    base = tmp_path_factory.mktemp("bestbuy")
    prepare(base / "SHOP", catalogue=write_csv(base / "c.csv", products),
            clicks=write_csv(base / "l.csv", clicks))  # fmt: skip
    return products, searches, clicks, base


@pytest.mark.parametrize("write", [pandas, polars, relation])
def test_parquet_equals_csv(rows, tmp_path, write):
    products, _, clicks, base = rows
    prepare(tmp_path / "SHOP", catalogue=write(tmp_path / "c", products),
            clicks=write(tmp_path / "l", clicks))  # fmt: skip
    assert contents(tmp_path / "SHOP") == contents(base / "SHOP")


def test_ubi_of_each_writer_equals_csv(rows, tmp_path, monkeypatch):
    """But for the grades, which are equal among logs with shown ids."""
    products, searches, clicks, base = rows
    monkeypatch.setattr(test_ubi, "searches", lambda: searches)
    found = {}
    for write in test_ubi.WRITERS:
        (tmp_path / write.__name__).mkdir()
        write(tmp_path / write.__name__)
        prepare(tmp_path / "SHOP" / write.__name__, catalogue=base / "c.csv",
                ubi=tmp_path / write.__name__)  # fmt: skip
        found[write.__name__] = contents(tmp_path / "SHOP" / write.__name__)
    first = found.pop("opensearch")
    assert [name for name, folder in found.items() if folder != first] == []
    expected = contents(base / "SHOP")
    for name in ("corpus.jsonl", "clicks.tsv", "queries.jsonl"):
        assert first[name] == expected[name]
    ubi, plain = (
        Collection(tmp_path / "SHOP/opensearch"),
        Collection(base / "SHOP"),
    )
    assert len(plain.documents) == 437 and len(plain.queries) > 150
    for split in ("dev", "test"):
        assert ubi.qrels(split).keys() == plain.qrels(split).keys()
        assert ubi.qrels(split) != plain.qrels(split)

"""Catalogues as shop software writes them: one product a row in the end."""

import json

import pytest

from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.errors import InputError

SHOPIFY = """\
Handle,Title,Body (HTML),Vendor,Type,Tags,Option1 Value,Image Position
hex-bolt,"Hex Bolt 1/2"" &amp; nut","<p>Steel</p>
<ul><li>zinc</li></ul>",Acme,Bolts,"zinc, m8",M8,1
hex-bolt,,,,,,M10,
hex-bolt,,,,,,,2
glue,Wood glue,,Acme,Glue,,,1
"""

WOOCOMMERCE = """\
\ufeffID,Type,SKU,Name,Published,Description,Categories,Parent
hex-bolt,variable,,"Hex Bolt 1/2"" &amp;amp; nut",1,"Steel\\nzinc",Acme > Bolts,
glue,simple,'-7,Wood glue,1,,"Glue, Acme",
"""

MERCHANT = """\
id\ttitle\tdescription\tbrand\tproduct type\titem_group_id
1\t"Hex Bolt 1/2"" & nut"\tSteel\tAcme\tBolts\thex-bolt
2\tHex Bolt M10\tSteel\tAcme\tBolts\thex-bolt
3\tWood glue\t\tAcme\tGlue\tglue
"""

ADOBE = """\
sku,store_view_code,attribute_set_code,categories,name,price,price,
hex-bolt,,Default,Acme/Bolts,"Hex Bolt 1/2"" &#38; nut",1.0,,
hex-bolt,de,,,Sechskantschraube,,,
glue,,Default,Acme/Glue,'=Wood glue,2.0,,
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "clicks.csv"
    rows = [f"query {n},{('hex-bolt', 'glue')[n % 2]}\n" for n in range(60)]
    path.write_text("query,id\n" + "".join(rows))
    return path


def products(tmp_path, log, content, name="catalogue.csv", **options):
    """Id -> what encoders read, and id -> tags."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    shop = prepare(tmp_path / "SHOP", catalogue=tmp_path / name, clicks=log,
                   dev_percent=20, **options).collection  # fmt: skip
    assert list(shop.documents) == ["hex-bolt", "glue"]
    return list(shop.documents.values()), list(shop.tags.values())


@pytest.mark.parametrize(("text", "options", "bodies", "tags"), [
    (SHOPIFY, {"text": ("Vendor", "body_html"), "tags": ("Type",)},
     ['Hex Bolt 1/2" & nut Acme Steel zinc', "Wood glue Acme"],
     [["Type:Bolts"], ["Type:Glue"]]),
    (WOOCOMMERCE, {"text": ("Categories",), "tags": ("Categories",)},
     ['Hex Bolt 1/2" & nut Acme > Bolts', "Wood glue Glue, Acme"],
     [["Categories:Acme > Bolts"], ["Categories:Glue Acme"]]),
    (MERCHANT, {"id": "item_group_id", "tags": ("product type", "brand")},
     ['Hex Bolt 1/2" & nut', "Wood glue"],
     [["product type:Bolts", "brand:Acme"],
      ["product type:Glue", "brand:Acme"]]),
    (ADOBE, {"tags": ("categories",)},
     ['Hex Bolt 1/2" & nut', "=Wood glue"],
     [["categories:Acme/Bolts"], ["categories:Acme/Glue"]]),
])  # fmt: skip
def test_exports_of_shop_software(tmp_path, log, text, options, bodies, tags):
    assert products(tmp_path, log, text, **options) == (bodies, tags)


ROWS = [
    {"id": "hex-bolt", "title": "Hex bolt", "tags": ["new", "zinc, m8"],
     "brand": {"name": "Acme"}},
    {"id": "glue", "title": "Wood&nbsp;glue", "tags": None, "brand": None},
]  # fmt: skip


def algolia(rows):
    return json.dumps([
        {"objectID": r["id"], "name": r["title"], "tags": r["tags"],
         "brand": r["brand"]} for r in rows
    ])  # fmt: skip


def vespa(rows):
    return "".join(
        json.dumps(
            {
                "put": f"id:shop:product::{row['id']}",
                "fields": {k: v for k, v in row.items() if k != "id"},
            }
        )
        + "\n"
        for row in rows
    )


def elasticsearch(rows):
    return "".join(
        json.dumps({"index": {"_id": row["id"]}})
        + "\n"
        + json.dumps(row)
        + "\n"
        for row in rows
    )


@pytest.mark.parametrize("write", [algolia, vespa, elasticsearch, json.dumps])
def test_exports_of_indexes(tmp_path, log, write):
    content = write(ROWS)
    found = products(
        tmp_path, log, content, "c.json", text=("brand.name",), tags=("tags",)
    )
    assert found == (
        ["Hex bolt Acme", "Wood glue"],
        [["tags:new", "tags:zinc m8"], []],
    )


def test_wrong_catalogues(tmp_path, log):
    path = tmp_path / "c.csv"
    for text, options, message in (
        ("id,title\na b,x\n", {}, "found the id 'a b' with white space, exp"),
        ("id,title\na,\n", {}, "found no row with an id and a title"),
        ("id,name\n" + 'a,x\n"a" b,x\n' * 9, {},
         r"found 9 unreadable lines among 18, such as '\"a\" b,x'"),
        ("id,name\na,b\n", {"text": ("brand",)}, "no column 'brand', expec"),
        ("id,name,t\n" + "".join(f"a,x,{n}\n" for n in range(40)),
         {"tags": ("t",)}, "found 40 tags of one product, expected 32 or"),
        ("x,y\na,b\n", {}, r"by --id=COLUMN --title=COLUMN; the columns are: 1 "
         r"\('x'\), 2 \('y'\)"),
        ("\0\1\2" * 9 + "x" * 99, {}, "found a NUL, as in binary files"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            prepare(None, catalogue=path, clicks=log, **options)

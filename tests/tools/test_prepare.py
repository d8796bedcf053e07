"""lstm-dssm-prepare: what it prints, and programs that read its folder."""

import json

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.analysis.tower_report import read_report_texts
from keras_lstm_dssm.data.sources import DataSource, training_queries
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import read_documents
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools import export, prepare
from keras_lstm_dssm.training.mining import HardNegatives
from keras_lstm_dssm.training.tower_training import TowerTraining
from tests.data.prepare.shop import PRODUCTS, clicks, write_csv
from tests.tools.conftest import results_of


def write_shop(folder):
    write_csv(folder / "catalogue.csv", PRODUCTS)
    rows = clicks()
    rows[4]["product_id"] = ""
    write_csv(folder / "log.csv", rows)
    return {
        "catalogue": folder / "catalogue.csv",
        "clicks": folder / "log.csv",
        "tags": "stock",
        "text": "brand",
    }


def test_what_is_printed(tmp_path, capsys, refused):
    flags = write_shop(tmp_path)
    found = results_of(prepare, tmp_path / "out.json", **flags, dry_run=True)
    printed = capsys.readouterr().out.splitlines()
    counts = {key: found[f"{key}_queries"] for key in ("dev", "test")}
    titles = [p["title"] for p in PRODUCTS]
    row = clicks(1)[0]
    text, key = " ".join(row["query"].split()), row["product_id"]
    assert printed[:6] == [
        f"{tmp_path}/catalogue.csv: id = id, title = title",
        "  text: brand",
        "  tags: stock",
        "120 products of 120 rows",
        f"{tmp_path}/log.csv: query = query, clicked = product_id, time = time,"
        " session = session",
        f"  {text} -> {key}: {titles[int(key)]}",
    ]
    empty = clicks(5)[4]["query"]
    assert printed[10:] == [
        "clicks: 1,499 of 1,500 rows",
        f"  no id: 1, such as {empty!r} and ''",
        f"train: {found['train_clicks']:,} clicks; dev: {counts['dev']}"
        f" queries; test: {counts['test']} queries",
    ]
    code = prepare.program.run(["prepare", f"--clicks={flags['clicks']}"])
    refused(code, "--output is missing: expected a folder to write")
    arguments = ["--append", "--dry_run", f"--clicks={flags['clicks']}"]
    code = prepare.program.run(["prepare", *arguments])
    refused(code, "--append is not used with --dry_run")


def test_what_programs_read(tmp_path):
    """All products are in titles, searches and exports, clicked or not."""
    flags = write_shop(tmp_path)
    results_of(
        prepare, tmp_path / "out.json", **flags, output=tmp_path / "SHOP"
    )
    shop = dssm.load_data(tmp_path / "SHOP")
    data = json.loads((tmp_path / "SHOP/data.json").read_text())
    assert data["counts"] == json.loads((tmp_path / "out.json").read_text())
    assert [source["path"] for source in data["sources"]] == [
        str(flags["catalogue"]), str(flags["clicks"]),
    ]  # fmt: skip
    assert data["columns"][str(flags["clicks"])]["clicked"] == "product_id"
    documents = read_documents(tmp_path / "SHOP")
    assert documents.ids == [p["id"] for p in PRODUCTS]
    assert documents.titles == list(shop.documents.values())
    assert documents.tags[3] == ("stock:false",)
    assert documents.shown == [shop.titles[key] for key in documents.ids]
    assert documents.shown[0] == PRODUCTS[0]["title"]
    source = DataSource(tmp_path / "SHOP")
    log = source.log(write_to=tmp_path / "clicks.tsv")
    assert source.titles(log) == documents.titles
    trained = [query for query, _ in log]
    assert sorted(training_queries({"data": source.spec})) == sorted(trained)
    contexts = read_report_texts(source.spec).contexts
    assert {*contexts} == {f"{query} {title}" for query, title in log}
    assert f"train: {log.count():,} clicks" in shop.describe()
    assert export.program.flags["data"].help.startswith("Instead of --docum")
    other = tmp_path / "other.tsv"
    query = shop.queries[next(iter(shop.qrels("dev")))]
    other.write_text(f"x\tHex bolt\n{query.upper()}!\tHex bolt\n")
    with pytest.raises(InputError, match=r"SHOP: 1 of \d+ dev queries, "
                       f"such as {query!r}, are also in the train"
    ):  # fmt: skip
        dssm.train(str(other), "lstm_32", dev=tmp_path / "SHOP", verbose=0)
    recipe = dssm.Recipe(hard_negatives=1)
    config = TrainingConfig(str(tmp_path / "SHOP"), recipe)
    training = TowerTraining(config, RunFolder(tmp_path / "RUN"))
    training.prepare(dssm.build_model(recipe))
    assert isinstance(training.negatives, HardNegatives)
    assert list(training.negatives.titles) == documents.titles

"""Judgements become the test split, and none of their queries is trained on."""

import json

import pandas as pd
import pytest

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.errors import InputError
from tests.data.prepare.shop import (
    PRODUCTS,
    clicks,
    trained,
    write_csv,
    write_json_lines,
)

JUDGED = {"Bolt 1!": {"001": 4, "002": 0}, "BOLT 7": {"007": 2},
          "a new query": {"003": 1, "004": 3}}  # fmt: skip
ROWS = [
    {"query": query, "docid": key, "rating": grade}
    for query, grades in JUDGED.items()
    for key, grade in grades.items()
]


def quepid(path):
    rows = [{**r, "rating": f"{r['rating']}"} for r in ROWS]
    write_csv(path, [*rows, {"query": "unrated", "docid": "003", "rating": ""}])


def workbench(path):
    ratings = [
        {
            "query": query,
            "ratings": [
                {"docId": key, "rating": f"{25 * grade:.3f}"}
                for key, grade in grades.items()
            ],
        }
        for query, grades in JUDGED.items()
    ]
    path.write_text(json.dumps({"judgmentRatings": ratings}))


def fractions(path):
    rows = [{**r, "rating": r["rating"] / 4} for r in ROWS]
    pd.DataFrame(rows).to_parquet(path)


def floats(path):
    pd.DataFrame(ROWS).astype({"rating": float}).to_csv(path, index=False)


def numbered():
    """Number of each query, and text."""
    return {str(300 + row): query for row, query in enumerate(JUDGED)}


def qrels(path, form, end="\n"):
    lines = [
        form.format(number, key, grade) + end
        for number, query in numbered().items()
        for key, grade in JUDGED[query].items()
    ]
    path.write_text("".join(lines))


def trec(path):
    """As TREC has it: several spaces, and topics as SGML."""
    path.mkdir()
    qrels(path / "qrels.txt", "{} 0  {} {}")
    topics = (
        f"<top>\n<num> Number: {number}\n<title> {query}\n\n<desc> Description:"
        f"\nFind {query}.\n</top>\n\n"
        for number, query in numbered().items()
    )
    (path / "topics.txt").write_text("".join(topics))


def trec_tabs(path):
    path.mkdir()
    qrels(path / "qrels.txt", "{}\tQ0\t{}\t{}")
    lines = [f"{number}\t{query}\n" for number, query in numbered().items()]
    (path / "topics.tsv").write_text("".join(lines))


def beir(path):
    """With a corpus, whose ids are ids of queries, too."""
    (path / "qrels").mkdir(parents=True)
    qrels(path / "qrels/test.tsv", "{}\t{}\t{}")
    text = (path / "qrels/test.tsv").read_text()
    (path / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{text}")
    queries = [
        {"_id": n, "text": q, "metadata": {}} for n, q in numbered().items()
    ]
    write_json_lines(path / "queries.jsonl", queries)
    corpus = [{"_id": "300", "title": "no query", "text": "of any"}]
    write_json_lines(path / "corpus.jsonl", corpus)


def mteb(path):
    """Parquet of Hugging Face; with scores as floats."""
    for folder in ("corpus", "queries", "qrels"):
        (path / folder).mkdir(parents=True)
    numbers = {query: number for number, query in numbered().items()}
    pd.DataFrame(
        [{"query-id": numbers[r["query"]], "corpus-id": r["docid"],
          "score": float(r["rating"])} for r in ROWS]
    ).to_parquet(path / "qrels/test-00000-of-00001.parquet")  # fmt: skip
    queries = [{"id": n, "text": q} for n, q in numbered().items()]
    pd.DataFrame(queries).to_parquet(path / "queries/test.parquet")
    corpus = [{"id": "300", "title": "no query", "text": "of any"}]
    pd.DataFrame(corpus).to_parquet(path / "corpus/test.parquet")


@pytest.mark.parametrize("write", [
    quepid, workbench, fractions, floats, trec, trec_tabs, beir, mteb,
])  # fmt: skip
def test_judgements_are_the_test_split(tmp_path, write):
    write_csv(tmp_path / "catalogue.csv", PRODUCTS)
    write_csv(tmp_path / "log.csv", clicks())
    write(tmp_path / "judgements")
    shop = prepare(
        tmp_path / "SHOP", catalogue=tmp_path / "catalogue.csv",
        clicks=tmp_path / "log.csv", judgements=tmp_path / "judgements",
    ).collection  # fmt: skip

    def judged(collection):
        return {
            collection.queries[query].lower(): grades
            for query, grades in collection.qrels("test").items()
        }

    expected = {query.lower(): grades for query, grades in JUDGED.items()}
    assert judged(shop) == expected and shop.splits == ("dev", "test")
    queries = {query.lower() for query, _ in trained(shop)}
    assert "bolt 2" in queries and not queries & {"bolt 1", "bolt 7"}
    write_csv(tmp_path / "more.csv", clicks(200, seed=1))
    prepare(tmp_path / "SHOP", clicks=tmp_path / "more.csv", append=True)
    assert judged(Collection(tmp_path / "SHOP")) == expected


def test_labels_and_what_is_no_grade(tmp_path):
    write_csv(tmp_path / "log.csv", clicks())
    write_csv(tmp_path / "catalogue.csv", PRODUCTS)
    options = {"clicks": tmp_path / "log.csv",
               "catalogue": tmp_path / "catalogue.csv"}  # fmt: skip
    labels = pd.DataFrame(
        {"query": ["x"] * 4, "product_id": ["001", "002", "003", "004"],
         "esci_label": list("ESCI")}
    )  # fmt: skip
    shop = prepare(tmp_path / "S", judgements=labels, **options).collection
    assert list(shop.qrels("test").values()) == [
        {"001": 4, "002": 2, "003": 1, "004": 0}
    ]
    labels["esci_label"] = list("ESCX")
    with pytest.raises(InputError, match="found the grade 'X', expected numb"):
        prepare(None, judgements=labels, **options)
    with pytest.raises(InputError, match="and --test_after, exp.*: leave one"):
        prepare(None, judgements=labels.head(3), **options, time="time",
                test_after="2026-01-01")  # fmt: skip


def test_ids_of_queries_need_texts(tmp_path):
    write_csv(tmp_path / "log.csv", clicks())
    qrels(tmp_path / "qrels.txt", "{} 0 {} {}")
    with pytest.raises(InputError, match="found ids of queries without texts"):
        prepare(None, clicks=tmp_path / "log.csv", clicked="product_id",
                judgements=tmp_path / "qrels.txt")  # fmt: skip

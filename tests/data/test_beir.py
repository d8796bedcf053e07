import gzip
import pathlib

import pytest

from keras_lstm_dssm.data import Collection, Pair, write_collection
from keras_lstm_dssm.errors import InputError
from tests.limits import largest_file


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Angle", "text": "long"}\n'
        '{"_id": "d2", "title": "", "text": "No title"}\n'
    )
    (tmp_path / "queries.jsonl.gz").write_bytes(
        gzip.compress(
            b'{"_id": "q1", "text": "bracket"}\n{"_id": "q2", "text": "l"}\n'
        )
    )
    for split, rows in (("train", "q2\td1\t3\nq2\td2\t0\nq1\td1\t1\n"),):
        (tmp_path / "qrels" / f"{split}.tsv").write_text(
            f"query-id\tcorpus-id\tscore\n{rows}"
        )
    return tmp_path


def test_reads_a_folder(folder):
    collection = Collection(folder)
    assert collection.splits == ("train",)
    assert collection.documents == {"d1": "Angle", "d2": "No title"}
    assert collection.queries == {"q1": "bracket", "q2": "l"}
    qrels = collection.qrels("train")
    assert qrels == {"q2": {"d1": 3, "d2": 0}, "q1": {"d1": 1}}
    assert list(qrels) == ["q2", "q1"]


def test_ids_may_be_numbers_and_titles_null(folder):
    with open(folder / "corpus.jsonl", "a") as file:
        file.write('{"_id": 3, "title": null, "text": "Text"}\n')
    assert Collection(folder).documents["3"] == "Text"


def test_a_repeated_line_of_qrels_changes_nothing(folder):
    before = Collection(folder).qrels("train")
    with open(folder / "qrels" / "train.tsv", "a") as file:
        file.write("q1\td1\t1\n")
    assert Collection(folder).qrels("train") == before


def test_training_log_from_qrels(folder, tmp_path):
    target = tmp_path / "clicks.tsv"
    log = Collection(folder).training_log(write_to=target)
    assert list(log) == [("l", "Angle"), ("bracket", "Angle")]
    log = Collection(folder).training_log(min_relevant=2, write_to=target)
    assert list(log) == [("l", "Angle")]
    with pytest.raises(InputError, match="write_to"):
        Collection(folder).training_log()


def test_no_title_of_such_a_score(folder, tmp_path):
    target = tmp_path / "clicks.tsv"
    with pytest.raises(InputError, match="found no score of 9 or more"):
        Collection(folder).training_log(min_relevant=9, write_to=target)
    assert not target.exists()


def test_training_log_from_clicks(folder):
    (folder / "clicks.train.tsv").write_text("a\tb\n")
    collection = Collection(folder)
    assert list(collection.training_log()) == [("a", "b")]
    # Where the split has qrels, these are counted; they have the queries.
    assert collection.describe().splitlines() == [
        "2 titles, 2 queries",
        "train: 2 queries, 3 pairs",
    ]
    (folder / "qrels" / "train.tsv").rename(folder / "qrels" / "dev.tsv")
    assert Collection(folder).describe().splitlines() == [
        "2 titles, 2 queries",
        "train: 1 clicks",
        "dev: 2 queries, 3 pairs",
    ]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("corpus.jsonl", '{"_id": "d3"', r"corpus.jsonl:3: found '{"),
        ("corpus.jsonl", '{"title": "x"}', "corpus.jsonl:3: found"),
        ("corpus.jsonl", "[]", "corpus.jsonl:3: found"),
        ("corpus.jsonl", '{"_id": "d1", "title": "x"}', "3: found _id 'd1' ag"),
        ("corpus.jsonl", '{"_id": "d 3", "title": "x"}', "without white space"),
        ("corpus.jsonl", '{"_id": null, "title": "x"}', "3: found _id None"),
        ("corpus.jsonl", '{"_id": "d3", "title": 7}', "3: found title 7, exp"),
        ("corpus.jsonl", '{"_id": "d3", "title": null}', "an empty title and"),
        ("corpus.jsonl", '{"_id": "d3", "title": " "}', "an empty title and t"),
        ("queries.jsonl.gz", '{"_id": "q1", "text": "x"}', "3: found _id 'q1'"),
        (
            "queries.jsonl.gz",
            '{"_id": "q3", "text": ""}',
            "found an empty text",
        ),
        (
            "queries.jsonl.gz",
            '{"_id": "q3", "text": ["x"]}',
            "text \\['x'\\], ex",
        ),
        ("qrels/train.tsv", "q1\td1\t2", "5: found score 2 .*expected 1 as"),
        ("qrels/train.tsv", "q1\td2\t\u00b2", "5: found .*whole number"),
        ("qrels/train.tsv", "q1\td2\t--1", "5: found .*whole number"),
        ("qrels/train.tsv", "q1\td1", "train.tsv:5: found 'q1.*TAB"),
        ("qrels/train.tsv", "q1\td1\tx", "train.tsv:5: found"),
        ("qrels/train.tsv", "q9\td1\t1", "train.tsv:5: found query 'q9'"),
        ("qrels/train.tsv", "q1\td9\t1", "train.tsv:5: found document 'd9'"),
    ],
)
def test_a_wrong_line_is_named(folder, name, line, message):
    opened = gzip.open if name.endswith(".gz") else open
    with opened(folder / name, "at", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        Collection(folder).qrels("train")
    assert str(caught.value).startswith(f"{folder / name}:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("corpus.jsonl", "corpus.jsonl: no such file"),
        ("queries.jsonl.gz", "queries.jsonl: no such file"),
        ("qrels/train.tsv", "qrels: found no split"),
    ],
)
def test_a_missing_file(folder, name, message):
    (folder / name).unlink()
    with pytest.raises(InputError, match=message):
        Collection(folder)


def test_a_missing_split(folder):
    with pytest.raises(InputError, match="test.tsv: no such split.*train"):
        Collection(folder).qrels("test")


@pytest.mark.parametrize("data", [b"not gzip", b"\x1f\x8b\x08\x00"])
def test_damaged_gzip(folder, data):
    (folder / "queries.jsonl.gz").write_bytes(data)
    with pytest.raises(InputError, match="queries.jsonl.gz:1: found a damaged"):
        _ = Collection(folder).queries


def test_text_that_is_not_utf8(folder):
    (folder / "corpus.jsonl").write_bytes(b'{"_id": "\xff"}\n')
    with pytest.raises(InputError, match="corpus.jsonl:1: found invalid UTF-8"):
        _ = Collection(folder).documents


def test_blank_lines_at_the_end(folder):
    with (folder / "corpus.jsonl").open("a") as file:
        file.write("\n \n")
    assert list(Collection(folder).documents) == ["d1", "d2"]


def test_what_is_written_is_read(tmp_path):
    documents, queries = {"d1": "A b", "d2": "\u00e9"}, {"q1": "x", "q2": "y"}
    qrels = {"train": {"q2": {"d2": 1}}, "test": {"q1": {"d2": 2, "d1": 0}}}
    clicks = [Pair("y", "\u00e9"), Pair("y", "tab\there")]
    arguments = documents, queries, qrels, clicks
    collection = write_collection(tmp_path / "new", *arguments)
    assert collection.documents == documents
    assert collection.queries == queries
    assert collection.splits == ("train", "test")
    assert {s: collection.qrels(s) for s in collection.splits} == qrels
    assert list(collection.training_log()) == [clicks[0], ("y", "tab here")]
    write_collection(tmp_path / "again", *arguments)
    for name in ("corpus.jsonl.gz", "clicks.train.tsv.gz", "qrels/test.tsv"):
        first, second = (tmp_path / f / name for f in ("new", "again"))
        assert first.read_bytes() == second.read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"new", "again"}


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path):
    documents = {f"d{i}": f"title {hash(str(i))}" for i in range(1000)}
    with (
        largest_file(1000),
        pytest.raises(OSError, match="File too large: .*new'"),
    ):
        write_collection(tmp_path / "new", documents, {}, {}, [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "documents", "queries", "clicks"),
    [
        ("homedepot", 53489, (8168, 1219, 1204), 34643),
        ("bestbuy", 437, (3195, 431, 934), None),
        ("wikiqa", 11406, (873, 126, 237), None),
    ],
)
def test_real_folders(shared_data, tmp_path, name, documents, queries, clicks):
    collection = Collection(shared_data / name)
    assert len(collection.documents) == documents
    splits = ("train", "dev", "test")
    assert tuple(len(collection.qrels(s)) for s in splits) == queries
    count = collection.training_log(write_to=tmp_path / "clicks").count()
    assert count == clicks or clicks is None and count > 1000

"""lstm-dssm-split: clicks become a collection, whose parts share no query."""

from keras_lstm_dssm.data import Collection, open_log
from keras_lstm_dssm.data.click_pages import ClickPages, Page
from keras_lstm_dssm.data.split import split_pages
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.tools import split
from tests.data.pages import TITLES, write_ubi
from tests.tools.conftest import results_of


def test_clicks_become_a_collection(tmp_path, capsys, refused):
    """Of 200 queries with two titles, of which one is clicked twice."""
    clicks, folder = tmp_path / "clicks.tsv", tmp_path / "data"
    lines = [
        f"query {i}\ttitle {j % 9}\n" for i in range(200) for j in (i, i + 1, i)
    ]
    clicks.write_text("".join([*lines, "no tab\na\tb\tc\nno tab either\n"]))
    flags = [f"--data={clicks}", f"--output={folder}"]
    code = split.program.run(["split", *flags, "--max_bad_lines=2"])
    refused(code, "more than --max_bad_lines=2")
    assert not folder.exists()
    result = results_of(
        split, tmp_path / "out.json", data=clicks, output=folder,
        test_percent=20, max_bad_lines=3,
    )  # fmt: skip
    collection = Collection(folder)
    dev, test = (len(collection.qrels(s)) for s in ("dev", "test"))
    assert result == {
        "titles": 9,
        "bad_lines": {"no tab": 2, "2 tabs": 1},
        "train_clicks": 3 * (200 - dev - test),
        "dev_queries": dev,
        "test_queries": test,
    }
    assert capsys.readouterr().out.splitlines() == [
        f"9 titles, {dev + test} queries",
        f"train: {result['train_clicks']} clicks",
        f"dev: {dev} queries, {2 * dev} pairs",
        f"test: {test} queries, {2 * test} pairs",
        "--data: left out bad lines: no tab: 2, 2 tabs: 1",
    ]
    # It can be trained on, and evaluated.
    trained = {query for query, _ in open_log(str(folder))}
    assert len(trained) == 200 - dev - test
    for mode in ("rerank", "retrieve"):
        task = Task.from_collection(collection, "test", mode)
        assert (len(task.queries), len(collection.documents)) == (test, 9)
        assert not trained & {*task.queries.values()}


def test_weights_are_kept(tmp_path):
    """Grades are those of repeated clicks, and training keeps the column."""
    lines = [f"query {i}\ttitle {j}\t{1 + 2 * (j == i)}\n"
             for i in range(200) for j in (i, i + 1)]  # fmt: skip
    (tmp_path / "clicks.tsv").write_text("".join(lines))
    results_of(
        split, tmp_path / "out.json", data=tmp_path / "clicks.tsv",
        output=tmp_path / "data",
    )  # fmt: skip
    collection = Collection(tmp_path / "data")
    assert collection.clicks is not None
    kept = {line.decode() + "\n" for _, line in collection.clicks.lines()}
    assert {line.replace("\t1\n", "\n") for line in lines} >= kept
    assert collection.clicks.weighted
    for grades in collection.qrels("test").values():
        assert sorted(grades.values()) == [3, 4]


def test_pages_become_a_collection(tmp_path, capsys, refused):
    """By query and by time; with lines whose ids are not known left out."""
    searches = [
        (f"query {n % 50}", ["d1", "d2", "d3"], [("click", f"d{1 + n % 3}")])
        for n in range(300)
    ]
    write_ubi(tmp_path / "ubi", 0, searches)
    (tmp_path / "titles.txt").write_text(
        "".join(f"{key}\t{title}\n" for key, title in TITLES.items())
    )
    flags = {"data": f"ubi:{tmp_path / 'ubi'}",
             "documents": tmp_path / "titles.txt"}  # fmt: skip
    result = results_of(
        split, tmp_path / "out.json", **flags, output=tmp_path / "data"
    )
    collection = Collection(tmp_path / "data")
    assert set(collection.documents.values()) == {
        "title 1", "title 2", "title 3",
    }  # fmt: skip
    held_out = result["dev_queries"] + result["test_queries"]
    assert result["train_clicks"] == 6 * (50 - held_out)
    trained = {pair.query for pair in open_log(str(tmp_path / "data"))}
    asked = {*collection.queries.values()}
    assert len(trained | asked) == 50 and not trained & asked
    results_of(
        split, tmp_path / "out.json", **flags, output=tmp_path / "late",
        test_after="2023-11-15T02:13:20Z", dev_percent=20,
    )  # fmt: skip
    late = Collection(tmp_path / "late")
    assert set(late.queries[key] for key in late.qrels("test")) == {
        f"query {n % 50}" for n in range(240, 300)
    }
    assert late.clicks is not None and 0 < late.clicks.count() < 240


def test_grades_of_clicks_over_expected_clicks(tmp_path, monkeypatch):
    """Position 1 was clicked on 3 of 6 pages, position 2 on 1 of 6; a client's
    search that is repeated counts once."""
    monkeypatch.setattr(
        "keras_lstm_dssm.data.split.splits_of",
        lambda queries, *_: [
            "test" if query == "asked" else "train" for query in queries
        ],
    )

    def page(query, titles, clicks, client=""):
        return Page(query, titles, clicks, [1, 2], client=client)

    pages = ClickPages.__new__(ClickPages)
    rows = [
        page("asked", ["a", "b"], [1.0, 1.0], "me"),
        page("asked", ["a", "b"], [1.0, 0.0], "me"),
        page("asked", ["a", "c"], [0.0, 0.0], "you"),
        page("other", ["x", "y"], [0.0, 0.0]),
    ]
    monkeypatch.setattr(ClickPages, "__iter__", lambda _: iter(rows))
    pages.spec = "pages"
    rows.append(page("other", ["x", "y"], [1.0, 0.0]))
    rows.append(page("other", ["x", "y"], [0.0, 0.0]))
    collection = split_pages(pages, tmp_path / "data", 0, 10)
    titles = collection.documents
    (grades,) = collection.qrels("test").values()
    # a: 1 click, 2 pages at 1/2; b: 1 of 1/6, at most 4; c: none.
    assert {titles[key]: grade for key, grade in grades.items()} == {
        "a": 2, "b": 4, "c": 0,
    }  # fmt: skip

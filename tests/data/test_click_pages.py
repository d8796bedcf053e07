"""Pages of results: logs in the form of UBI, and parquet."""

import json
from pathlib import Path

import pytest

from keras_lstm_dssm.data import click_pages
from keras_lstm_dssm.data.click_pages import (
    ClickPages,
    Page,
    parse_actions,
    read_titles,
    seconds_of,
    write_clicks,
)
from keras_lstm_dssm.errors import InputError
from tests.data.pages import SEARCHES, TITLES, write_ubi


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("shown", [True, False])
def test_a_log_gives_the_same_pages_whatever_its_ordinals_begin_with(
    base, shown, tmp_path
):
    write_ubi(tmp_path / "ubi", base, shown=shown)
    pages = ClickPages(f"ubi:{tmp_path / 'ubi'}", TITLES, "click:1,purchase:3")
    assert pages.base == base
    by_query = sorted(page[:4] for page in pages)
    expected = [
        ("hex bolt", ["d3", "d1", "d2"], [0, 1, 0], [1, 2, 3]),
        ("lamp", ["d5", "d6"], [0, 0], [1, 2]),
        ("lamp", ["d6", "d5"], [1, 0], [1, 2]),
        ("wood glue", ["d2", "d4"], [0, 3], [1, 2]),
    ]
    if not shown:  # the clicked titles, at their ordinals
        expected[0] = ("hex bolt", ["d1"], [1], [2])
        del expected[1]
    assert by_query == [
        (query, [TITLES[key] for key in keys], *rest)
        for query, keys, *rest in expected
    ]
    assert pages.bad_lines == {}
    assert {page.time for page in pages} <= {
        1_700_000_000 + 60 * n for n in range(4)
    }
    log = write_clicks(pages, tmp_path / "clicks.tsv")
    assert sorted(line for _, line in log.lines()) == [
        b"hex bolt\ttitle 1",
        b"lamp\ttitle 6",
        b"wood glue\ttitle 4\t3",
    ]


def test_no_base_is_assumed(tmp_path):
    """Neither of clicks that disagree, nor of a log without shown ids."""
    first, second = tmp_path / "first", tmp_path / "second"
    write_ubi(first, 0)
    write_ubi(second, 5)
    assert ClickPages(f"ubi:{second}").base is None
    (first / "queries-1.ndjson").write_text(
        '{"query_id": "q-0", "user_query": "bolts"}\n'
    )
    pages = ClickPages(f"ubi:{first}", max_bad_lines=3)
    assert pages.base is None
    assert [page[:4] for page in pages] == [("bolts", ["d1"], [1.0], [0])]
    assert pages.bad_lines == {"an unknown query_id": 2}


def test_wrong_lines(tmp_path):
    write_ubi(tmp_path / "ubi", 1)
    lines = [
        ("no JSON", "{"),
        ("no JSON object", "[]"),
        ("a click without query_id", '{"action_name": "click"}'),
        ("a click without object_id",
         '{"action_name": "click", "query_id": "q-0"}'),
        ("an object_id that --documents lacks",
         json.dumps({"action_name": "click", "query_id": "q-0",
                     "event_attributes": {"object": {"object_id": "new"}}})),
    ]  # fmt: skip
    (tmp_path / "ubi" / "events-2.ndjson").write_text(
        "".join(line + "\n" for _, line in lines)
    )
    spec = f"ubi:{tmp_path / 'ubi'}"
    pages = ClickPages(spec, TITLES, max_bad_lines=5)
    for _ in range(2):  # the same in each pass
        assert len([page for page in pages if any(page.weights)]) == 3
        assert pages.bad_lines == {problem: 1 for problem, _ in lines}
    with pytest.raises(InputError, match=r"events-2.ndjson:1: found no JSON"):
        list(ClickPages(spec, TITLES))
    (tmp_path / "ubi" / "events-2.ndjson").write_text("{}\n" + lines[4][1])
    with pytest.raises(InputError, match=r"events-2.ndjson:2: found an object"):
        list(ClickPages(spec, TITLES))
    for wrong, message in (
        (f"ubi:{tmp_path}", "found no queries"),
        (f"{tmp_path}/x.parquet", "no file matches"),
    ):
        with pytest.raises(InputError, match=message):
            ClickPages(wrong)


def test_odd_lines_are_no_errors(tmp_path):
    """A log with equal titles, equal and missing ids, and lone surrogates."""
    (tmp_path / "queries-1.ndjson").write_text(
        '{"query_id": "1", "user_query": "bo\\u0000lt\\ud800",'
        ' "timestamp": "1712101500000",'
        ' "query_response_hit_ids": ["a", null, "a", "b", "c"]}\n'
        '{"query_id": "\\ud800", "user_query": "x", "timestamp": 1'
        + "0" * 400 + "}\n"
    )  # fmt: skip
    (tmp_path / "events-1.ndjson").write_text("")
    (tmp_path / "events-2.ndjson").write_text("".join(
        json.dumps({"action_name": "click", "query_id": "1",
                    "event_attributes": {"object": {"object_id": key}}}) + "\n"
        for key in ("a", "c")
    ))  # fmt: skip
    titles = {"a": "hex bolt", "b": "hex bolt", "c": "nut"}
    (page,) = ClickPages(f"ubi:{tmp_path}", titles)
    assert page[:5] == (
        "bo lt",
        ["hex bolt", "nut"],
        [1.0, 1.0],
        [1, 5],
        1712101500.0,
    )
    assert write_clicks([page], tmp_path / "clicks.tsv").count() == 2


@pytest.mark.parametrize("value", ["²", "x", float("nan"), True, None, {}])
def test_what_is_no_time(value):
    assert seconds_of(value) is None
    assert seconds_of("20240403") == seconds_of("2024-04-03T00:00:00Z")


@pytest.mark.parametrize("column", [
    {"clicks": 1}, {"clicks": ["yes"]}, {"clicks": [float("nan")]},
    {"clicks": [[1]]}, {"positions": 1}, {"positions": [0]},
    {"positions": [1.5]}, {"positions": [float("inf")]}, {"titles": "x"},
    {"titles": [None]}, {"titles": [b"x"]}, {"weights": [-1]}, {"query": 1},
])  # fmt: skip
def test_wrong_cells_are_bad_lines(column, monkeypatch):
    row = {"query": "bolts", "titles": ["x"], "clicks": [1]}
    path = str(Path(__file__))
    rows = [row, row | column, row]
    monkeypatch.setattr(click_pages, "_parquet_rows", lambda _: rows)
    pages = ClickPages(path, max_bad_lines=1)
    assert len(list(pages)) == 2
    assert sum(pages.bad_lines.values()) == 1


def test_parquet(tmp_path):
    """Pages, and a folder of UBI whose files are parquet."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "pages.parquet"
    table = {
        "query": ["bolts", "lamp", "bad"],
        "titles": [["d1", "d2"], ["d3", "d4"], ["d1"]],
        "clicks": [[0, 1], [1, 1], [1, 0]],
        "positions": [[4, 9], None, None],
        "weights": [[1.0, 0.5], None, None],
    }
    parquet.write_table(pyarrow.table(table), path)
    pages = ClickPages(str(path), TITLES, max_bad_lines=1)
    assert list(pages) == [
        Page("bolts", ["title 1", "title 2"], [0, 0.5], [4, 9]),
        Page("lamp", ["title 3", "title 4"], [1, 1], [1, 2]),
    ]
    assert sum(pages.bad_lines.values()) == 1 and pages.base is None
    write_ubi(tmp_path / "ubi", 1)
    folder = tmp_path / "ubi"
    expected = list(ClickPages(f"ubi:{folder}"))
    rows = [
        json.loads(line)
        for line in (folder / "queries-1.ndjson").read_text().splitlines()
    ]
    parquet.write_table(
        pyarrow.Table.from_pylist(rows), folder / "queries.parquet"
    )
    (folder / "queries-1.ndjson").unlink()
    assert list(ClickPages(f"ubi:{folder}")) == expected
    path.write_text("no parquet")
    with pytest.raises(InputError, match="pages.parquet: cannot be read"):
        list(ClickPages(str(path)))


@pytest.mark.parametrize("parts", [1, 7])
def test_pages_do_not_depend_on_the_parts(parts, tmp_path, monkeypatch):
    write_ubi(tmp_path / "ubi", 1, SEARCHES * 10)
    spec = f"ubi:{tmp_path / 'ubi'}"
    expected = sorted(page[:4] for page in ClickPages(spec))
    size = 1 << 24 if parts == 1 else 1000
    monkeypatch.setattr(
        "keras_lstm_dssm.data.click_pages._BYTES_PER_PART", size
    )
    pages = ClickPages(spec)
    assert sorted(page[:4] for page in pages) == expected
    assert len(expected) == 40 and (pages.parts == 1) == (parts == 1)


def test_titles_and_actions(tmp_path):
    path = tmp_path / "titles.txt"
    path.write_text("d1\thex  bolt\tnew,red\nwood glue\n\n")
    assert read_titles(path) == {"d1": "hex bolt", "wood glue": "wood glue"}
    assert parse_actions("a:2, b:1") == {"a": 2.0, "b": 1.0}
    for wrong in ("click", ":1", "click:0", "click:x", "click:nan"):
        with pytest.raises(InputError, match="expected names and weights"):
            parse_actions(wrong)

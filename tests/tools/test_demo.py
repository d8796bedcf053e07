"""`make demo`: the catalogue and the log that it writes, and its summary."""

import shlex
from pathlib import Path
from types import SimpleNamespace

from keras_lstm_dssm.data import Pair, write_collection
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.tools import analyze, demo
from keras_lstm_dssm.tools.demo import _run_program, summary, write_sources


def test_the_files_of_a_shop_keep_the_test_queries(tmp_path):
    """Queries of one hash are test in API search, and others are dev here."""
    documents = {f"d{n}": f"numpy sort {n}" for n in range(300)}
    documents["d1"] = "str split"
    queries = {f"q{n}": f"Sort it {n}." for n in range(300)}
    split_of = {q: "test" if int(q[1:]) % 10 == 0 else "train" for q in queries}
    qrels = {
        split: {q: {f"d{q[1:]}": 1} for q in queries if split_of[q] == split}
        for split in ("train", "test")
    }
    pairs = [Pair(queries[q], documents[f"d{q[1:]}"]) for q in qrels["train"]]
    api = write_collection(tmp_path / "api", documents, queries, qrels, pairs)
    write_sources(api, tmp_path)
    shop = prepare(
        tmp_path / "shop", catalogue=tmp_path / "catalogue.csv",
        clicks=tmp_path / "clicks.csv", tags=("package",), dev_percent=3,
        judgements=tmp_path / "judgements.csv",
    ).collection  # fmt: skip
    assert shop.documents == documents
    assert shop.tags["d0"] == ["package:numpy"]
    assert shop.tags["d1"] == ["package:python"]
    of_test = {shop.queries[q]: of for q, of in shop.qrels("test").items()}
    assert of_test == {queries[q]: of for q, of in qrels["test"].items()}
    dev = {shop.queries[q] for q in shop.qrels("dev")}
    assert 0 < len(dev) < 20 and not dev & of_test.keys()
    left = [pair for pair in pairs if pair.query not in dev]
    log = shop.training_log(write_to=tmp_path / "log.tsv")
    assert sorted(log) == sorted(left)


def test_the_last_lines_say_how_good_and_where(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    values = {"model": {"mrr@10": 0.535, "recall@10": 0.766},
              "bm25": {"mrr@10": 0.305, "recall@10": 0.414}}  # fmt: skip
    write_json(run / "metrics.json", {"test/retrieve": values})
    measured, report, search, page, guide = summary(tmp_path)
    assert measured.endswith(
        "best mrr@10 53.5, recall@10 76.6; BM25 mrr@10 30.5, recall@10 41.4"
    )
    assert str(tmp_path / "report.html") in report
    assert str(run / "CARD.md") in report
    program, models, *_ = shlex.split(search.removeprefix("next"))
    assert Path(program).resolve().exists()
    assert models == f"--models={tmp_path / 'models'}"
    assert "make page" in page and "docs/shop.md" in guide


def test_a_printed_step_can_be_copied(monkeypatch, capsys):
    given: list[list[str]] = []
    monkeypatch.setattr(analyze, "program", SimpleNamespace(run=given.append))
    flags = "--query=the inverse of a matrix", "--output=a.html"
    _run_program("analyze", *flags)
    printed = capsys.readouterr().out.strip()
    assert shlex.split(printed.removeprefix("$ ")) == given[0]


OPEN = "keras_lstm_dssm.data.open_collection"


def test_a_run_that_is_not_of_a_demo_stays(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(OPEN, str)
    model = tmp_path / "run" / "model.keras"
    model.parent.mkdir()
    model.write_text("of three days")
    assert demo.program.run(["demo", f"--output={tmp_path}"]) == 1
    assert "not of an earlier demo" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [model.parent]
    assert model.read_text() == "of three days"


def test_an_earlier_demo_stays_where_there_are_no_data(
    tmp_path, monkeypatch, capsys
):
    def fail(name: str) -> None:
        raise InputError(f"{name}: no docstrings")

    monkeypatch.setattr(OPEN, fail)
    (tmp_path / "run").mkdir()
    (tmp_path / "catalogue.csv").write_text("id,title\n")
    assert demo.program.run(["demo", f"--output={tmp_path}"]) == 1
    assert "error: api: no docstrings" in capsys.readouterr().err
    assert (tmp_path / "run").exists()

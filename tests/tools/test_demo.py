"""The last lines of `make demo`."""

import shlex
from pathlib import Path
from types import ModuleType, SimpleNamespace

from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.tools import demo
from keras_lstm_dssm.tools.demo import _step, summary


def test_five_lines_say_what_and_where(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    write_json(run / "config.json", {"pairs": 31179})
    (run / "history.csv").write_text("epoch,updates,loss\n1,2,1\n2,4,0.5\n")
    values = {"model": {"mrr@10": 0.535, "recall@10": 0.766},
              "bm25": {"mrr@10": 0.305, "recall@10": 0.414}}  # fmt: skip
    write_json(run / "metrics.json", {"test/retrieve": values})
    trained, measured, report, models, commands = summary(tmp_path, "best", 129)
    assert trained == (
        "trained   best: 31,179 pairs (clicks, and words of titles), 2 epochs;"
        " the whole demo took 129 s"
    )
    assert measured.endswith(
        "best mrr@10 53.5, recall@10 76.6; BM25 mrr@10 30.5, recall@10 41.4"
    )
    assert str(tmp_path / "report.html") in report
    assert str(run / "CARD.md") in report
    assert str(tmp_path / "models") in models
    assert "make page" in models
    search, page, train = commands.removeprefix("next").split("  |  ")
    assert page == "make page"
    for command in (search, train):
        assert Path(command.split()[0]).resolve().exists()


def test_a_printed_step_can_be_copied(capsys):
    module = ModuleType("keras_lstm_dssm.tools.analyze")
    given: list[list[str]] = []
    module.program = SimpleNamespace(run=given.append)  # type: ignore
    _step(module, "--query=the inverse of a matrix", "--output=a.html")
    printed = capsys.readouterr().out.strip()
    assert shlex.split(printed.removeprefix("$ ")) == given[0]


def test_a_run_that_is_not_of_a_demo_stays(collection_folder, tmp_path, capsys):
    model = tmp_path / "run" / "model.keras"
    model.parent.mkdir()
    model.write_text("of three days")
    words = f"--data={collection_folder}", f"--output={tmp_path}"
    assert demo.program.run(["demo", *words]) == 1
    assert "not of an earlier demo" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [model.parent]
    assert model.read_text() == "of three days"


def test_an_earlier_demo_stays_where_there_are_no_data(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "titles.txt").write_text("wood glue\n")
    assert (
        demo.program.run(["demo", "--data=nowhere", f"--output={tmp_path}"])
        == 1
    )
    assert "nowhere: found nothing there" in capsys.readouterr().err
    assert (tmp_path / "run").exists()

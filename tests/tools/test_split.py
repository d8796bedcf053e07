"""lstm-dssm-split: clicks become a collection, whose parts share no query."""

from keras_lstm_dssm.data import Collection, open_log
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.tools import split
from tests.tools.conftest import results_of


def test_clicks_become_a_collection(tmp_path, capsys, refused):
    """Of 200 queries with two titles, of which one is clicked twice."""
    clicks, folder = tmp_path / "clicks.tsv", tmp_path / "data"
    lines = [
        f"query {i}\ttitle {j % 9}\n" for i in range(200) for j in (i, i + 1, i)
    ]
    clicks.write_text("".join([*lines, "no tab\na\tb\tc\nno tab either\n"]))
    flags = [f"--data={clicks}", f"--output={folder}"]
    refused(split.run(["split", *flags]), "clicks.tsv:601: found no tab")
    skip = ["--on_bad_line=skip", "--max_bad_lines=2"]
    code = split.run(["split", *flags, *skip])
    refused(code, "more than --max_bad_lines=2")
    assert not folder.exists()
    result = results_of(
        split, tmp_path / "out.json", data=clicks, output=folder,
        test_percent=20, on_bad_line="skip", max_bad_lines=3,
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

"""How clicks are cut by time, and which trainings are compared."""

import json
from typing import Any

from keras_lstm_dssm.benchmarks import continued_training
from keras_lstm_dssm.data import Pair, open_log
from keras_lstm_dssm.models import Recipe

CLICKS = [
    Pair(f"query {number % 40}", f"title {number:02}") for number in range(50)
]
"""The queries 0 to 9 are both of old titles, 0 to 39, and of new ones."""


def test_no_query_of_a_test_part_is_in_another_part():
    parts = continued_training.cut(reversed(CLICKS))
    assert sorted(sum(parts.values(), [])) == sorted(CLICKS)
    assert parts["old"] + parts["new"] != CLICKS
    assert all(title < "title 40" for _, title in parts["old"])
    assert all(title >= "title 40" for _, title in parts["new"])
    # Every tenth query: 0, 10, 20 and 30, of which 0 is among the new ones.
    assert parts["old_test"] == [CLICKS[10], CLICKS[20], CLICKS[30]]
    assert parts["new_test"] == []
    others = [Pair(f"new {n}", f"title {n}") for n in range(40, 50)]
    parts = continued_training.cut(CLICKS[:40] + others)
    assert parts["new_test"] == others[:1]


def test_the_task_is_to_find_the_title_among_all():
    task = continued_training.task(
        [Pair("a", "t1"), Pair("a", "t2"), Pair("b", "t1")], ["t1", "t2", "t3"]
    )
    assert task.qrels == {"a": {"t1": 1, "t2": 1}, "b": {"t1": 1}}
    assert list(task.documents) == ["t1", "t2", "t3"]


def test_ways_to_learn_from_new_clicks(tmp_path, monkeypatch):
    """The arguments of each training, and figures of the models it returns."""
    recipe = Recipe("DSSMEncoder", {"units": [3]})
    model = recipe.build(seed=0)
    trainings: list[tuple[list[Pair], Recipe, dict[str, Any]]] = []

    def train(data: str, recipe: Recipe, **options: Any) -> Any:
        if "replay" in options:
            path, share = options["replay"]
            options["replay"] = list(open_log(path)), share
        trainings.append((list(open_log(data)), recipe, options))
        return model

    monkeypatch.setattr(continued_training.dssm, "train", train)
    monkeypatch.setitem(continued_training.dssm.PRESETS, "small", recipe)
    log, output = tmp_path / "clicks.tsv", tmp_path / "out.json"
    clicks = CLICKS[:40] + [
        Pair(f"new {n}", f"title {n}") for n in range(40, 50)
    ]
    log.write_text("".join(f"{query}\t{title}\n" for query, title in clicks))
    code = continued_training.run(
        ["continued_training", f"--data={log}", f"--json={output}",
         "--preset=small", "--epochs=6", "--new_epochs=2", "--replay=0.5",
         "--seed=7"]
    )  # fmt: skip
    assert code == 0
    parts = continued_training.cut(clicks)
    old, new = parts["old"], parts["new"]
    assert [read for read, *_ in trainings] == [old, new, new, old + new]
    assert [used.epochs for _, used, _ in trainings] == [6, 2, 2, 6]
    first, continued, replayed, anew = (options for *_, options in trainings)
    assert "init" not in first and "init" not in anew
    assert continued["init"] is replayed["init"] is model
    assert "replay" not in continued and replayed["replay"] == (old, 0.5)
    titles = [title for _, title in clicks]
    for options, expected in (
        (first, titles[:40]),
        (continued, titles[40:]),
        (replayed, titles[40:]),
        (anew, titles),
    ):
        assert sorted(options["titles"]) == expected
    assert {options["seed"] for *_, options in trainings} == {7}
    figures = json.loads(output.read_text())
    assert list(figures) == [
        "not at all", "continued", "continued, replay 0.5", "anew on all",
    ]  # fmt: skip
    for of_way in figures.values():
        # All are of one model here.
        assert of_way["old"] == figures["anew on all"]["old"]
        assert 0 <= of_way["new"] <= 1 and of_way["cpu_minutes"] >= 0

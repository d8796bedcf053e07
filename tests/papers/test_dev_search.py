import dataclasses
import json
from types import SimpleNamespace
from typing import Any

from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers.baseline_rows import BASELINE_GRIDS, baseline_grid
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.run_systems import choose_on_dev
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.papers.table_iv import TABLE_IV_ROWS
from keras_lstm_dssm.settings.papers import TableSettings
from tests.papers.conftest import ROWS, SMALL


def test_towers_choose_the_step_and_then_gamma():
    settings = TableSettings(
        "api", learning_rates=(0.1, 0.2, 0.3), gammas=(5.0, 10.0, 3.0)
    )
    figures = [0.4, 0.6, 0.5, 0.7, 0.1]
    tried: list[dict[str, float]] = []
    while options := Neural(SMALL).next_trial("dssm", settings, tried):
        tried.append({**options, "dev": figures[len(tried)]})
    assert [tuple(trial.values())[:2] for trial in tried] == [
        (0.1, 5.0), (0.2, 5.0), (0.3, 5.0), (0.2, 10.0), (0.2, 3.0)
    ]  # fmt: skip


def test_nothing_is_tried_where_there_is_no_choice(tmp_path):
    settings = TableSettings("none", learning_rates=(0.1,), gammas=(5.0,))
    path = tmp_path / "choice.json"
    nothing: Any = SimpleNamespace(settings=settings)  # no data is needed
    assert choose_on_dev("dssm", ROWS["dssm"], nothing, path) == {
        "learning_rate": 0.1, "gamma": 5.0
    }  # fmt: skip
    assert choose_on_dev("random", ROWS["random"], nothing, path) == {}
    recipe = PRESETS["best"]  # whatever there is to try
    several: Any = SimpleNamespace(settings=TableSettings("none"))
    row = TABLE_IV_ROWS["best"]
    assert choose_on_dev("best", row, several, path) == {
        "learning_rate": recipe.learning_rate, "gamma": recipe.gamma
    }  # fmt: skip
    assert not path.exists()


def test_the_best_on_dev_is_chosen(table_folder):
    system = table_folder / "systems/bm25"
    choice = json.loads((system / "choice.json").read_text())
    best = max(choice["tried"], key=lambda trial: trial["dev"])
    assert choice["measure"] == "dev ndcg@10"
    assert choice["options"] == {
        name: best[name] for name in BASELINE_GRIDS["bm25"]
    }
    result = json.loads((system / "seed_0/result.json").read_text())
    assert result["options"] == choice["options"]
    assert result["dev"] == {"ndcg@10": best["dev"]}


def test_a_learning_rate_that_diverges_is_not_chosen(settings, tmp_path):
    settings = dataclasses.replace(settings, learning_rates=(1e38, 0.1))
    path = tmp_path / "choice.json"
    data = open_data(settings, tmp_path)
    chosen = choose_on_dev("dssm", ROWS["dssm"], data, path)
    assert chosen["learning_rate"] == 0.1
    measures = [trial["dev"] for trial in json.loads(path.read_text())["tried"]]
    assert measures[0] == 0 < measures[1]


def test_an_interrupted_search_goes_on(settings, tmp_path):
    path = tmp_path / "choice.json"
    grid = baseline_grid("ulm")
    tried = [{**options, "dev": 0.5, "seconds": 9.0} for options in grid[:-1]]
    tried[7]["dev"] = 2.0  # no trial that is run again could find this
    path.write_text(json.dumps({"tried": tried}))
    data = open_data(settings, tmp_path)
    assert choose_on_dev("ulm", TABLE_IV_ROWS["ulm"], data, path) == grid[7]
    found = json.loads(path.read_text())["tried"]
    assert found[:-1] == tried
    assert found[-1]["dev"] == 1.0

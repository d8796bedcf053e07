import shutil
from types import SimpleNamespace
from typing import Any

from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.papers.results import read_results
from keras_lstm_dssm.papers.table_iv import (
    TABLE_IV_ROWS,
    best_with_gamma,
    train_with_one_gamma,
)


def test_learning_rate_for_the_other_gamma(tmp_path):
    tried = [
        {"learning_rate": rate, "gamma": gamma, "dev": dev}
        for rate, gamma, dev in (
            (0.1, 5.0, 0.9), (0.01, 10.0, 0.2), (0.03, 10.0, 0.4),
        )
    ]  # fmt: skip
    write_json(tmp_path / "choice.json", {"tried": tried})
    assert best_with_gamma(10.0, tmp_path) == {
        "learning_rate": 0.03,
        "gamma": 10.0,
    }


def test_the_rnn_is_trained_with_the_gamma_of_the_lstm(
    table_folder, settings, tmp_path, monkeypatch
):
    rows = {name: TABLE_IV_ROWS[name] for name in ("rnn_288", "lstm_96")}
    for name, gamma in (("rnn_288", 5.0), ("lstm_96", 10.0)):
        seed = tmp_path / "systems" / name / "seed_0"
        shutil.copytree(table_folder / "systems/dssm/seed_0", seed)
        result = read_json(seed / "result.json")
        result["options"]["gamma"] = gamma
        write_json(seed / "result.json", result)
    trials = [{"learning_rate": 0.3, "gamma": 10.0, "dev": 0.5}]
    write_json(tmp_path / "systems/rnn_288/choice.json", {"tried": trials})
    calls = []

    def run_systems(folder, rows, settings, seeds, options):
        calls.append((list(rows), seeds, options))
        return {"rnn_288": "no memory"}

    monkeypatch.setattr(
        "keras_lstm_dssm.papers.table_iv.run_systems", run_systems
    )
    results = read_results(tmp_path, rows, 1)
    data: Any = SimpleNamespace(settings=settings, sizes={})
    shown, failed = train_with_one_gamma(tmp_path, data, results)
    chosen = {"rnn_288": {"learning_rate": 0.3, "gamma": 10.0}}
    assert calls == [(["rnn_288"], 1, chosen)]
    assert list(shown) == ["lstm_96"]
    assert failed == {"rnn_288": "no memory"}

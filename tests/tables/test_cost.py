from pathlib import Path

from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.tables.training_cost import best_with


def test_learning_step_for_the_other_gamma(tmp_path: Path) -> None:
    tried = [
        {"learning_rate": rate, "gamma": gamma, "dev": dev}
        for rate, gamma, dev in (
            (0.1, 5.0, 0.9), (0.01, 10.0, 0.2), (0.03, 10.0, 0.4),
        )
    ]  # fmt: skip
    write_json(tmp_path / "choice.json", {"tried": tried})
    assert best_with(10.0, tmp_path) == {"learning_rate": 0.03, "gamma": 10.0}

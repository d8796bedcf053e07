"""Measures which argument makes the full MultiGranCNN worse than the small one.

    cd docs/results/claims
    python multi_gran_cnn.py SQUAD multi_gran_cnn_squad.json

SQUAD is the folder of `squad`. Each training changes one argument of the full
form to that of the small form. The JSON file gets its P@1 on dev and test, of
the epoch of four that is best on dev: one seed, learning rate 0.01, as in
`mv_lstm/squad_full`.
"""

import json
import sys
import tempfile
from pathlib import Path

from keras_lstm_dssm.evaluation import mean
from keras_lstm_dssm.models import SCORER_PRESETS
from keras_lstm_dssm.papers import TableSettings
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.table_data import open_data

CHANGES = {
    "similarity_relu": {"similarity_activation": "relu"},
    "no_convolution": {"sizes": [15], "match_filters": []},
    "relu": {"activation": "relu"},
    "no_bias": {"use_bias": False},
}


def measure(squad: str, output: str) -> None:
    """Trains a model for each change, and writes its P@1."""
    results = {}
    settings = TableSettings(squad, lists=True, epochs=4, batch_size=128,
                             dev_evaluations=4)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        data = open_data(settings, Path(folder))
        for name, changes in CHANGES.items():
            recipe = SCORER_PRESETS["multi_gran_cnn"].replace(
                matcher_config=changes
            )
            options = {"learning_rate": 0.01}
            trained = Neural(recipe).train(name, options, 0, data)
            _, by_query = data.tests["lists"].measure(trained.system)
            results[name] = {
                "dev": trained.dev,
                "test": mean(by_query, ["p@1"])["p@1"],
                "seconds": trained.train_seconds,
            }
            print(name, results[name], flush=True)
            Path(output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    measure(*sys.argv[1:])

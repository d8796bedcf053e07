"""Compares Nesterov's momentum with gradient descent alone, by training cost.

    cd docs/results/claims
    python momentum.py DATA momentum_bestbuy.json

DATA is a BEIR folder with clicks. `lstm_96` is trained with the recipe's
momentum and with none, each with all of `RATES`, one seed. The JSON file gets a
row for each training, with its loss after each epoch. The paper's claim is
about convergence, so that no dev is needed.
"""

import json
import sys
import tempfile
from pathlib import Path

import keras_lstm_dssm as dssm
from keras_lstm_dssm.run_folder import RunFolder

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
WAYS = {
    "nesterov": {},
    "none": {"momentum_ends": 0.0, "momentum_middle": 0.0},
}


def compare(data: str, output: str) -> None:
    """Trains in each way, and writes the losses."""
    results = []
    for way, momentum in WAYS.items():
        for rate in RATES:
            recipe = dssm.PRESETS["lstm_96"].replace(
                learning_rate=rate, epochs=12, batch_size=512, **momentum
            )
            with tempfile.TemporaryDirectory() as folder:
                dssm.train(data, recipe, output=folder, verbose=0)
                rows = RunFolder(folder).read_history()
            losses = {
                f"epoch_{row['epoch']}": float(row["loss"]) for row in rows
            }
            results.append({"way": way, "rate": str(rate), **losses})
            print(results[-1], flush=True)
    Path(output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    compare(*sys.argv[1:])

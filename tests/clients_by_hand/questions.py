"""Writes the questions of the demo for the clients' scripts, as JSON.

Example:
  python -m tests.clients_by_hand.questions build/questions.json
"""

import json
import sys
from pathlib import Path

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.evaluation import Task

if __name__ == "__main__":
    task = Task.from_collection(open_collection("api"), "test", "retrieve")
    row_of = {key: row for row, key in enumerate(task.documents)}
    text = json.dumps(
        {
            "queries": list(task.queries.values()),
            "titles": list(task.documents.values()),
            "relevant": [
                [
                    row_of[key]
                    for key, grade in task.qrels[query].items()
                    if grade > 0
                ]
                for query in task.queries
            ],
        }
    )
    Path(sys.argv[1]).write_text(text)

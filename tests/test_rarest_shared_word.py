"""rarest_shared_word.py gives the groups and means of a table made by hand."""

import runpy
from pathlib import Path

import pytest

from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.errors import InputError

PROGRAM = Path(__file__).parents[1] / (
    "docs/results/mv_lstm/rarest_shared_word.py"
)


def test_precision_by_the_rarest_shared_word(tmp_path, capsys):
    documents = {"bolt": "Hex bolt", "glue": "the wood glue", "lamp": "a lamp"}
    queries = {
        "train": "the saw",
        "seen": "the glue",  # "glue" is in one training text, "the" in two
        "unseen": "hex",
        "none": "light",
    }
    qrels = {
        "train": {"train": {"glue": 1, "lamp": 0}},
        "test": {
            "seen": {"glue": 1, "bolt": 0},
            "unseen": {"bolt": 1, "glue": 0},
            "none": {"lamp": 1, "bolt": 0},
        },
    }
    write_collection(tmp_path / "data", documents, queries, qrels, [])
    for seed, values in enumerate(("1,1,0", "0,1,0")):
        folder = tmp_path / f"out/systems/lstm_rnn_50/seed_{seed}"
        folder.mkdir(parents=True)
        rows = zip(("seen", "unseen", "none"), values.split(","), strict=True)
        lines = ["query,p@1", *map(",".join, rows)]
        (folder / "test.lists.queries.csv").write_text("\n".join(lines))
        (folder / "result.json").write_text("{}")
    main = runpy.run_path(str(PROGRAM))["main"]
    main(str(tmp_path / "data"), str(tmp_path / "out"), "lstm_rnn_50")
    assert capsys.readouterr().out.splitlines() == [
        "rarest shared word | lists | lstm_rnn_50",
        "none | 1 | 0",
        "in no training text | 1 | 100",
        "in 1 to 9 | 1 | 50",
    ]
    with pytest.raises(InputError, match="found no results of 'bm25' on"):
        main(str(tmp_path / "data"), str(tmp_path / "out"), "bm25")

"""The programs beside results, on tables that are made by hand."""

import gzip
import runpy
from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.data import (
    Document,
    DocumentFolder,
    write_collection,
    write_documents,
)
from keras_lstm_dssm.errors import InputError

RESULTS = Path(__file__).parents[1] / "docs/results"


def names_of(program: str) -> dict[str, Any]:
    return runpy.run_path(str(RESULTS / program))


def test_documents_of_train_are_held_out(tmp_path, capsys):
    """Moves documents from train to dev, and those of dev to test."""
    splits = ["train"] * 5 + ["dev", "test"]
    titles = ["Sort", "Heap", "Twice", "Twice", "Not clicked", "Dev", "Test"]
    documents = [
        Document(f"d{number}", title, ["One.", "Two."], ["One."], "", split)
        for number, (title, split) in enumerate(
            zip(titles, splits, strict=True)
        )
    ]
    write_documents(
        tmp_path / "papers",
        documents,
        {"q1": "of dev", "q2": "of test"},
        {"dev": {"q1": {"d5": 1}}, "test": {"q2": {"d6": 1}}},
    )
    pairs = [
        ("in order", "Sort"), ("both", "Sort"), ("tree", "Heap"),
        ("both", "Heap"), ("two of them", "Twice"), ("other", "Test"),
    ]  # fmt: skip
    path = tmp_path / "papers/clicks.train.tsv.gz"
    lines = "".join(f"{query}\t{title}\n" for query, title in pairs)
    path.write_bytes(gzip.compress(lines.encode()))
    hold_out = names_of("keyvec/hold_out.py")["hold_out"]
    hold_out(str(tmp_path / "papers"), str(tmp_path / "held"), 2)
    assert capsys.readouterr().out == "2 of 2 documents, 3 queries\n"
    held = DocumentFolder(tmp_path / "held")
    assert {one.id: one.split for one in held} == {
        "d0": "dev", "d1": "dev", "d2": "train", "d3": "train",
        "d4": "train", "d5": "test",
    }  # fmt: skip
    found = {
        held.queries[query]: list(judged)
        for query, judged in held.qrels("dev").items()
    }
    # md5("d0") is before md5("d1").
    assert found == {
        "in order": ["d0"], "both": ["d0", "d1"], "tree": ["d1"],
    }  # fmt: skip
    assert held.qrels("test") == {"q1": {"d5": 1}}
    hold_out(str(tmp_path / "papers"), str(tmp_path / "one"), 1)
    assert "1 of 2 documents, 2 queries" in capsys.readouterr().out


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
    main = names_of("mv_lstm/rarest_shared_word.py")["main"]
    main(str(tmp_path / "data"), str(tmp_path / "out"), "lstm_rnn_50")
    assert capsys.readouterr().out.splitlines() == [
        "rarest shared word | lists | lstm_rnn_50",
        "none | 1 | 0",
        "in no training text | 1 | 100",
        "in 1 to 9 | 1 | 50",
    ]
    with pytest.raises(InputError, match="found no results of 'bm25' on"):
        main(str(tmp_path / "data"), str(tmp_path / "out"), "bm25")

"""hold_out.py moves documents from train to dev, and those of dev to test."""

import gzip
import runpy
from pathlib import Path

from keras_lstm_dssm.data import Document, DocumentFolder, write_documents

PROGRAM = Path(__file__).parents[1] / "docs/results/keyvec/hold_out.py"


def test_documents_of_train_are_held_out(tmp_path, capsys):
    splits = ["train"] * 5 + ["dev", "test"]
    titles = ["Sort", "Heap", "Twice", "Twice", "Not clicked", "Dev", "Test"]
    documents = [
        Document(f"d{number}", title, ["One.", "Two."], ["One."], "", split)
        for number, (title, split) in enumerate(
            zip(titles, splits, strict=True)
        )
    ]
    write_documents(
        tmp_path / "papers", documents, {"q1": "of dev", "q2": "of test"},
        {"dev": {"q1": {"d5": 1}}, "test": {"q2": {"d6": 1}}},
    )  # fmt: skip
    pairs = [
        ("in order", "Sort"), ("both", "Sort"), ("tree", "Heap"),
        ("both", "Heap"), ("two of them", "Twice"), ("other", "Test"),
    ]  # fmt: skip
    path = tmp_path / "papers/clicks.train.tsv.gz"
    lines = "".join(f"{query}\t{title}\n" for query, title in pairs)
    path.write_bytes(gzip.compress(lines.encode()))
    hold_out = runpy.run_path(str(PROGRAM))["hold_out"]
    hold_out(str(tmp_path / "papers"), str(tmp_path / "held"), 2)
    assert capsys.readouterr().out == "2 of 2 documents, 3 queries\n"
    held = DocumentFolder(tmp_path / "held")
    assert {one.id: one.split for one in held} == {
        "d0": "dev", "d1": "dev", "d2": "train", "d3": "train",
        "d4": "train", "d5": "test",
    }  # fmt: skip
    queries = held.queries
    found = {
        queries[query]: list(judged)
        for query, judged in held.qrels("dev").items()
    }
    # md5("d0") is before md5("d1").
    assert found == {
        "in order": ["d0"], "both": ["d0", "d1"], "tree": ["d1"],
    }  # fmt: skip
    assert held.qrels("test") == {"q1": {"d5": 1}}
    hold_out(str(tmp_path / "papers"), str(tmp_path / "one"), 1)
    assert "1 of 2 documents, 2 queries" in capsys.readouterr().out

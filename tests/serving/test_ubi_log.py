"""The log of the page in the form of UBI: what is written, and read again."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.clicks import UbiWriter
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.search_page import SearchPage
from tests.serving.tiny_models import save_function

SCHEMA = json.loads((Path(__file__).parent / "ubi.schema.json").read_text())


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a file, each of which the schema accepts."""
    found = [
        json.loads(line)
        for line in (folder / f"{name}.ndjson").read_text().splitlines()
    ]
    kind = "query" if name == "queries" else "event"
    validator = jsonschema.Draft202012Validator(
        SCHEMA[kind], format_checker=jsonschema.FormatChecker()
    )
    for row in found:
        validator.validate(row)
    return found


def test_what_is_written_is_read_again(tmp_path):
    with UbiWriter(tmp_path / "log") as log:
        tokens = log.show("bolts\n", ["d2", "d1"], ["wood glue", "hex bolt"])
        log.show("lamp", ["d1"], ["hex bolt"], {"version": 3})
        assert log.write(tokens[1]) and not log.write(tokens[1])
        (long,) = log.show("lamp", ["x" * 257], ["a title"])
        assert not log.write(long)  # the schema has no such ids
        (blank,) = log.show(" \x1c", ["d1"], ["hex bolt"])
        assert not log.write(blank)  # a search without words
        log.show("bo\0lt \ud800", ["d1"], ["hex bolt"])
        for number in range(40):
            tokens = log.show(f"glue {number}", ["d2", "d1"], ["b", "a"])
            assert log.write(tokens[number % 2])
        with pytest.raises(InputError, match="another process writes"):
            UbiWriter(tmp_path / "log")
    queries, (event, *_) = (
        rows(tmp_path / "log", name) for name in ("queries", "events")
    )
    assert event["query_id"] == queries[0]["query_id"]
    assert queries[1]["query_attributes"] == {"version": 3}
    (tmp_path / "titles.tsv").write_text("id\ttitle\nd1\thex bolt\nd2\tglue\n")
    counts, shop = prepare(
        tmp_path / "SHOP", ubi=tmp_path / "log",
        catalogue=tmp_path / "titles.tsv", test_percent=30,
    )  # fmt: skip
    assert counts["log"]["clicks"] == 41 and counts["log"]["unknown id"] == 0
    # A product at a position that is clicked on half of the pages.
    grades = [sorted(g.values()) for g in shop.qrels("test").values()]
    assert grades == [[0, 4]] * len(grades) and len(grades) > 5


def test_a_search_is_answered_when_its_log_is_full(
    tmp_path, monkeypatch, caplog
):
    save_retriever(tmp_path / "models/retriever/1")
    with UbiWriter(tmp_path / "log") as log:
        page = SearchPage(ModelRegistry(tmp_path / "models"), clicks=log)
        request = {"model": "retriever", "text": "bolt", "k": 2}
        assert all("click" in hit for hit in page.search(request)["hits"])

        def full(*_: Any) -> int:
            raise OSError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            hits = page.search(request)["hits"]
        assert [hit["id"] for hit in hits] == ["a", "b"]
        assert not any("click" in hit for hit in hits)
        assert "no space left" in caplog.text
    (logged,) = rows(tmp_path / "log", "queries")
    assert logged["query_attributes"] == {"model": "retriever", "version": 1}


def save_retriever(path: Path) -> None:
    """Saves a retriever that always finds the ids a and b."""
    import tensorflow as tf

    def search(text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.size(text) + 0 * tf.size(k)
        return {
            "ids": tf.repeat([["a", "b"]], rows, 0),
            "scores": tf.repeat([[1.0, 0.0]], rows, 0),
        }

    save_function(path, search, text="string", k="int32")

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.tools import query
from tests.tools.conftest import Refused


@pytest.fixture(scope="module")
def server(tiny_models: Path) -> Iterator[str]:
    with PredictionServer(tiny_models, port=0) as running:
        yield f"127.0.0.1:{running.port}"


def test_hits_are_printed_in_columns(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert query.run(["query", f"--server={server}", "bolt", "a shelf"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[4]] == ["bolt", "a shelf"]
    hits = [line.split(maxsplit=2) for line in lines[1:4] + lines[5:]]
    assert [rank for rank, _, _ in hits] == ["1", "2", "3"] * 2
    assert hits[0] == ["1", "1.0000", "bolt"]
    assert {title for _, _, title in hits[3:]} == {
        "bolt",
        "shelf bracket",
        "steel angle",
    }
    assert len({line.index(line.split()[2]) for line in lines[1:4]}) == 1


def test_scores_best_first(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`Scorer` subtracts a document's length from twice the query's."""
    answer = tmp_path / "answer.json"
    flags = [f"--server={server}", "--model=scorer", f"--json={answer}"]
    assert query.run(["query", *flags, "bolt", "aaa", "b", "ccc"]) == 0
    assert capsys.readouterr().out == "7.0000\tb\n5.0000\taaa\n5.0000\tccc\n"
    hits = [("b", 7), ("aaa", 5), ("ccc", 5)]
    assert json.loads(answer.read_text()) == {
        "queries": [
            {
                "query": "bolt",
                "hits": [{"id": id, "score": score} for id, score in hits],
            }
        ]
    }


def test_vectors(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "answer.json"
    flags = [f"--server={server}", "--vectors", f"--json={answer}"]
    assert query.run(["query", *flags, "bolt"]) == 0
    assert capsys.readouterr().out == "bolt\n      0.6000 0.8000\n"
    assert json.loads(answer.read_text()) == {
        "queries": [
            {
                "query": "bolt",
                "vector": [pytest.approx(0.6), pytest.approx(0.8)],
            }
        ]
    }


def test_a_version_by_number(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [f"--server={server}", "--version=1", "--vectors"]
    assert query.run(["query", *flags, "bolt"]) == 1
    assert "Specific(query_encoder, 1)" in capsys.readouterr().err
    flags[1] = "--version=2"
    assert query.run(["query", *flags, "bolt"]) == 0
    assert capsys.readouterr().out == "bolt\n      0.6000 0.8000\n"


def test_status(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "answer.json"
    flags = [f"--server={server}", "--status", f"--json={answer}"]
    assert query.run(["query", *flags]) == 0
    assert capsys.readouterr().out == "retriever version 1  AVAILABLE\n"
    assert json.loads(answer.read_text()) == {
        "model": "retriever",
        "versions": {"1": {"state": "AVAILABLE", "code": "OK", "message": ""}},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no query; give one or more"),
        (["--k=0", "bolt"], "--k=0"),
        (["--server=", "bolt"], "--server is missing: The server's gRPC"),
        (["--model=absent", "bolt"], "model absent: NOT_FOUND: Servable not"),
        (["--k=3000000000", "bolt"], "k is 3000000000; expected 1 or more"),
        (["--version=99999999999999999999", "bolt"], "a number of 63 bits"),
        (["--timeout=nan", "bolt"], "timeout is nan; expected seconds"),
        (
            ["--model=scorer", "bolt"],
            "no document; give the query, here 'bolt'",
        ),
        (["--model=absent", "--status"], "Could not find any versions of"),
        (["--version=canary", "bolt"], "servable version label: canary"),
        (["--model=numbers", "bolt"], "model numbers: INVALID_ARGUMENT"),
        (["--server=localhost:1", "bolt"], "no answer from localhost:1: start"),
    ],
)
def test_wrong_input(
    server: str,
    arguments: list[str],
    message: str,
    refused: Refused,
) -> None:
    assert not refused(
        query.run(["query", f"--server={server}", *arguments]), message
    )

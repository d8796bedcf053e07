import json
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_retriever, read_documents
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.serving.security import Security, ServerTLS, TokenFile
from keras_lstm_dssm.tools import query, search


@pytest.fixture(scope="module")
def server(tiny_models) -> Iterator[str]:
    with PredictionServer(tiny_models, port=0) as running:
        yield f"127.0.0.1:{running.port}"


def test_hits_are_printed_in_columns(server, capsys):
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


FRESH = """
import sys, lstm_dssm_programs
assert lstm_dssm_programs.start("query") == 0
assert not {"tensorflow", "keras"} & set(sys.modules)
"""


def test_a_fresh_process_asks_without_tensorflow(server):
    flags = [f"--server={server}", "--k=1", "--timeout=60", "bolt"]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, *flags], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["bolt", "1", "1.0000", "bolt"]


def test_scores_best_first(server, tmp_path, capsys):
    """The scorer's score is twice the query's length less the document's."""
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


def test_vectors(server, tmp_path, capsys):
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


def test_a_version_by_number(server, capsys):
    flags = [f"--server={server}", "--model_version=1", "--vectors"]
    assert query.run(["query", *flags, "bolt"]) == 1
    assert "Specific(query_encoder, 1)" in capsys.readouterr().err
    flags[1] = "--model_version=2"
    assert query.run(["query", *flags, "bolt"]) == 0
    printed = "bolt\n      0.6000 0.8000\n"
    assert capsys.readouterr() == (printed, "")
    for old in (["--version=2"], ["--version", "2"]):
        assert query.run(["query", flags[0], *old, "--vectors", "bolt"]) == 0
        out, notice = capsys.readouterr()
        assert out == printed and notice.count("\n") == 1
        assert notice.startswith("--version=VALUE is now --model_version=")


def test_status(server, tmp_path, capsys):
    answer = tmp_path / "answer.json"
    flags = [f"--server={server}", "--status", f"--json={answer}"]
    assert query.run(["query", *flags]) == 0
    assert capsys.readouterr().out == "retriever version 1  AVAILABLE\n"
    assert json.loads(answer.read_text()) == {
        "model": "retriever",
        "versions": {"1": {"state": "AVAILABLE", "code": "OK", "message": ""}},
    }


def test_tags_tls_and_a_token(certificates, tmp_path, refused, capsys):
    """Only titles with a tag that is asked for are found, by two programs.

    `lstm-dssm-query` asks a server over TLS, which refuses a wrong token;
    `lstm-dssm-search` reads the same models without a server.
    """
    (tmp_path / "titles.tsv").write_text(
        "a\thex bolt\tsteel, zinc\nb\twood glue\tin stock\nc\tsteel lamp\n"
    )
    encoder = dssm.LSTMEncoder(4)
    documents = read_documents(tmp_path / "titles.tsv")
    export_retriever(
        *(encoder, encoder, documents.ids, documents.titles),
        tmp_path / "models" / "retriever",
        tags=documents.tags,
    )
    tokens, wrong = tmp_path / "tokens", tmp_path / "wrong"
    tokens.write_text("t" * 16)
    wrong.write_text("u" * 16)
    tls = ServerTLS(certificates / "server.crt", certificates / "server.key")

    def ids(program: ModuleType, *flags: str) -> list[str]:
        assert program.run(["program", *flags, "bolt"]) == 0
        _, *lines = capsys.readouterr().out.splitlines()
        return sorted(line.split()[2] for line in lines)

    with PredictionServer(
        tmp_path / "models",
        port=0,
        security=Security(tls, TokenFile(tokens)),
        verify=True,
    ) as server:
        flags = [
            f"--server={server.address}",
            f"--tls_ca={certificates}/ca.crt",
        ]
        known = [*flags, f"--token_file={tokens}"]
        assert ids(query, *known) == ["a", "b", "c"]
        assert ids(query, *known, "--tags=zinc,in stock") == ["a", "b"]
        assert ids(query, *known, "--tags=absent") == []
        code = query.run(["query", *flags, f"--token_file={wrong}", "bolt"])
        refused(code, "UNAUTHENTICATED: the request has no valid token")
        code = query.run(["query", *known, "--tags=a, ,b", "bolt"])
        refused(code, "expected a tag that is not blank")
    code = query.run(["query", "--tls_cert=x", "bolt"])
    refused(code, "give both")
    models = f"--models={tmp_path / 'models'}"
    assert ids(search, models, "--tags=zinc") == ["a"]
    assert ids(search, models) == ["a", "b", "c"]

import json
import subprocess
import sys

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_retriever
from keras_lstm_dssm.serving import PredictionServer, SavedRetriever
from keras_lstm_dssm.serving.search_page import SearchPage
from keras_lstm_dssm.serving.security import Security, ServerTLS, TokenFile
from keras_lstm_dssm.tools import search
from lstm_dssm_client.signatures import ExplainedHit, KeyParts, VersionStatus
from tests.conftest import TOPICS
from tests.tools.conftest import succeed


def test_hits_are_printed_in_columns(server, capsys):
    succeed(search, "bolt", "a shelf", server=server.address)
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[4]] == ["bolt", "a shelf"]
    hits = [line.split(maxsplit=2) for line in lines[1:4] + lines[5:]]
    assert [rank for rank, _, _ in hits] == ["1", "2", "3"] * 2
    assert hits[0] == ["1", "1.0000", "bolt"]
    titles = sorted(title for _, _, title in hits[3:])
    assert titles == ["bolt", "shelf bracket", "steel angle"]
    assert len({line.index(line.split()[2]) for line in lines[1:4]}) == 1


FRESH = """
import sys, lstm_dssm_programs
try:
    lstm_dssm_programs.search()
except SystemExit as end:
    assert end.code == 0
assert not {"tensorflow", "keras"} & set(sys.modules)
"""


def test_a_fresh_process_asks_without_tensorflow(server):
    flags = [f"--server={server.address}", "--k=1", "--timeout=60", "bolt"]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, *flags], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["bolt", "1", "1.0000", "bolt"]


def test_exported_towers_are_searched_without_tensorflow(models, titles):
    """With the hits of the graph; another model of the folder needs it."""
    flags = [f"--models={models}", "--k=3", "steel lamp"]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, *flags], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    (hits,) = SavedRetriever(models / "retriever").search(["steel lamp"], 3)
    printed = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()]
    assert printed[1:] == [
        [f"{hit.score:.4f}", f"{hit.id}  {hit.title}"] for hit in hits
    ]


VECTOR = {"query": "bolt", "vector": pytest.approx([0.6, 0.8])}
VECTOR_LINES = "bolt\n      0.6000 0.8000\n"
# The scorer's score is twice the query's length less the document's.
HITS = [{"id": "b", "score": 7, "title": "b"},
        {"id": "aaa", "score": 5, "title": "aaa"},
        {"id": "ccc", "score": 5, "title": "ccc"}]  # fmt: skip
AVAILABLE = {"1": {"state": "AVAILABLE", "code": "OK", "message": ""}}


@pytest.mark.parametrize(("words", "printed", "answer"), [
    ("--model=scorer bolt aaa b ccc",
     "bolt\n   1   7.0000  b\n   2   5.0000  aaa\n   3   5.0000  ccc\n",
     {"queries": [{"query": "bolt", "hits": HITS}]}),
    ("--show=vectors bolt", VECTOR_LINES, {"queries": [VECTOR]}),
    ("--model_version=2 --show=vectors bolt", VECTOR_LINES,
     {"queries": [VECTOR]}),
    ("--show=status", "retriever version 1  AVAILABLE\n",
     {"model": "retriever", "versions": AVAILABLE}),
], ids=["scores", "vectors", "a version", "status"])  # fmt: skip
def test_answers_are_printed_and_written(
    words, printed, answer, server, tmp_path, capsys
):
    file = tmp_path / "answer.json"
    succeed(search, *words.split(), server=server.address, json=file)
    assert capsys.readouterr() == (printed, "")
    assert json.loads(file.read_text()) == answer


def test_tags_tls_and_a_token(certificates, tmp_path, refused, capsys):
    """Only titles with a tag that is asked for are found, in two ways.

    A server over TLS is asked, which refuses a wrong token; and the same
    models are read without a server.
    """
    encoder = dssm.LSTMEncoder(4)
    tags = [["kind:bolt", "new"], ["kind:glue"], ["kind:lamp", "new"]]
    titles = ["hex bolt", "wood glue", "steel lamp"]
    export_retriever(
        encoder, encoder, [*"abc"], titles, tmp_path / "models/retriever",
        tags=tags,
    )  # fmt: skip
    tokens, wrong = tmp_path / "tokens", tmp_path / "wrong"
    tokens.write_text("t" * 16)
    wrong.write_text("u" * 16)
    tls = ServerTLS(certificates / "server.crt", certificates / "server.key")

    def ids(*flags: str) -> list[str]:
        succeed(search, *flags, "bolt")
        _, *lines = capsys.readouterr().out.splitlines()
        if lines == ["      no hits"]:
            return []
        return sorted(line.split()[2] for line in lines)

    security = Security(tls, TokenFile(tokens))
    with PredictionServer(
        tmp_path / "models", port=0, security=security, verify=True
    ) as server:
        flags = [f"--server={server.address}"]
        flags.append(f"--tls_ca={certificates}/ca.crt")
        known = [*flags, f"--token_file={tokens}"]
        assert ids(*known) == ["a", "b", "c"]
        assert ids(*known, "--tags=kind:glue,kind:bolt") == ["a", "b"]
        assert ids(*known, "--tags=kind:glue", "--tags=kind:bolt,new") == ["a"]
        assert ids(*known, "--tags=kind:glue", "--tags=new") == []
        code = search.program.run(["search", *known, "--tags=Kind:blt", "x"])
        refused(
            code,
            "model retriever: found the tag 'Kind:blt', which no document has:"
            " give another, such as kind:bolt",
        )
        page = SearchPage(server.models)
        (listed,) = page.models()["models"]
        values = ["kind:bolt", "kind:glue", "kind:lamp"]
        assert listed["tags"] == {"kind": values}
        request = {"model": "retriever", "text": "bolt", "k": 9}
        for wanted, expected in (
            ([], {*"abc"}),
            (["new", "kind:lamp"], {"c"}),
            (["kind:glue"], {"b"}),
        ):  # fmt: skip
            found = page.search({**request, "tags": wanted})
            assert {hit["id"] for hit in found["hits"]} == expected
        for wrong_tags, message in (
            (["kind:x"], "no document has"),
            ("new", "expected a list of tags"),
        ):
            with pytest.raises(dssm.InputError, match=message):
                page.search({**request, "tags": wrong_tags})
        code = search.program.run(
            ["search", *flags, f"--token_file={wrong}", "bolt"]
        )
        refused(code, "UNAUTHENTICATED: the request has no valid token")
    models = f"--models={tmp_path / 'models'}"
    assert ids(models, "--tags=new") == ["a", "c"]
    assert ids(models) == ["a", "b", "c"]
    code = search.program.run(["search", models, "--tags=news", "x"])
    refused(code, "retriever: found the tag 'news', which no document has: gi")


def test_search_of_a_run_needs_no_export(trained_run, tmp_path, capsys):
    """The towers of the run rank the titles, and a query may come twice."""
    titles = {name: title for name, (_, title) in TOPICS.items()}
    lines = "".join(f"{name}\t{title}\n" for name, title in titles.items())
    (tmp_path / "titles.txt").write_text(lines)
    queries = ["interior glue", "steel lamp", "interior glue"]
    succeed(
        search, *queries, run=trained_run, documents=tmp_path / "titles.txt",
        k=3, json=tmp_path / "hits.json",
    )  # fmt: skip
    assert capsys.readouterr().out.count("interior glue\n") == 2
    found = json.loads((tmp_path / "hits.json").read_text())["queries"]
    assert [of_query["query"] for of_query in found] == queries
    index = dssm.Index(dssm.load_run(trained_run), titles.values(), titles)
    for of_query, expected in zip(found, index.search(queries, 3), strict=True):
        hits = [(hit["id"], hit["score"]) for hit in of_query["hits"]]
        assert hits == [(hit.id, hit.score) for hit in expected]


CONTROLS = "\u202e\u2066" + "".join(
    map(chr, [*range(0x20), *range(0x7F, 0xA0)])
)


def test_no_control_character_of_a_text_is_printed(capsys):
    """A terminal would act on a title: set its own title, or the clipboard."""
    text = f"hex {CONTROLS} bölt\u200d"
    parts = KeyParts([(text, 0.5)], [text])

    def refuse(_: list[str]) -> None:
        raise InputError(text)

    hit = ExplainedHit("id", 1.0, {}, {}, text)
    for printed in (
        lambda: search.print_hits([text], [[hit]]),
        lambda: search.print_key_parts([text], [parts]),
        lambda: search.print_vectors([text], [[1.0]]),
        lambda: search.print_status("m", {1: VersionStatus("END", "OK", text)}),
    ):
        printed()
        lines = capsys.readouterr().out
        found = set(lines) & set(CONTROLS)
        assert found <= {"\n", "\t"} and "\\x1b" in lines, found
        assert "\\u202e" in lines and "bölt\u200d" in lines
    program = Program("A program.")
    program.main(refuse)
    assert program.run(["program"]) == 1
    lines = capsys.readouterr().err
    assert lines.count("\n") == 1 and not set(lines[:-1]) & set(CONTROLS)

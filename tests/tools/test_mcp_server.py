"""lstm-dssm-mcp, asked by the client of the package mcp."""

import asyncio
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import Documents, export_portable
from keras_lstm_dssm.tools import mcp_server
from lstm_dssm_client import LocalModel, ServingError
from tests.conftest import TOPICS

PROGRAM = [
    sys.executable,
    str(Path(__file__).parents[2] / "tools/mcp_server.py"),
]


def asked(server: Any, ask: Callable[[Client], Awaitable[Any]]) -> Any:
    """Connects to a server in this process, a transport or a URL."""

    async def connected() -> Any:
        async with Client(server) as client:
            return await ask(client)

    return asyncio.run(asyncio.wait_for(connected(), 60))


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """Returns the result of a tool; of one that fails the message."""
    reply = await client.call_tool(tool, arguments)
    if reply.is_error:
        return reply.content[0].text
    value = reply.structured_content
    return value["result"] if value.keys() == {"result"} else value


@contextmanager
def server_of(**flags: object) -> Iterator[Any]:
    words = [f"--{name}={value}" for name, value in flags.items()]
    assert mcp_server.program.check(["mcp", *words]) is None
    with mcp_server.opened() as opened:
        yield mcp_server.new_server(*opened)


@pytest.fixture(scope="module")
def shop(trained_run, tmp_path_factory) -> Path:
    """A file of documents with ids, of which one is long."""
    path = tmp_path_factory.mktemp("mcp") / "shop.safetensors"
    titles = [title for _, title in TOPICS.values()]
    titles[0] += " zinc" * 100
    documents = Documents(
        list("abcdef"), titles, tags=[["steel"], *[["x"]] * 5],
        display=["A " + title[:400] for title in titles],
    )  # fmt: skip
    export_portable(dssm.load_run(trained_run), path, documents)
    return path


def test_a_file_over_standard_input_and_output(shop, tmp_path):
    """In a process of its own, which loads no TensorFlow."""
    (tmp_path / "tensorflow.py").write_text("raise AssertionError")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    model = LocalModel(shop)
    transport = stdio_client(
        StdioServerParameters(
            command=PROGRAM[0],
            args=[*PROGRAM[1:], f"--models={shop}"],
            env={**os.environ, "PYTHONPATH": path},
        )
    )

    async def ask(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        return (
            {tool.name: tool.annotations for tool in tools},
            await called(client, "search", query="hex bolt", k=2),
            await called(client, "search", query="lamp", tags=["steel"]),
            await called(client, "fetch", id="a"),
            await called(client, "fetch", id="nothing"),
        )

    tools, hits, tagged, document, missing = asked(transport, ask)
    assert tools.keys() == {"search", "fetch"}
    assert all(tools[name].read_only_hint for name in tools)
    assert [(h["id"], h["score"]) for h in hits] == [
        (hit.id, pytest.approx(hit.score))
        for hit in model.search(["hex bolt"], k=2)[0]
    ]
    assert [hit["id"] for hit in tagged] == ["a"]
    # `search` has the start of a title, `fetch` all of it.
    assert document["text"] == model.texts["a"] != model.titles["a"]
    title = model.titles["a"][:300]
    assert tagged[0]["title"] == document["title"] == title
    assert "no document has the id 'nothing'" in missing


def test_wrong_arguments_and_errors(shop):
    async def ask(client: Client) -> Any:
        search = {"query": "bolt"}
        return [
            await called(client, "search", **{**search, **more})
            for more in (
                {"k": 0}, {"k": 101}, {"query": "a" * 10_001}, {"query": 7},
                {"tags": ["a,b"]},
            )
        ]  # fmt: skip

    with server_of(models=shop) as server:
        messages = asked(server, ask)
    for message, part in zip(
        messages,
        ("greater than or equal to 1", "less than or equal to 100",
         "at most 10000 characters", "valid string", "a,b"),
        strict=True,
    ):  # fmt: skip
        assert isinstance(message, str) and part in message
    with (
        pytest.raises(ServingError, match="model other: found version"),
        server_of(models=shop, model="other"),
    ):
        pass


@pytest.mark.parametrize("kind", ["folder", "gRPC", "HTTP"])
def test_exported_models_and_servers(server, tiny_models, kind):
    """An id without a title is one: it is fetched if a search finds it."""
    source = {
        "folder": {"models": tiny_models},
        "gRPC": {"server": server.address},
        "HTTP": {"server": server.http_address},
    }[kind]

    async def ask(client: Client) -> Any:
        return (
            await called(client, "search", query="bolt", k=1),
            await called(client, "fetch", id="shelf bracket"),
            await called(client, "fetch", id="shelf"),
        )

    with server_of(**source) as made:
        hits, document, missing = asked(made, ask)
    assert hits == [{"id": "bolt", "title": "bolt", "score": pytest.approx(1)}]
    assert document == dict.fromkeys(("id", "title", "text"), "shelf bracket")
    assert "no document has the id 'shelf'" in missing


def test_over_http(shop):
    """On a free port, by this machine's name only."""
    with subprocess.Popen(
        [*PROGRAM, f"--models={shop}", "--http_port=0"],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        try:
            assert process.stdout
            line = process.stdout.readline()
            match = re.fullmatch(r"MCP on (http://127.0.0.1:\d+/mcp)\n", line)
            assert match
            hits = asked(
                match[1], lambda c: called(c, "search", query="hex bolt", k=1)
            )
            assert hits[0]["id"] == "a"
            request = urllib.request.Request(
                match[1],
                b"{}",
                {"Host": "a.example", "Content-Type": "application/json"},
            )
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.code == 421
            refused.value.close()
        finally:
            process.terminate()


def test_a_port_that_is_taken(shop, server, refused):
    port = server.http_address.rpartition(":")[2]
    code = mcp_server.program.run(
        ["mcp", f"--models={shop}", f"--http_port={port}"]
    )
    assert refused(code, f"cannot listen on 127.0.0.1:{port}") == ""

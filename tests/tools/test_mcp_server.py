"""lstm-dssm-mcp, asked by the client of the package mcp."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.server.mcpserver import MCPServer

import keras_lstm_dssm as dssm
from keras_lstm_dssm.command_line import open_retriever
from keras_lstm_dssm.export import Documents, export_portable
from keras_lstm_dssm.tools import mcp_server
from lstm_dssm_client import LocalModel
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
    """Returns the result of a tool; of one that fails the message.

    The result is also the only text, for clients that read that.
    """
    reply = await client.call_tool(tool, arguments)
    (block,) = reply.content
    if reply.is_error:
        return block.text
    assert json.loads(block.text) == reply.structured_content
    return reply.structured_content.get("results", reply.structured_content)


@pytest.fixture
def answers_of(monkeypatch) -> Callable[..., Any]:
    """Runs the program in this process, until a client has asked."""

    def run(ask: Callable[[Client], Awaitable[Any]], **flags: object) -> Any:
        answers = []
        monkeypatch.setattr(
            MCPServer, "run", lambda server: answers.append(asked(server, ask))
        )
        words = [f"--{name}={value}" for name, value in flags.items()]
        assert mcp_server.program.run(["mcp", *words]) == 0
        return answers[0]

    return run


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
            {tool.name: tool for tool in tools},
            await called(client, "search", query="hex bolt", k=2),
            await called(
                client, "search", query="lamp", tags=["steel"], k=None
            ),
            await called(client, "fetch", id="a"),
            await called(client, "fetch", id="nothing"),
        )

    tools, hits, tagged, document, missing = asked(transport, ask)
    assert tools.keys() == {"search", "fetch"}
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert not tool.input_schema["additionalProperties"]
        assert "  " not in tool.description
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


def test_wrong_arguments_and_errors(shop, answers_of):
    async def ask(client: Client) -> Any:
        search = {"query": "bolt"}
        return [
            await called(client, "search", **{**search, **more})
            for more in (
                {"k": 0}, {"k": 101}, {"query": "a" * 10_001}, {"query": 7},
                {"tags": ["a,b"]}, {"limit": 3},
            )
        ]  # fmt: skip

    messages = answers_of(ask, models=shop)
    for message, part in zip(
        messages,
        ("greater than or equal to 1", "less than or equal to 100",
         "at most 10000 characters", "valid string", "a,b",
         "Extra inputs are not permitted"),
        strict=True,
    ):  # fmt: skip
        assert isinstance(message, str) and part in message
    message = answers_of(ask, models=shop, model="other")[4]
    assert "model other: found version" in message


def test_two_first_calls_load_the_models_once(shop, answers_of, monkeypatch):
    opened = []

    def open_slowly(*models: str) -> LocalModel:
        opened.append(models)
        time.sleep(0.2)
        return open_retriever(*models)

    async def ask(client: Client) -> Any:
        calls = [
            called(client, "search", query="hex bolt", k=1) for _ in range(2)
        ]
        return await asyncio.gather(*calls, called(client, "fetch", id="a"))

    monkeypatch.setattr(mcp_server, "open_retriever", open_slowly)
    (first,), (second,), document = answers_of(ask, models=shop)
    assert first["id"] == second["id"] == document["id"] == "a"
    assert opened == [(str(shop), "retriever")]


@pytest.mark.parametrize("kind", ["folder", "HTTP"])
def test_exported_models_and_servers(server, tiny_models, kind, answers_of):
    """An id without a title is one: it is fetched if a search finds it."""
    source = {
        "folder": {"models": tiny_models},
        "HTTP": {"server": server.http_address},
    }[kind]

    async def ask(client: Client) -> Any:
        return (
            await called(client, "search", query="bolt", k=1, tags=None),
            await called(client, "fetch", id="shelf bracket"),
            await called(client, "fetch", id="shelf"),
        )

    address = "https://shop.example/{id}?ref=mcp"
    hits, document, missing = answers_of(ask, url=address, **source)
    assert hits == [
        {"id": "bolt", "title": "bolt", "score": pytest.approx(1),
         "url": "https://shop.example/bolt?ref=mcp"}
    ]  # fmt: skip
    assert document == {
        **dict.fromkeys(("id", "title", "text"), "shelf bracket"),
        "url": "https://shop.example/shelf%20bracket?ref=mcp",
    }
    assert "no document has the id 'shelf'" in missing


def test_over_http(shop):
    """On a free port, by this machine's name only, until SIGTERM."""
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
            port = int(match[1].rpartition(":")[2].partition("/")[0])
            with socket.create_connection(("127.0.0.1", port)) as half:
                half.sendall(
                    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\n"
                    b"Content-Length: 9\r\n\r\n{"
                )
                process.terminate()
                process.wait(20)
        finally:
            process.kill()


def test_the_protocol_is_answered_before_models_are_loaded(tmp_path):
    """A damaged file is an error of the first call."""
    (tmp_path / "shop.safetensors").write_text("none")
    transport = stdio_client(
        StdioServerParameters(
            command=PROGRAM[0],
            args=[*PROGRAM[1:], f"--models={tmp_path / 'shop.safetensors'}"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    )

    async def ask(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        return tools, await called(client, "search", query="bolt")

    tools, message = asked(transport, ask)
    assert [tool.name for tool in tools] == ["search", "fetch"]
    assert "shop.safetensors: not a file that this version can re" in message


def test_a_port_that_is_taken(shop, server, refused):
    port = server.http_address.rpartition(":")[2]
    code = mcp_server.program.run(
        ["mcp", f"--models={shop}", f"--http_port={port}"]
    )
    assert refused(code, "Address already in use") == ""

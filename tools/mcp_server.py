r"""Offer a search to assistants that speak MCP (Model Context Protocol).

The tools `search` and `fetch` only read. An assistant talks to the program over
standard input and output, or with --http_port at http://127.0.0.1:PORT/mcp. The
first call loads the models. This needs pip install "keras-lstm-dssm[mcp]".

Example:
  lstm-dssm-mcp --models=shop.safetensors --url=https://shop.example/{id}
  lstm-dssm-mcp --models=MODELS --http_port=8765
  lstm-dssm-mcp --server=http://127.0.0.1:8501 --token_file=tokens
"""

import atexit
import inspect
import os
import socket
import threading
from functools import cache, partial
from typing import Annotated, Any
from urllib.parse import quote

from absl import app

import lstm_dssm_programs  # noqa: F401 (flags first)
from keras_lstm_dssm.command_line import Program, open_retriever
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.version import __version__

program = Program(__doc__)
FLAGS = program.flags
for _name, _default, _help in (
    ("models", None, "Folder that lstm-dssm-export wrote, or its --portable."),
    ("server", None, "Instead of --models: URL of a server, over HTTP."),
    ("token_file", None, "With --server: file whose first token is sent."),
    ("model", "retriever", "The retriever's name."),
    ("url", "", "Address of a document, for results; {id} stands for its id."),
):
    program.string(_name, _default, _help)
program.integer("http_port", None, "Port for HTTP; 0: a free one.", 0, 65535)


@program.main
def main(_: list[str]) -> None:
    """Serves until standard input ends, or a signal arrives."""
    import_optional("mcp", "mcp")
    if bool(FLAGS.models) == bool(FLAGS.server):
        raise InputError("give --models, a file or a folder, or --server")
    if FLAGS.models:
        program.check_unused(["token_file"], "is for --server")
        os.stat(FLAGS.models)  # raises if it is missing
    titles: dict[str, str] = {}
    texts: dict[str, str] = {}
    load, lock = cache(partial(opened, titles, texts)), threading.Lock()

    def search(query: str, k: int, tags: list[str]) -> Any:
        with lock:  # the first calls may come together, from threads
            retrieve = load()
        return retrieve([query], k, tags=tags)[0]

    server = new_server(search, titles, texts, FLAGS.url)
    if FLAGS.http_port is None:
        return server.run()
    import uvicorn

    http = server.streamable_http_app(stateless_http=True, json_response=True)
    with socket.create_server(("127.0.0.1", FLAGS.http_port)) as listening:
        host, port = listening.getsockname()
        print(f"MCP on http://{host}:{port}/mcp", flush=True)
        options: Any = {"log_level": "critical", "timeout_graceful_shutdown": 3}
        uvicorn.run(http, fd=listening.fileno(), **options)


def opened(titles: dict[str, str], texts: dict[str, str]) -> Any:
    """Returns a retriever's `search`; adds titles and texts, by id."""
    if FLAGS.models:
        model = open_retriever(FLAGS.models, FLAGS.model)
        titles |= getattr(model, "titles", {})
        texts |= getattr(model, "texts", {})
        return model.search
    from lstm_dssm_client import HttpClient
    from lstm_dssm_client.options import read_token

    token = read_token(FLAGS.token_file) if FLAGS.token_file else None
    client = HttpClient(FLAGS.server, token=token)
    atexit.register(client.close)
    return partial(client.search, model=FLAGS.model)


def new_server(
    search: Any, titles: dict[str, str], texts: Any = None, url: str = ""
) -> Any:
    """Makes the MCP server of a function of query, k and tags.

    `titles` and `texts` are by id; titles of results are added.
    """
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import ToolAnnotations
    from pydantic import Field

    Text = Annotated[str, Field(max_length=10_000)]

    def hits_of(query: str, k: int, tags: list[str]) -> Any:
        try:
            hits = search(query, k, tags)
        except (InputError, OSError) as error:
            raise ToolError(str(error)) from error
        titles.update((h.id, h.title) for h in hits if h.id not in titles)
        return hits

    def shown(id: str) -> dict[str, Any]:
        address = url.replace("{id}", quote(id, safe=""))
        return {"id": id, "title": titles[id][:300], "url": address}

    def find(
        query: Text,
        k: Annotated[int, Field(ge=1, le=100)] | None = None,
        tags: list[str] | None = None,
    ) -> dict[str, Any]:
        """Finds the k (default 10) best documents for a query, best first.

        Tags restrict the search: values of one name, name:value, are
        alternatives; names, and plain tags, must all hold.
        """
        hits = hits_of(query, k or 10, tags or [])
        return {"results": [shown(h.id) | {"score": h.score} for h in hits]}

    def fetch(id: Text) -> dict[str, Any]:
        """Returns the whole document of an id that search has returned."""
        if id not in titles:
            hits_of(id, 100, [])  # an id that is a title finds itself
        if id not in titles:
            raise ToolError(f"no document has the id {id!r:.99}: search first")
        return shown(id) | {"text": (texts or {}).get(id, titles[id])}

    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools = [
        Tool.from_function(find, "search", annotations=reads),
        Tool.from_function(fetch, annotations=reads),
    ]
    for tool in tools:
        tool.description = inspect.cleandoc(tool.description)
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"
        arguments.model_rebuild(force=True)
        tool.parameters["additionalProperties"] = False
    return MCPServer(
        "lstm-dssm", version=__version__, log_level="WARNING", tools=tools
    )


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)

r"""Offer a search to assistants that speak MCP (Model Context Protocol).

The server has two tools, `search` and `fetch`. It uses standard input and
output, or, with --http_port, the address http://127.0.0.1:PORT/mcp. Needs
pip install "keras-lstm-dssm[mcp]".

Example:
  lstm-dssm-mcp --models=shop.safetensors --url=https://shop.example/{id}
  lstm-dssm-mcp --server=http://127.0.0.1:8501 --token_file=tokens
"""

import atexit
import os
import socket
import threading
from functools import cache, partial
from typing import Annotated, Any
from urllib.parse import quote

from absl import app

import lstm_dssm_programs  # noqa: F401 (delays TensorFlow)
from keras_lstm_dssm.command_line import Program, open_retriever
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.version import __version__

program = Program(__doc__)
FLAGS = program.flags
program.string("models", None, "Folder or file that lstm-dssm-export wrote.")
program.string("server", None, "Instead of --models: HTTP URL of a server.")
program.string("token_file", None, "With --server: file with the token.")
program.string("model", "retriever", "The retriever's name.")
program.string("url", "", "Address of a document; {id} stands for its id.")
program.integer("http_port", None, "Port for HTTP; 0: any free port.", 0, 65535)


@program.main
def main(_: list[str]) -> None:
    """Serves until standard input ends, or a signal arrives."""
    if bool(FLAGS.models) == bool(FLAGS.server):
        raise InputError("give either --models (a file or folder) or --server")
    if FLAGS.models:
        program.check_unused(["token_file"], "is for --server")
        os.stat(FLAGS.models)  # raises `OSError` if nothing is there
    server = new_server()
    if FLAGS.http_port is None:
        return server.run()
    import uvicorn

    http = server.streamable_http_app(stateless_http=True, json_response=True)
    with socket.create_server(("127.0.0.1", FLAGS.http_port)) as tcp:
        print(f"MCP on http://127.0.0.1:{tcp.getsockname()[1]}/mcp", flush=True)
        options: Any = {"log_level": "critical", "timeout_graceful_shutdown": 3}
        uvicorn.run(http, fd=tcp.fileno(), **options)


def open_search(titles: dict[str, str], texts: dict[str, str]) -> Any:
    """Returns a retriever's `search`.

    With --models, adds id -> title to `titles` and id -> text to `texts`.
    """
    if FLAGS.models:
        model = open_retriever(FLAGS.models, FLAGS.model)
        titles |= getattr(model, "titles", {})
        texts |= getattr(model, "texts", {})
        return model.search
    from lstm_dssm_client import HttpClient, options

    token = options.read_token(FLAGS.token_file) if FLAGS.token_file else None
    client = HttpClient(FLAGS.server, token=token)
    atexit.register(client.close)
    return partial(client.search, model=FLAGS.model)


def new_server() -> Any:
    """Makes the MCP server; the first call of a tool opens the retriever."""
    MCPServer = import_optional("mcp.server.mcpserver", "mcp").MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
    from mcp.types import ToolAnnotations
    from pydantic import Field

    ArgModelBase.model_config["extra"] = "forbid"  # rejects unknown arguments
    server = MCPServer("lstm-dssm", version=__version__, log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    Text = Annotated[str, Field(max_length=10_000)]
    Count = Annotated[int, Field(ge=1, le=100)]
    tags_rule = (
        "If several tags NAME:VALUE have the same NAME, a document needs only"
        " one of these tags. A document needs all other tags."
    )
    Tags = Annotated[list[str], Field(description=tags_rule)]
    titles, texts = dict[str, str](), dict[str, str]()
    opened, lock = cache(partial(open_search, titles, texts)), threading.Lock()

    def shown(id: str) -> dict[str, Any]:
        address = FLAGS.url.replace("{id}", quote(id, safe=""))
        return {"id": id, "title": titles[id][:300], "url": address}

    @server.tool(annotations=reads)
    def search(
        query: Text, k: Count | None = None, tags: Tags | None = None
    ) -> dict[str, Any]:
        """Finds the k (default 10) best documents for a query, best first."""
        try:
            with lock:  # several threads may call tools at once
                retrieve = opened()
            hits = retrieve([query], k or 10, tags=tags or [])[0]
        except (InputError, OSError) as error:
            raise ToolError(str(error)) from error
        titles.update((h.id, h.title) for h in hits if h.id not in titles)
        return {"results": [shown(h.id) | {"score": h.score} for h in hits]}

    @server.tool(annotations=reads)
    def fetch(id: Text) -> dict[str, Any]:
        """Returns the whole document of an id that search has returned."""
        if id not in titles:
            search(id, 100)  # finds the document if its id is its title
        if id not in titles:
            raise ToolError(f"no document has the id {id!r:.99}: search first")
        return shown(id) | {"text": texts.get(id, titles[id])}

    return server


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)

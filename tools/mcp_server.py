r"""Offer a search to assistants that speak MCP (Model Context Protocol).

The two tools only read: `search` takes a query, k and tags, and `fetch` an id.
They search the folder or the file that lstm-dssm-export wrote, without
TensorFlow where it is of two towers or of a hybrid, or a server, over gRPC or
HTTP. An assistant starts the program and talks to it over its standard input
and output; with --http_port it is asked over HTTP at /mcp, by this machine
only. This needs pip install "keras-lstm-dssm[mcp]".

Example:
  lstm-dssm-mcp --models=shop.safetensors
  lstm-dssm-mcp --models=MODELS --http_port=8765
  lstm-dssm-mcp --server=http://127.0.0.1:8501
  lstm-dssm-mcp --server=db1:8500 --tls_ca=ca.crt --token_file=tokens
"""

import socket
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from absl import app

import lstm_dssm_programs  # noqa: F401 (flags first)
from keras_lstm_dssm.command_line import Program, open_retriever
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.version import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from lstm_dssm_client.signatures import Hit

program = Program(__doc__)
FLAGS = program.flags
program.string(
    "models", None,
    "File of lstm-dssm-export --portable, or folder that lstm-dssm-export "
    "wrote.",
)  # fmt: skip
program.string(
    "server", None,
    "Instead of --models: address of a server, HOST:PORT for gRPC or a URL "
    "for HTTP.",
)  # fmt: skip
program.string("model", "retriever", "The retriever's name.")
program.integer(
    "http_port", None,
    "Port for MCP over HTTP, by default over standard input and output; 0 "
    "takes a free one.", 0, 65535,
)  # fmt: skip
program.string(
    "tls_ca", None,
    "With --server: authorities in PEM that may have signed its certificate; "
    "the connection is then encrypted.",
)  # fmt: skip
program.string(
    "token_file", None,
    "With --server: file whose first token is sent with each request.",
)  # fmt: skip

MAX_RESULTS = 100
"""Largest k of `search`."""

MAX_LETTERS = 10_000
"""Largest number of letters of a query."""

_SHOWN_LETTERS = 300
_REMEMBERED = 100_000  # titles of results, by id


Search = Callable[[str, int, Sequence[str]], "list[Hit]"]
"""Searches for a query, k and tags."""


@dataclass(frozen=True)
class Found:
    """A result of `search`; its title ends after 300 letters."""

    id: str
    title: str
    score: float


@dataclass(frozen=True)
class Document:
    """The result of `fetch`."""

    id: str
    title: str
    text: str


@program.main
def main(_: list[str]) -> None:
    """Serves until standard input ends, or a signal arrives."""
    import_optional("mcp", "mcp")
    with opened() as opened_search:
        server = new_server(*opened_search)
        if FLAGS.http_port is None:
            server.run()
            return
        import uvicorn

        try:
            sock = socket.create_server(("127.0.0.1", FLAGS.http_port))
        except OSError as error:
            raise InputError(
                f"cannot listen on 127.0.0.1:{FLAGS.http_port}: "
                f"{error.strerror}; give another --http_port, or 0"
            ) from error
        with sock:
            # It has no sessions, so that none are left by those who go.
            application = server.streamable_http_app(
                stateless_http=True, json_response=True
            )
            port = sock.getsockname()[1]
            print(f"MCP on http://127.0.0.1:{port}/mcp", flush=True)
            config = uvicorn.Config(application, log_level="warning")
            uvicorn.Server(config).run(sockets=[sock])


def new_server(
    search: Search, titles: Mapping[str, str], texts: Mapping[str, str]
) -> "MCPServer":
    """Makes the MCP server of a search, with its two tools.

    Args:
        search: Function of a query, k and tags that returns `Hit`s, and raises
            `InputError` or `ServingError`.
        titles: Titles by ids, if they are known before a search.
        texts: Whole documents by ids; a document without one is its title.
    """
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations
    from pydantic import Field

    from lstm_dssm_client.errors import ServingError

    server = MCPServer(
        "lstm-dssm",
        instructions="Finds documents by what they are about, also with other "
        "or misspelled words: search first, then fetch what is of interest.",
        version=__version__,
        log_level="WARNING",
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    found: OrderedDict[str, str] = OrderedDict()  # title by id

    def hits_of(query: str, k: int, tags: Sequence[str] = ()) -> "list[Hit]":
        try:
            hits = search(query, k, tags)
        except (InputError, ServingError) as error:
            raise ToolError(str(error)) from error
        found.update((hit.id, hit.title) for hit in hits)
        while len(found) > _REMEMBERED:
            found.popitem(last=False)
        return hits

    @server.tool("search", annotations=reads)
    def search_documents(
        query: Annotated[str, Field(max_length=MAX_LETTERS)],
        k: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = 10,
        tags: Sequence[str] = (),
    ) -> list[Found]:
        """Searches for the k best documents, best first.

        Tags restrict the search: values of one name, name:value, are
        alternatives; names, and plain tags, must all hold.
        """
        return [
            Found(hit.id, hit.title[:_SHOWN_LETTERS], hit.score)
            for hit in hits_of(query, k, tags)
        ]

    @server.tool("fetch", annotations=reads)
    def fetch_document(id: str) -> Document:
        """Returns the whole document of an id that search has returned."""
        title = titles.get(id) or found.get(id)
        if title is None and len(id) <= MAX_LETTERS:
            hits_of(id, MAX_RESULTS)  # an id that is a title finds itself
            title = found.get(id)
        if title is None:
            raise ToolError(
                f"no document has the id {id[:100]!r}; take one from search"
            )
        return Document(id, title[:_SHOWN_LETTERS], texts.get(id, title))

    return server


@contextmanager
def opened() -> Iterator[tuple[Search, Mapping[str, str], Mapping[str, str]]]:
    """Opens what the flags name: the arguments of `new_server`."""
    if bool(FLAGS.models) == bool(FLAGS.server):
        raise InputError(
            "give --models, a file or a folder, or --server, an address"
        )
    if not FLAGS.server:
        program.check_unused(("tls_ca", "token_file"), "is for --server")
    model: Any
    if FLAGS.server:
        with _client() as client:
            yield _search_by(client, model=FLAGS.model), {}, {}
    else:
        model = open_retriever(FLAGS.models, FLAGS.model)
        titles, texts = (getattr(model, n, {}) for n in ("titles", "texts"))
        yield _search_by(model), titles, texts


def _search_by(source: Any, **options: Any) -> Search:
    def search(query: str, k: int, tags: Sequence[str]) -> "list[Hit]":
        (hits,) = source.search([query], k, tags=tags, **options)
        return hits

    return search


def _client() -> Any:
    """Returns a client of --server, over HTTP if it is a URL."""
    from lstm_dssm_client.options import read_token

    token = read_token(FLAGS.token_file) if FLAGS.token_file else None
    if "://" in FLAGS.server:
        from lstm_dssm_client.http_client import HttpClient, tls_context

        context = tls_context(FLAGS.tls_ca) if FLAGS.tls_ca else None
        return HttpClient(FLAGS.server, credentials=context, token=token)
    from lstm_dssm_client.grpc_client import Client, tls_credentials

    credentials = tls_credentials(FLAGS.tls_ca) if FLAGS.tls_ca else None
    return Client(FLAGS.server, credentials=credentials, token=token)


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)

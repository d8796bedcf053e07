r"""Serve exported models over gRPC and HTTP, with TF Serving's services.

The server is meant for trials and tests on one machine; the README with the
exported models has the command line of TF Serving itself. Versions exported
while it runs are loaded, warmed up and then served; models.config can set
version policies and labels. SIGINT (ctrl-c) and SIGTERM stop the server when
the running requests have ended.

With --http_port the server also has TF Serving's REST API, metrics and a page
for searching at / (docs/local_server.md). This needs
pip install "keras-lstm-dssm[http]".

Only this machine can connect, unless --host names another address; then TLS,
and tokens or certificates of clients, are required (docs/local_server.md).

Example:
  lstm-dssm-serve --models=MODELS --port=8500
  lstm-dssm-serve --models=MODELS --http_port=8501 --click_log=clicks.tsv
  lstm-dssm-serve --models=MODELS --host=0.0.0.0 --tls_cert=server.crt \
      --tls_key=server.key --token_file=tokens.txt
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.settings.choices import (
    BATCH_SIZES,
    MAX_MESSAGE_MB,
    MAX_REQUESTS,
    MAX_SERVED_K,
    MAX_TEXT_KB,
)

FLAGS = new_flags()
define = definers(FLAGS)
define.string("models", None, "Folder that lstm-dssm-export wrote.")
define.integer("port", 8500, "Port; 0 takes a free one.", 0, 65535)
define.string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all interfaces."
)
define.integer(
    "http_port", None,
    "Port for HTTP: TF Serving's REST API, metrics and a page for searching; "
    "0 takes a free one. By default there is none.", 0, 65535,
)  # fmt: skip
define.string(
    "click_log", None,
    "File to which results that are followed on the page are appended, query "
    "TAB title.",
)  # fmt: skip
define.string(
    "titles", None,
    "File of the titles that the page shows for ids, id TAB title a line, if "
    "the retriever returns ids.",
)  # fmt: skip
define.integer(
    "versions", 1,
    "Number of a model's newest versions to load, if models.config has no "
    "version policy for it.",
    1,
)  # fmt: skip
define.integer(
    "max_message_mb", MAX_MESSAGE_MB, "Largest request, in MiB.", 1, 2047
)
define.integer(
    "max_rows", BATCH_SIZES[-1],
    "Largest number of rows in a request, as max_batch_size in "
    "batching.config.", 1,
)  # fmt: skip
define.integer(
    "max_text_kb", MAX_TEXT_KB, "Largest text in a request, in KiB.", 1
)
define.integer(
    "max_k", MAX_SERVED_K,
    "Largest number of results for a text that a request may ask for. The "
    "retriever's own limit is that of lstm-dssm-export --max_k.", 1,
)  # fmt: skip
define.integer(
    "max_requests", MAX_REQUESTS,
    "Largest number of requests at the same time, of each protocol; others "
    "are refused (RESOURCE_EXHAUSTED, 429).", 1,
)  # fmt: skip
define.string(
    "tls_cert", None,
    "Certificate of the server in PEM, with those of intermediate "
    "authorities; connections are then encrypted.",
)  # fmt: skip
define.string(
    "tls_key", None, "Private key of --tls_cert in PEM, without a password."
)
define.string(
    "client_ca", None,
    "Authorities in PEM whose certificates clients must have.",
)  # fmt: skip
define.string(
    "token_file", None,
    "File of tokens, one a line, of which each request must have one; read "
    "again when it changes.",
)  # fmt: skip
define.bool(
    "insecure", False,
    "Listen to other machines even without TLS and --token_file or "
    "--client_ca.",
)  # fmt: skip
define.bool(
    "verify", False,
    "Load only versions whose files agree with their MANIFEST.sha256.",
)  # fmt: skip
define.float(
    "poll_seconds", 1.0,
    "Seconds between checks for new versions; 0 checks only at the start.",
    0,
)  # fmt: skip
define.float(
    "grace_seconds", 10.0,
    "Seconds that running requests may still take after SIGINT or SIGTERM.", 0,
)  # fmt: skip

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["models", "host"])

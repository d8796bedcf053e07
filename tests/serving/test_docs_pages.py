"""Blocks on the pages about servers and clients do what they say."""

import importlib
import json
import re
import shlex
import shutil
import subprocess
import threading
import urllib.request
import wsgiref.simple_server
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

import keras_lstm_dssm as dssm
from keras_lstm_dssm import serving
from keras_lstm_dssm.export import Documents, export_portable
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import search
from tests.conftest import TOPICS
from tests.export.graphs.kinds import pair_scorer
from tests.models.small_keyvec import small_keyvec

DOCS = Path(__file__).parents[2] / "docs"


def blocks(*pages: str) -> list[tuple[str, str]]:
    """Returns language and text of each block of pages of docs/."""
    text = "".join((DOCS / f"{page}.md").read_text() for page in pages)
    return re.findall(r"(?ms)^```(\w*)\n(.*?)^```", text)


PORTABLE, LOCAL, CLIENTS = map(blocks, ("portable", "requests", "clients"))
LOCAL += blocks("security")
SERVING = blocks("serving")
# The first configuration leaves the retriever alone in the server.
FIRST = [language for language, _ in SERVING].index("proto")
BLOCKS = [
    *SERVING[:FIRST],
    *PORTABLE,
    *(b for b in blocks("rerank") if re.search("SCORER_RUN|=scorer", b[1])),
    *blocks("hybrid", "filters", "large"),
    *(b for b in blocks("documents") if "PAPER_MODELS" in b[1]),
    *SERVING[FIRST:],
]
CONFIGS = [block for language, block in BLOCKS if language == "proto"]


def test_a_server_can_read_the_configurations():
    assert len(CONFIGS) == 2
    for text in CONFIGS:
        config = text_format.Parse(text, ModelServerConfig())
        (model,) = config.model_config_list.config
        live = model.model_version_policy.specific.versions
        assert set(model.version_labels.values()) <= set(live)


@pytest.mark.usefixtures("remembered_graphs", "remembered_runs")
def test_every_block_runs(trained_run, tmp_path, monkeypatch, capsys):
    """From top to bottom, on one folder and one server.

    The blocks of faiss run in `tests/test_page_code.py`.
    """
    monkeypatch.chdir(tmp_path)
    Path("RUN").symlink_to(trained_run)
    for folder, model in (
        ("SCORER_RUN", pair_scorer("RecurrentCosine")),
        ("KEYVEC_RUN", small_keyvec()),
    ):
        run = RunFolder(folder)
        run.create({}, model)
        run.save(model, run.model)
    Path("PAPERS").mkdir()
    Path("PAPERS/documents.jsonl").write_text('{"_id": 1, "text": "Glue."}\n')
    Path("page.txt").write_text("The hex bolt. Wood glue.\n")
    titles = [title for _, title in TOPICS.values()]
    tagged = [
        f"{title}\t{title}\tmaterial:{('steel', 'zinc')[row % 2]},stock:true"
        for row, title in enumerate(titles)
    ]
    Path("titles.txt").write_text("\n".join([*tagged, *map(str, range(9))]))
    run_command(next(b for _, b in BLOCKS if "lstm-dssm-export" in b), "")
    written = Path("MODELS", "models.config").read_text()
    assert CONFIGS[0].split("config {\n", 1)[1].rstrip("}\n") in written
    with (
        serving.PredictionServer("MODELS", port=0, poll_seconds=0) as server,
        serving.Client(server.address, timeout=20) as client,
    ):
        for language, block in BLOCKS:
            if language == "proto":
                # First the versions, then their labels.
                for config in (re.sub(r".*labels.*\n", "", block), block):
                    Path("MODELS", "models.config").write_text(config)
                    server.models.refresh()
            elif language == "python":
                if "faiss" not in block:
                    names: dict[str, Any] = {"client": client}
                    exec(block.replace("127.0.0.1:8500", server.address), names)
                    if "embeddings" in names:
                        check_embeddings(names)
            elif block.startswith("curl"):
                run_request(block, client)
            elif block.startswith("make benchmark"):
                pass  # tests/benchmarks runs each suite
            elif block.startswith("lstm-dssm"):
                run_command(block, server.address)
                if "SCORER_RUN" in block:
                    server.models.refresh()
            else:
                paths = re.findall(r"^  ([\w.]+(?:/\d)?)", block, re.MULTILINE)
                assert len(paths) == 7 and paths.pop() == "scorer/2"
                assert all(Path("MODELS", path).exists() for path in paths)
    # The loop has exported the encoders twice before.
    assert Path("MODELS", "scorer", "4").exists()
    assert "AVAILABLE" in capsys.readouterr().out


def test_the_function_and_the_web_application(
    trained_run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    titles = [title for _, title in TOPICS.values()]
    export_portable(
        dssm.load_run(trained_run),
        "shop.safetensors",
        Documents([f"<{title}>" for title in titles], titles),
    )
    function, application = (
        block for _, block in PORTABLE if "LocalModel" in block
    )
    names: dict[str, Any] = {}
    exec(function, names)
    answer = names["handle"](json.loads('{"query": "hex bolt", "k": 2}'))
    first, _ = json.loads(json.dumps(answer))["hits"]
    assert first["title"] == TOPICS["bolt"][1]
    assert first["id"] == f"<{first['title']}>" and 0 < first["score"] <= 1
    exec(application, names)
    with names["make_server"](
        "127.0.0.1", 0, names["app"], handler_class=QuietHandler
    ) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/?q=hex+%3Cbolt%3E"
        with urllib.request.urlopen(url) as reply:
            page = reply.read().decode()
        thread.join()
    assert f"<ol><li>{first['title']}</li>" in page
    assert 'value="hex &lt;bolt&gt;"' in page


class QuietHandler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def check_embeddings(names: dict[str, Any]) -> None:
    """Compares those of the block of stubs with the SavedModel in process."""
    version = names["reply"].model_spec.version.value
    expected = serving.SavedEncoder(f"MODELS/query_encoder/{version}").encode(
        ["angle bracket", "hex bolt"]
    )
    np.testing.assert_allclose(names["embeddings"], expected, atol=1e-6)
    assert names["embeddings"].dtype == np.float32


def run_command(block: str, server: str) -> None:
    """Runs the programs of a block, but for other kinds of retrievers.

    These are tested with the program.
    """
    for line in block.replace("\\\n", "").splitlines():
        name, *arguments = shlex.split(line.replace("127.0.0.1:8500", server))
        program = importlib.import_module(
            f"keras_lstm_dssm.tools.{name.removeprefix('lstm-dssm-')}"
        ).program
        others = ("--max_k", "=int8", "--hybrid", "--explain")
        if not any(word in line for word in others):
            assert program.run([name, *arguments]) == 0, line


def run_request(block: str, client: serving.Client) -> None:
    """Sends a REST request's inputs over gRPC, or asks for the status."""
    _, url, *data = shlex.split(block.replace("\\\n", ""))
    name, label = re.fullmatch(
        r"http://127.0.0.1:8501/v1/models/(\w+)(?:/labels/(\w+):predict)?", url
    ).groups()
    if not data:
        assert client.status(name)
        return
    inputs = json.loads(data[1])["inputs"]
    texts = np.array([text.encode() for text in inputs["text"]], object)
    answer = client.predict(
        name, {"text": texts, "k": np.int32(inputs["k"])}, version=label
    )
    assert len(answer.outputs["ids"]) == 1


def local_blocks(language: str) -> list[str]:
    return [block for found, block in LOCAL if found == language]


def test_both_clients_over_grpc(server, capsys):
    code = local_blocks("python")[0]
    exec(code.replace("127.0.0.1:8500", server.address), {})
    out = capsys.readouterr().out
    assert "Hit(id='shelf bracket'" in out
    assert "(1, 2)" in out
    assert "{1: VersionStatus(state='AVAILABLE', code='OK'" in out


def test_clients_of_other_protocols(tiny_models, tmp_path, capsys):
    for name in ("query_encoder", "document_encoder"):
        (tmp_path / name).symlink_to(tiny_models / "query_encoder")
    with serving.PredictionServer(tmp_path, port=0, http_port=0) as server:
        for language, code in CLIENTS[:2]:
            assert language == "python"
            url = server.http_address
            exec(code.replace("http://127.0.0.1:8501", url), {})
    # The tiny encoders compare the numbers of words and of letters.
    assert re.fullmatch(
        r"2\n2\n\[\(0, 1.0\), \(1, 0.9\d+\)\]\n", capsys.readouterr().out
    )


def test_from_certificates_to_answers(
    tiny_models, tmp_path, monkeypatch, capsys
):
    for program in ("openssl", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    monkeypatch.chdir(tmp_path)
    make, curl = local_blocks("sh")
    subprocess.run(["sh", "-ec", make], check=True, capture_output=True)
    security = serving.Security(
        serving.ServerTLS("server.crt", "server.key"),
        serving.TokenFile("tokens"),
    )
    with serving.PredictionServer(
        tiny_models, port=0, http_port=0, security=security
    ) as server:

        def at_ports(code: str) -> str:
            url = server.http_address
            code = code.replace("localhost:8500", f"localhost:{server.port}")
            return code.replace("localhost:8501", f"localhost:{url[-5:]}")

        _, without, with_tls = local_blocks("python")[:3]
        exec(at_ports(with_tls), {})
        assert capsys.readouterr().out.count("Hit(id='bolt', ") == 2
        (command,) = (b for b in local_blocks("") if "lstm-dssm-search" in b)
        flags = [*at_ports(command).split()[:-1], "bolt"]
        assert search.program.run([*flags, "--k=1"]) == 0
        assert capsys.readouterr().out == "bolt\n   1   1.0000  bolt\n"
        done = subprocess.run(
            ["sh", "-ec", at_ports(curl)], capture_output=True, text=True
        )
        assert '"state": "AVAILABLE"' in done.stdout, done.stderr
    with serving.PredictionServer(tiny_models, port=0, http_port=0) as server:
        url = server.http_address
        exec(without.replace("http://127.0.0.1:8501", url), {})
    assert "(1, 2)" in capsys.readouterr().out

"""TLS, tokens and certificates of clients: who may connect to a server."""

import asyncio
import base64
import http.client
import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import (
    AsyncClient,
    Client,
    HttpClient,
    PredictionServer,
    ServingError,
    tls_context,
    tls_credentials,
)
from keras_lstm_dssm.serving.security import Security, ServerTLS, TokenFile
from lstm_dssm_client.options import read_token

TOKEN = "0123456789abcdef"

REFUSED = "no answer from|DEADLINE|no reply within"
"""After some attempts, or when the deadline passes before the last one."""


@pytest.fixture(scope="module")
def models(tiny_models: Path, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "query_encoder").symlink_to(tiny_models / "query_encoder")
    return folder


@pytest.fixture(scope="session")
def ca(certificates: Path) -> Path:
    return certificates / "ca.crt"


@pytest.fixture(scope="session")
def pair(certificates: Path) -> tuple[Path, Path]:
    """The server's certificate, and its key."""
    return certificates / "server.crt", certificates / "server.key"


def served(models: Path, *secured: Any) -> Iterator[PredictionServer]:
    options = {"port": 0, "http_port": 0, "security": Security(*secured)}
    with PredictionServer(models, **options) as server:
        yield server


@pytest.fixture(scope="module")
def by_token(models: Path, pair, tmp_path_factory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text(TOKEN)
    yield from served(models, ServerTLS(*pair), TokenFile(path))


@pytest.fixture(scope="module")
def by_certificate(models: Path, pair, ca) -> Iterator[Any]:
    yield from served(models, ServerTLS(*pair, ca))


@contextmanager
def clients(
    server: PredictionServer, *files: Path, **options: Any
) -> Iterator[tuple[Client, HttpClient]]:
    """A client of each protocol, with the files of its credentials."""
    credentials = [make(*files) for make in (tls_credentials, tls_context)]
    with (
        Client(server.address, credentials=credentials[0], **options) as client,
        HttpClient(
            server.http_address, credentials=credentials[1], **options
        ) as http_client,
    ):
        yield client, http_client


def refused(client: Client | HttpClient, message: str) -> ServingError:
    with pytest.raises(ServingError, match=message) as caught:
        client.status("query_encoder")
    return caught.value


def test_clients_with_a_token(by_token, ca):
    async def width() -> tuple[int, ...]:
        async with AsyncClient(
            by_token.address, credentials=tls_credentials(ca), token=TOKEN
        ) as client:
            return (await client.encode(["x"])).shape

    with clients(by_token, ca, token=TOKEN) as (client, http_client):
        vectors = client.encode(["ab cd"])
        assert vectors.tolist() == http_client.encode(["ab cd"]).tolist()
        assert http_client.status("query_encoder")[2].state == "AVAILABLE"
    assert asyncio.run(width()) == (1, 2)


@pytest.mark.parametrize("token", [None, TOKEN[:-1] + "x", TOKEN + "x"])
def test_clients_without_it(by_token, ca, token):
    codes = grpc.StatusCode.UNAUTHENTICATED, HTTPStatus.UNAUTHORIZED
    with clients(by_token, ca, token=token) as both:
        for client, code in zip(both, codes, strict=True):
            error = refused(client, "no valid token: send .*--token_file")
            assert error.code is code


def test_two_tokens_are_none(by_token, ca):
    with clients(by_token, ca) as (client, _):
        client._transport._metadata = [("authorization", f"Bearer {TOKEN}")] * 2
        refused(client, "no valid token")


def test_health_needs_no_token(by_token, ca):
    with grpc.secure_channel(by_token.address, tls_credentials(ca)) as channel:
        reply = HealthStub(channel).Check(HealthCheckRequest(), timeout=20)
        assert reply.status == reply.SERVING
    host = by_token.http_address.removeprefix("https://")
    for path, status in (
        *[("/livez", 200), ("/readyz", 200), ("/", 401), ("/livez/", 401)],
        *[("/v1/models/x", 401), ("//livez", 401), ("/livez/../v1", 401)],
        ("/monitoring/prometheus/metrics", 401),
    ):
        with closing(
            http.client.HTTPSConnection(host, context=tls_context(ca))
        ) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == status, path
            if status == 401:
                schemes = answer.headers.get_all("www-authenticate")
                assert schemes == ["Bearer", 'Basic realm="token"']
                names = {*json.loads(answer.read())}
                assert names - {"detail"} == {"error"}


def test_connections_without_trust(by_token, certificates):
    """In clear text, and with a certificate of another authority."""
    plain = by_token.http_address.replace("https", "http")
    with (
        Client(by_token.address, timeout=0.5) as client,
        HttpClient(plain, timeout=0.3) as http_client,
    ):
        refused(client, REFUSED)
        refused(http_client, REFUSED)
    other = certificates / "other.crt"
    with clients(by_token, other, timeout=0.5) as (client, http_client):
        refused(client, f"(?i)verify failed|{REFUSED}")
        refused(http_client, "certificate verify failed")


def test_certificates_of_clients(by_certificate, certificates):
    def files(name: str) -> list[Path]:
        names = ("ca.crt", f"{name}.crt", f"{name}.key")
        return [certificates / each for each in names]

    with clients(by_certificate, *files("client")) as both:
        for client in both:
            assert client.encode(["x"]).shape == (1, 2)
    for given in (files("client")[:1], files("other")):
        with clients(by_certificate, *given, timeout=0.5) as both:
            for client in both:
                refused(client, REFUSED)


def test_a_token_is_not_sent_in_clear_text():
    for make in (Client, HttpClient):
        for target in ("db1:8500", "192.168.0.9:8500", "[fe80::1]:8500"):
            with pytest.raises(InputError, match="without encryption: give"):
                make(target, token=TOKEN)
        with pytest.raises(InputError, match="the token has a space, or"):
            make("127.0.0.1:1", token="a\nb")
        make("localhost:1", token=TOKEN).close()


def test_wrong_files(certificates, pair, tmp_path):
    (tmp_path / "x.pem").write_text("x")
    server, key = pair
    for arguments, message in (
        ((server, certificates / "client.key"), "KEY_VALUES_MISMATCH"),
        ((tmp_path / "x.pem", key), "x.pem, .*server.key: .*both in PEM"),
        ((tmp_path / "absent", key), "absent: No such file"),
        ((server, key, tmp_path / "x.pem"), "x.pem: .* authorities, in PEM"),
    ):
        with pytest.raises(InputError, match=message):
            ServerTLS(*arguments)
    for make in (tls_credentials, tls_context):
        with pytest.raises(InputError, match="x.pem: .*PEM"):
            make(tmp_path / "x.pem")
        with pytest.raises(InputError, match="absent.*: No such file"):
            make(tmp_path / "absent")
        with pytest.raises(InputError, match="give both"):
            make(None, server)


FIRST, SECOND = "a" * 15 + "1", "b" * 15 + "\u007e"


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text(f"# two clients\n{FIRST}\n\n {SECOND} \r\n")
    return path


@pytest.mark.parametrize(("authorization", "allowed"), [
    *((right, True) for right in (
        f"Bearer {FIRST}", f"bearer  {SECOND}", f"Bearer {SECOND}".encode(),
        basic(f"anyone:{FIRST}"), basic(f":{SECOND}"),
    )),
    *((wrong, False) for wrong in (
        None, "", b"", "Bearer", "Bearer ", FIRST, f"Bearer {FIRST}x",
        f"Bearer {FIRST[:-1]}", f"Bearer {FIRST} {SECOND}",
        f"Bearer {FIRST.upper()}", "Bearer # two clients",
        f"Token {FIRST}", basic(FIRST), "Basic ====",
        f"Basic {FIRST}\ud800", b"Bearer \xff\xfe",
    )),
])  # fmt: skip
def test_which_requests_are_allowed(path, authorization, allowed):
    assert TokenFile(path).allows(authorization) is allowed


def test_every_token_is_compared(path, monkeypatch):
    """By digests of one length, also after the right one was found."""
    tokens = TokenFile(path)
    compared: list[tuple[int, int]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert tokens.allows(f"Bearer {FIRST}")
    assert not tokens.allows("Bearer x")
    assert compared == [(32, 32)] * 4


def test_the_file_is_read_again(path, caplog):
    tokens = TokenFile(path)
    path.write_text(f"{SECOND}\n")
    assert not tokens.allows(f"Bearer {FIRST}")
    assert tokens.allows(f"Bearer {SECOND}")
    # A replaced file of the same size and time.
    new = path.with_name("new")
    new.write_text(f"{FIRST}\n")
    time = path.stat().st_mtime_ns
    os.utime(new, ns=(time, time))
    new.replace(path)
    assert tokens.allows(f"Bearer {FIRST}")
    # While it is wrong, the last tokens apply.
    for wrong in ("", "short\n"):
        path.write_text(wrong)
        for _ in range(3):
            assert tokens.allows(f"Bearer {FIRST}")
    path.unlink()
    assert tokens.allows(f"Bearer {FIRST}")
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    assert "found no token" in messages[0]
    assert "found 5 characters that are no token" in messages[1]
    assert "No such file" in messages[2]
    path.write_text(f"{SECOND}\n")
    assert not tokens.allows(f"Bearer {FIRST}")


@pytest.mark.parametrize(("content", "message"), [
    (b"", "found no token; expected one token a line"),
    (b"# none\n", "found no token"),
    (b"a b c d e f g h i j k\n", ":1: found 21 characters that are no"),
    (b"\xff" * 20, ":1: found 20 characters that are no token"),
    (b"x" * 513, ":1: found 513 characters"),
    (b"x\n" * (1 << 20), "found more than a megabyte"),
], ids=["empty", "remark", "spaces", "not_ascii", "long", "large"])  # fmt: skip
def test_files_without_tokens(tmp_path, content, message):
    path = tmp_path / "tokens"
    path.write_bytes(content)
    for read in (TokenFile, read_token):
        with pytest.raises(InputError, match=message) as caught:
            read(path)
        assert "xxx" not in str(caught.value)  # it might be a secret


def test_files_that_others_can_use(path, caplog):
    for mode, messages in ((0o600, 0), (0o640, 0), (0o644, 1)):
        path.chmod(mode)
        caplog.clear()
        assert TokenFile(path).allows(f"Bearer {FIRST}")
        assert caplog.text.count("other users can read the tok") == messages
    tokens = TokenFile(path)
    path.chmod(0o666)
    with pytest.raises(InputError, match="other users can write to this fil"):
        TokenFile(path)
    # While the server runs, the tokens that were read before apply.
    path.write_text(f"{SECOND}\n")
    assert tokens.allows(f"Bearer {FIRST}")


def test_the_token_of_a_client(path):
    assert read_token(path) == FIRST
    with pytest.raises((InputError, OSError), match="No such file"):
        read_token(path.with_name("absent"))


def test_who_may_listen_to_others(pair, ca, path):
    for host in ("127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"):
        Security().check(host)
    tls, tokens = ServerTLS(*pair), TokenFile(path)
    wrong = {
        r"\(--tls_cert and --tls_key\) and without --token_file or": Security(),
        "address without --token_file or --client_ca: anyone": Security(tls),
        r"address without TLS \(--tls_cert and --tls_key\): anyone": (
            Security(tokens=tokens)
        ),
    }
    for host in ("0.0.0.0", "::", "[::]", "192.168.1.2", "db1", "a.org", ""):
        for message, security in wrong.items():
            with pytest.raises(InputError, match=message):
                security.check(host)
            security._replace(insecure=True).check(host)
        Security(tls, tokens).check(host)
        Security(ServerTLS(*pair, ca)).check(host)

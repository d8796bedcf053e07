"""Certificates for tests, made by openssl in a second."""

import subprocess
from pathlib import Path

_NEW = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes"]  # fmt: skip


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["openssl", *arguments], cwd=folder, check=True, capture_output=True
    )


def make_certificates(folder: Path) -> None:
    """Writes ca, server, client and other (of no authority), .crt and .key.

    The server's names are localhost and 127.0.0.1.
    """
    folder.mkdir()
    for name in ("ca", "other"):
        openssl(
            folder, *_NEW, "-x509", "-days", "2", "-subj", f"/CN={name}",
            "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,digitalSignature",
            "-keyout", f"{name}.key", "-out", f"{name}.crt",
        )  # fmt: skip
    for name in ("server", "client"):
        (folder / f"{name}.ext").write_text(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
        )
        openssl(
            folder, *_NEW, "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr",
        )  # fmt: skip
        openssl(
            folder, "x509", "-req", "-days", "2", "-in", f"{name}.csr",
            "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-extfile", f"{name}.ext", "-out", f"{name}.crt",
        )  # fmt: skip

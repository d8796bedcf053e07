"""Pretrained sentence encoders, each run in a separate process."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.distillation import encoder_process
from keras_lstm_dssm.distillation.encoder_process import EXPECTED
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.plain_files import read_bytes, read_json
from keras_lstm_dssm.text.strings import as_bytes

OutsideEncoder = Callable[[Sequence[str]], np.ndarray]
"""Function from n texts to float32 `[n, d]`, rows of unit length."""

CHECKED_TEXTS = 8
"""Texts that are encoded again to recognise an encoder."""

BATCH = 1024
"""Most texts that an encoder's process is sent at a time."""

_GRACE = 5.0  # seconds for the exit handlers of an encoder's process

_LONGEST_LICENCE = 60  # some packages have its whole text there

_LEAST_COSINE = 0.999  # padding changes the last bits of an encoder's vectors


def is_same_encoder(
    encode: OutsideEncoder, texts: Sequence[str], vectors: np.ndarray
) -> bool:
    """Returns whether an encoder still gives the unit vectors of texts."""
    found = encode(texts)
    return found.shape == vectors.shape and np.allclose(
        np.sum(found * vectors, axis=1),
        np.sum(vectors * vectors, axis=1),
        atol=1 - _LEAST_COSINE,
    )


class _EncoderProcess:
    """Encodes in a separate process, which loads the encoder once."""

    def __init__(self, spec: str, download: bool) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, encoder_process.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._end = weakref.finalize(self, _end_process, self._process)
        path = [*map(str, sys.path), os.getcwd()]
        self._ask({"spec": spec, "download": download, "path": path})

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        clean = _clean(texts)
        if not clean:
            return np.zeros([0, 0], np.float32)
        starts = range(0, len(clean), BATCH)
        batches = [self._encode(clean[i : i + BATCH]) for i in starts]
        widths = sorted({vectors.shape[1] for vectors in batches})
        if len(widths) > 1:
            raise InputError(
                f"{self._spec}: found vectors of {widths[0]} and of"
                f" {widths[1]} numbers, expected one width"
            )
        try:
            return unit_vectors(np.concatenate(batches), "text")
        except InputError as error:
            raise InputError(
                f"{self._spec}: {error}; expected finite numbers"
            ) from error

    def _encode(self, texts: list[str]) -> np.ndarray:
        """Encodes a batch; checks the shape of its vectors."""
        shape, content = self._ask(texts)
        if len(shape) != 2 or shape[0] != len(texts) or not shape[1]:
            raise InputError(
                f"{self._spec}: found vectors of shape {shape} for"
                f" {len(texts)} texts, expected [{len(texts)}, d]: one row for"
                " each text"
            )
        return np.frombuffer(content, np.float32).reshape(shape)

    def _ask(self, request: Any) -> tuple[list[int], bytes]:
        """Sends a request; returns the shape and the bytes of the reply."""
        process = self._process
        assert process.stdin and process.stdout
        with self._lock:
            if not self._end.alive:
                raise InputError(
                    f"{self._spec}: the process of this encoder has ended:"
                    " open the encoder again"
                )
            try:
                encoder_process.send(
                    process.stdin, json.dumps(request).encode()
                )
                reply = json.loads(encoder_process.receive(process.stdout))
                content = encoder_process.receive(process.stdout)
            except (EOFError, BrokenPipeError) as error:
                self._end()
                raise InputError(self._death()) from error
            except BaseException:  # Ctrl-C: its reply must not be read later
                process.kill()
                self._end()
                raise
        if "error" in reply:
            cause = RuntimeError(reply["traceback"])  # shown with --debug
            raise InputError(f"{self._spec}: {reply['error']}") from cause
        return reply.get("shape", []), content

    def _death(self) -> str:
        """Returns a message of how the process ended and what to do."""
        code = self._process.returncode
        if encoder_process.is_function(self._spec):
            module, remedy = self._spec.partition(":")[0], ""
        else:
            module = "sentence_transformers"
            remedy = (
                "; or install again: pip install --force-reinstall"
                " sentence-transformers torch"
            )
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return (
            f"{self._spec}: the process of this encoder ended with {how}:"
            f' check that python -c "import {module}" works and that memory'
            f" suffices{remedy}"
        )


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    """Ends a process that reads standard input until it is closed."""
    assert process.stdin and process.stdout
    with suppress(BrokenPipeError):  # of a request that was not read
        process.stdin.close()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def licence_of(spec: str) -> str | None:
    """Returns the licence of a sentence encoder, `None` if it is not known.

    `spec` is what `--encoder` names: of a folder, the licence is in its
    README.md, or in its teacher.json if `teach` has written it; of a Python
    module, in the metadata of the package.
    """
    taught = Path(spec, "teacher.json")
    if taught.is_file():
        licence = read_json(taught).get("licence")
        return licence if isinstance(licence, str) else None
    card = Path(spec, "README.md")
    if card.is_file():  # as model hubs write it
        content = read_bytes(card, "expected a text: remove it")
        _, _, text = content.decode("utf-8", "replace").partition("---\n")
        front = text.partition("---\n")[0]
        found = re.search(r"^license:\s*(\S.*?)\s*$", front, re.MULTILINE)
        return found and found[1]
    module = spec.partition(":")[0].partition(".")[0]
    for name in (spec, *metadata.packages_distributions().get(module, ())):
        with suppress(metadata.PackageNotFoundError, ValueError):
            of_package = metadata.metadata(name)
            for field in ("License-Expression", "License"):
                if field in of_package and of_package[field].strip():
                    lines = of_package[field].strip().splitlines()
                    return lines[0][:_LONGEST_LICENCE]
    return None


def _check_name(spec: Any) -> None:
    if not isinstance(spec, str) or not spec:
        raise InputError(f"found the encoder {spec!r:.60}: {EXPECTED}")


def _clean(texts: Sequence[Any]) -> list[str]:
    """Replaces lone surrogates, which tokenizers do not take."""
    return [text.decode("utf-8", "replace") for text in as_bytes(texts)]

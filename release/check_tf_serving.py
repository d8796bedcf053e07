"""Compares embeddings of TensorFlow Serving with embeddings of this process.

MODELS is a folder of exported models. The program serves MODELS with the
TensorFlow Serving image that MODELS/README.md names. The program asks the
server for embeddings of `query_encoder` and `document_encoder`, through the
stubs of `tensorflow_serving.apis`, and runs the same SavedModels in this
process. The exit code is 1 if a number differs by more than 1e-5. The program
needs Docker, or a server that serves MODELS (`--server`).

Example:
  make demo
  python release/check_tf_serving.py build/demo/models build/demo/catalogue.csv
  python release/check_tf_serving.py MODELS titles.txt --server=127.0.0.1:8500
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_lstm_dssm.export.publish.server_files import IMAGE, ROOT
from keras_lstm_dssm.serving import SavedEncoder

ENCODERS = ("query_encoder", "document_encoder")
ROWS = 64  # largest number of texts in a request, below `max_batch_size`
TOLERANCE = 1e-5
TEXTS = ("", "Straße & ﬁn", "日本語 テスト", "a" * 300, "bolt " * 300)
"""Texts with letters, signs and lengths that may be missing in the titles."""


@contextmanager
def container(models: Path) -> Iterator[str]:
    """Serves a folder from a container; yields the server's gRPC address."""
    command = [
        "run", "--detach", "--publish=127.0.0.1::8500",
        f"--volume={models.resolve()}:{ROOT}:ro", IMAGE,
        f"--model_config_file={ROOT}/models.config",
        "--enable_batching",
        f"--batching_parameters_file={ROOT}/batching.config",
    ]  # fmt: skip
    identity = _docker(*command)
    try:
        yield _docker("port", identity, "8500/tcp").splitlines()[0]
    except BaseException:
        print(_docker("logs", "--tail=40", identity), file=sys.stderr)
        raise
    finally:
        _docker("rm", "--force", identity)


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["docker", *arguments],
            stdout=subprocess.PIPE,
            # `docker logs` prints the server's log to standard error.
            stderr=subprocess.STDOUT if arguments[0] == "logs" else None,
            text=True,
        )
    except FileNotFoundError:
        sys.exit("error: docker is not installed: install it, or give --server")
    if done.returncode:
        sys.exit(f"error: docker {arguments[0]} ended with {done.returncode}")
    return done.stdout.strip()


def wait_until_available(channel: grpc.Channel, seconds: float) -> None:
    """Waits until the server has loaded a version of each encoder."""
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    end = time.monotonic() + seconds
    for name in ENCODERS:
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = name
        while True:
            problem = "not loaded"
            try:
                reply = stub.GetModelStatus(request, timeout=5)
                states = {s.state for s in reply.model_version_status}
                if get_model_status_pb2.ModelVersionStatus.AVAILABLE in states:
                    break
            except grpc.RpcError as error:
                problem = error.details()
            if time.monotonic() > end:
                sys.exit(f"error: {name} after {seconds:.0f} s: {problem}")
            time.sleep(0.2)


def served_embeddings(
    channel: grpc.Channel, name: str, texts: Sequence[str]
) -> tuple[int, np.ndarray]:
    """Returns a model's version, and the embeddings of texts, `[texts, d]`."""
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    rows, versions = [], set()
    for start in range(0, len(texts), ROWS):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = name
        request.inputs["text"].CopyFrom(
            tf.make_tensor_proto(texts[start : start + ROWS], tf.string)
        )
        try:
            reply = stub.Predict(request, timeout=60)
        except grpc.RpcError as error:
            sys.exit(f"error: {name}: {error.code().name}: {error.details()}")
        versions.add(reply.model_spec.version.value)
        rows.append(tf.make_ndarray(reply.outputs["embedding"]))
    if len(versions) > 1:
        sys.exit(f"error: {name}: the version changed during the check")
    return versions.pop(), np.concatenate(rows)


def compare(
    models: Path, texts: Sequence[str], address: str, seconds: float
) -> int:
    """Prints each encoder's largest difference; returns the exit code."""
    different = 0
    with grpc.insecure_channel(address) as channel:
        wait_until_available(channel, seconds)
        for name in ENCODERS:
            version, vectors = served_embeddings(channel, name, texts)
            expected = SavedEncoder(models / name / str(version)).encode(texts)
            if vectors.shape != expected.shape:
                sys.exit(
                    f"error: {name}: found embeddings of shape {vectors.shape},"
                    f" expected {expected.shape}"
                )
            difference = float(np.abs(vectors - expected).max())
            different |= not difference <= TOLERANCE  # NaN differs, too
            print(
                f"{name} version {version}: {len(texts)} texts, largest"
                f" difference {difference:.1e}, at most {TOLERANCE} is allowed"
            )
    return int(different)


def main(arguments: Sequence[str]) -> int:
    """Checks the server at `--server`, or a server in a new container."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=Path, help="folder of exported models")
    parser.add_argument("titles", type=Path, help="file with one text a line")
    parser.add_argument("--server", help="HOST:PORT of a server of MODELS")
    parser.add_argument("--titles_read", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=120)
    flags = parser.parse_args(arguments)
    lines = flags.titles.read_text(encoding="utf-8").splitlines()
    texts = [*TEXTS, *lines[: flags.titles_read]]
    if flags.server:
        return compare(flags.models, texts, flags.server, flags.seconds)
    with container(flags.models) as address:
        return compare(flags.models, texts, address, flags.seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Bytes that are no message: a code, and no memory lost."""

import gc
import os
from pathlib import Path

import grpc
import pytest

from keras_lstm_dssm.serving import PredictionServer

METHODS = [
    "tensorflow.serving.PredictionService/Predict",
    "tensorflow.serving.PredictionService/GetModelMetadata",
    "tensorflow.serving.ModelService/GetModelStatus",
    "grpc.health.v1.Health/Check",
]


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def send(channel: grpc.Channel, method: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{method}")(b"\xff\xff\xff", timeout=20)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == "Exception deserializing request!"


def test_no_message(channel: grpc.Channel, server: PredictionServer) -> None:
    for method in METHODS:
        send(channel, method)
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
    with pytest.raises(grpc.RpcError) as caught:
        next(watch(b"\xff\xff\xff", timeout=20))
    assert caught.value.code() is grpc.StatusCode.INTERNAL


def test_memory_does_not_grow(channel: grpc.Channel) -> None:
    """gRPC's own deserializer would lose 20 kB a message: 12 MB."""
    for _ in range(50):
        send(channel, METHODS[0])
    gc.collect()
    before = resident_mb()
    for _ in range(600):
        send(channel, METHODS[0])
    gc.collect()
    assert resident_mb() - before < 6

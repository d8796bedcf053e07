"""Peer of the local server: answers every Predict with one fixed reply.

It reads the same messages and does no work: what is left is gRPC.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceServicer,
    add_PredictionServiceServicer_to_server,
)


class Echo(PredictionServiceServicer):
    """Gives the same reply to all."""

    def __init__(self, reply: PredictResponse) -> None:
        self._reply = reply

    def Predict(
        self, request: PredictRequest, context: grpc.ServicerContext
    ) -> PredictResponse:
        """Replies."""
        return self._reply


if __name__ == "__main__":
    reply = PredictResponse.FromString(Path(sys.argv[1]).read_bytes())
    server = grpc.server(ThreadPoolExecutor(8))
    add_PredictionServiceServicer_to_server(Echo(reply), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"serving on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()

"""Metrics for Prometheus: requests, their times, and loaded models."""

import time
from typing import Any

from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.serving.model_registry import ModelRegistry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
)

# Upper limits of TF Serving's buckets, in microseconds, up to 25 minutes.
_TF_SERVING_BUCKETS = [10 * 1.8**power for power in range(33)]

_TF_SERVING_COUNT = ":tensorflow:serving:request_count"

_COUNTED = ("Predict", "Embeddings", "Embed", "Rerank")
"""Methods that run a model. The metrics with TF Serving's names count only
these methods."""


class RequestMetrics:
    """Holds the metrics of one server; threads may share the object."""

    def __init__(self, models: ModelRegistry) -> None:
        self._prometheus = import_optional("prometheus_client", "http")
        self._models = models
        # Labels -> two lists: the counters; and pairs (histogram, its units per
        # second, such as 1e6 for microseconds). This cache avoids
        # prometheus-client's slow search for metrics by labels.
        self._by_labels: dict[
            tuple[str, ...], tuple[list[Any], list[tuple[Any, float]]]
        ] = {}
        self._registry = self._prometheus.CollectorRegistry()
        labels = ["protocol", "method", "model", "signature"]
        self._requests = self._prometheus.Counter(
            "lstm_dssm_requests",
            "Requests by gRPC status code.",
            [*labels, "code"],
            registry=self._registry,
        )
        self._seconds = self._prometheus.Histogram(
            "lstm_dssm_request_seconds",
            "Time from a request's start in the server to its reply.",
            labels,
            registry=self._registry,
            buckets=_BUCKETS,
        )
        # The next two metrics have the names of TF Serving's metrics, so that
        # dashboards of TF Serving show them (`servables/tensorflow/util.cc`).
        self._tf_serving_requests = self._prometheus.Counter(
            _TF_SERVING_COUNT,
            "The total number of requests.",
            ["model_name", "status"],
            registry=self._registry,
        )
        self._tf_serving_latency = self._prometheus.Histogram(
            ":tensorflow:serving:request_latency",
            "Distribution of wall time (in microseconds) for Tensorflow "
            "Serving request.",
            ["model_name", "API", "entrypoint"],
            registry=self._registry,
            buckets=_TF_SERVING_BUCKETS,
        )
        # Adds memory, processor time and open files of this process.
        self._prometheus.ProcessCollector(registry=self._registry)
        self._versions = self._prometheus.Gauge(
            "lstm_dssm_model_versions",
            "Versions that are served.",
            ["model"],
            registry=self._registry,
        )
        self._unavailable = self._prometheus.Gauge(
            "lstm_dssm_models_unavailable",
            "Models that should be served and have no version.",
            registry=self._registry,
        )

    def record(
        self,
        protocol: str,
        method: str,
        model: str,
        signature: str,
        code: str,
        start: float,
    ) -> None:
        """Counts a request that began when `time.perf_counter` was `start`."""
        seconds = time.perf_counter() - start
        # Unknown names count as "". Otherwise wrong requests could add time
        # series without a limit.
        model, signature = self._models.known(model, signature)
        if method != "Predict":
            signature = ""
        labels = (protocol, method, model, signature, code)
        if labels not in self._by_labels:
            counters = [self._requests.labels(*labels)]
            timers = [(self._seconds.labels(*labels[:-1]), 1.0)]
            if method in _COUNTED:
                counters.append(self._tf_serving_requests.labels(model, code))
            if method in _COUNTED and code == "OK":
                is_grpc = protocol == "grpc"
                names = (
                    (method, "GRPC") if is_grpc else (method.lower(), "REST")
                )
                latency = self._tf_serving_latency.labels(model, *names)
                timers.append((latency, 1e6))
            self._by_labels[labels] = counters, timers
        counters, timers = self._by_labels[labels]
        for counter in counters:
            counter.inc()
        for histogram, units in timers:
            histogram.observe(units * seconds)

    def text(self) -> bytes:
        """Returns all metrics in Prometheus' text format."""
        for name in self._models.names():
            count = len(self._models.versions(name))
            self._versions.labels(name).set(count)
        self._unavailable.set(len(self._models.unavailable()))
        text = self._prometheus.generate_latest(self._registry)
        # prometheus-client adds _total to this name, but TF Serving does not.
        counter = _TF_SERVING_COUNT.encode()
        return text.replace(counter + b"_total", counter)

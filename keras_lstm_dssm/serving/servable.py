"""Answers requests of the method Predict with a loaded version of a model.

`Servable` holds the version and replays warm-up requests. `SignatureCall`
checks requests and converts messages to arrays and back. The order of checks,
the codes and most messages are TF Serving's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_lstm_dssm.export.graphs.request_limits import refusal
from keras_lstm_dssm.export.graphs.saved_module import SIGNATURE
from keras_lstm_dssm.export.publish.warmup import WARMUP_FILE
from keras_lstm_dssm.serving.saved_models import SavedGraph, SavedSignature
from lstm_dssm_client.grpc_client import has_field, write_tensor


def to_proto(
    values: np.ndarray, proto: TensorProto | None = None
) -> TensorProto:
    """Converts an array to a `TensorProto`; writes to `proto` if given.

    Fills the dtype's field, if any, such as `float_val`, as TF Serving does.
    """
    proto = TensorProto() if proto is None else proto
    if has_field(values):
        write_tensor(values, proto)
    else:
        proto.CopyFrom(tf.make_tensor_proto(values))
    return proto


_MESSAGE_BYTES = 1024  # TF Serving truncates longer messages


class StatusError(Exception):
    """Raised if a call fails, with a gRPC status code and a message."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code, self.details = code, details
        encoded = details.encode()
        if len(encoded) > _MESSAGE_BYTES:
            cut = encoded[:_MESSAGE_BYTES].decode(errors="ignore")
            self.details = f"{cut}...TRUNCATED"


class InvalidError(StatusError):
    """Raised for a wrong request: INVALID_ARGUMENT, 400 over HTTP."""

    def __init__(self, details: str) -> None:
        super().__init__(grpc.StatusCode.INVALID_ARGUMENT, details)


Check = Callable[[Mapping[str, np.ndarray]], None]
"""Function that raises `StatusError` if inputs are too large."""

_DTYPES = set(DataType.values()) - {DataType.DT_INVALID}

CODES = {code.value[0]: code for code in grpc.StatusCode}
"""Value of a status code -> gRPC's status code. TensorFlow's status codes have
the same values."""


class SignatureCall(SavedSignature):
    """Answers Predict with one signature; threads may share the object."""

    def __init__(self, graph: SavedGraph, name: str) -> None:
        super().__init__(graph, name)
        infos = self.definition.inputs
        self._specs = {
            alias: tf.TensorSpec(infos[alias].tensor_shape, infos[alias].dtype)
            for alias in self.inputs
        }
        self.input_dtypes = {
            alias: _cpp_name(spec.dtype.as_datatype_enum)
            for alias, spec in self._specs.items()
        }

    def answer(
        self,
        request: PredictRequest,
        reply: PredictResponse,
        check: Check | None = None,
    ) -> None:
        """Runs the graph and writes the requested outputs into the reply."""
        arrays = self._parse(request.inputs)
        requested = self._requested_outputs(request.output_filter)
        self._check_dtypes_and_shapes(request.inputs, arrays)
        if check is not None:
            check(arrays)
        outputs = self._run(arrays)
        for alias in requested:
            to_proto(outputs[alias], reply.outputs[alias])

    def run_arrays(
        self, inputs: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Runs the graph on arrays of the right dtypes; returns all outputs."""
        for alias, spec in self._specs.items():
            if not spec.shape.is_compatible_with(inputs[alias].shape):
                raise _wrong_shape(alias, spec, inputs[alias].shape)
        return self._run(inputs)

    def _parse(
        self, protos: Mapping[str, TensorProto]
    ) -> dict[str, np.ndarray]:
        """Parses inputs of any dtype; omits inputs whose shape does not fit."""
        specs = self._specs
        if len(protos) != len(specs):
            raise InvalidError(
                f"input size does not match signature: "
                f"{len(protos)}!={len(specs)} "
                f"len({_set(protos)}) != len({_set(specs)}). "
                f"Sent extra: {_set(protos.keys() - specs.keys())}. "
                f"Missing but required: {_set(specs.keys() - protos.keys())}."
            )
        arrays = {}
        for alias, spec in specs.items():
            if alias not in protos:
                feed = self.definition.inputs[alias].name
                raise InvalidError(
                    f"Signature input alias: {alias}(feed name: {feed}) not "
                    "found in request and no default value provided. Inputs "
                    f"expected to be in the request {_set(protos)}, or "
                    "default input alias set: "
                )
            if protos[alias].dtype not in _DTYPES:
                raise InvalidError(f"tensor parsing error: {alias}")
            # Inputs of other shapes are not parsed, because a few bytes can
            # declare a huge tensor.
            if _fits(protos[alias], spec):
                arrays[alias] = _array(alias, protos[alias])
        return arrays

    def _requested_outputs(self, output_filter: Sequence[str]) -> list[str]:
        for index, alias in enumerate(output_filter):
            if alias not in self.outputs:
                raise InvalidError(
                    f"output tensor alias not found in signature: {alias} "
                    "Outputs expected to be in the set "
                    f"{_set(self.outputs)}."
                )
            if alias in output_filter[:index]:
                raise InvalidError(f"duplicate output tensor alias: {alias}")
        return list(output_filter or self.outputs)

    def _check_dtypes_and_shapes(
        self,
        protos: Mapping[str, TensorProto],
        arrays: Mapping[str, np.ndarray],
    ) -> None:
        for index, (alias, spec) in enumerate(self._specs.items()):
            expected = spec.dtype.as_datatype_enum
            if protos[alias].dtype != expected:
                raise InvalidError(
                    f"Expects arg[{index}] to be {_cpp_name(expected)} but "
                    f"{_cpp_name(protos[alias].dtype)} is provided"
                )
        for alias, spec in self._specs.items():
            if alias not in arrays:
                sizes = [dim.size for dim in protos[alias].tensor_shape.dim]
                raise _wrong_shape(alias, spec, sizes)

    def _run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            return self(**inputs)
        except tf.errors.OpError as error:
            details = refusal(error.message)
            raise StatusError(CODES[error.error_code], details) from error


def _wrong_shape(
    alias: str, spec: tf.TensorSpec, sizes: Sequence[int]
) -> StatusError:
    return InvalidError(
        f"input {alias} must have shape {spec.shape}, got {tuple(sizes)}"
    )


def _fits(proto: TensorProto, spec: tf.TensorSpec) -> bool:
    # Sizes below 0 pass here; `_array` refuses them. A tensor without sizes is
    # a scalar, even if `unknown_rank` is set.
    dims = proto.tensor_shape.dim
    sizes = [None if dim.size < 0 else dim.size for dim in dims]
    return spec.shape.is_compatible_with(sizes)


def _array(alias: str, proto: TensorProto) -> np.ndarray:
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.dtype in _FIELDS and not proto.tensor_content:
        field, dtype = _FIELDS[proto.dtype]
        values = getattr(proto, field)
        if sizes == [len(values)]:
            return np.array(list(values), dtype)
    try:
        tensor = tf.io.parse_tensor(
            proto.SerializeToString(), tf.as_dtype(proto.dtype)
        )
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise InvalidError(f"tensor parsing error: {alias}") from error
    if not tensor.dtype.is_numpy_compatible:
        return np.empty(0)  # a resource or variant, which no signature takes
    values = tensor.numpy()
    return np.array(values, object) if isinstance(values, bytes) else values


# `DataType` -> name of the field in a `TensorProto`, and NumPy's dtype. Reading
# these fields takes a tenth of the time of `tf.io.parse_tensor`.
_FIELDS: dict[int, tuple[str, Any]] = {
    DataType.DT_STRING: ("string_val", object),
    DataType.DT_INT32: ("int_val", np.int32),
    DataType.DT_FLOAT: ("float_val", np.float32),
}


def _set(names: Iterable[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def _cpp_name(dtype: int) -> str:
    """Returns the C++ name of a dtype, such as `float` for DT_FLOAT."""
    return DataType.Name(dtype).removeprefix("DT_").lower()


_MAX_RECORDS = 1000  # as in TF Serving


class Servable:
    """Holds a version of a model in memory; threads may share the object."""

    def __init__(self, name: str, version: int, folder: Path) -> None:
        self.name = name
        self.version = version
        graph = SavedGraph(folder)
        self.signature_defs = graph.definitions
        self._calls = {
            key: SignatureCall(graph, key) for key in graph.definitions
        }

    def signature(self, name: str) -> SignatureCall | None:
        """Returns the signature `name` ("": the default), or None."""
        return self._calls.get(name or SIGNATURE)

    def default(self, inputs: Mapping[str, str]) -> SignatureCall | None:
        """Returns the default signature if it has these `inputs`, or None.

        `inputs` maps the name of each input to the input's dtype.
        """
        call = self.signature("")
        return call if call and call.input_dtypes == inputs else None

    def predict(
        self, request: PredictRequest, check: Check | None = None
    ) -> PredictResponse:
        """Runs the requested signature; `check` may refuse the inputs."""
        key = request.model_spec.signature_name or SIGNATURE
        call = self.signature(key)
        if call is None:
            raise StatusError(
                grpc.StatusCode.FAILED_PRECONDITION,
                f'Serving signature key "{key}" not found.',
            )
        reply = PredictResponse()
        reply.model_spec.name = self.name
        reply.model_spec.version.value = self.version
        reply.model_spec.signature_name = key
        call.answer(request, reply, check)
        return reply

    def warm_up(self, folder: Path) -> int:
        """Replays a version's warm-up requests, and returns their number."""
        path = folder / WARMUP_FILE
        if not path.exists():
            return 0
        count = 0
        try:
            for record in tf.data.TFRecordDataset(str(path)):
                if count == _MAX_RECORDS:
                    raise InvalidError(
                        "Number of warmup records exceeds the maximum "
                        f"({_MAX_RECORDS}) at {path}"
                    )
                self._replay(PredictionLog.FromString(record.numpy()))
                count += 1
        except DecodeError as error:
            raise InvalidError(
                f"Failed to parse warmup record from {path}"
            ) from error
        except tf.errors.OpError as error:
            raise StatusError(
                CODES[error.error_code],
                f"{error.message}. Please verify your warmup data is in "
                "TFRecord format.",
            ) from error
        return count

    def _replay(self, log: PredictionLog) -> None:
        kind = log.WhichOneof("log_type")
        if kind == "predict_log":
            self.predict(log.predict_log.request)
        elif kind is not None:
            raise StatusError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"Unsupported log_type for warmup: {kind}",
            )

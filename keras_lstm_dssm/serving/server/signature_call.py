"""Runs one signature of a SavedModel on the tensors of a Predict request."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm.serving.saved_graph import GraphFunction
from keras_lstm_dssm.serving.tensor_protos import to_proto


class StatusError(Exception):
    """Raised if a call fails with a gRPC status.

    Codes and messages are those of TensorFlow Serving, so that a client that
    was tested with this server handles TensorFlow Serving's errors, too.
    docs/local-service.md lists the differences.

    Args:
        code: The status code, for example `grpc.StatusCode.NOT_FOUND`.
        details: The message.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


def invalid_argument(details: str) -> StatusError:
    """Returns a `StatusError` with the code INVALID_ARGUMENT."""
    return StatusError(grpc.StatusCode.INVALID_ARGUMENT, details)


_DTYPES = set(DataType.values()) - {DataType.DT_INVALID}

CODES = {code.value[0]: code for code in grpc.StatusCode}
"""gRPC's status codes by number; TensorFlow's error codes are the same."""


class SignatureCall:
    """Answers Predict with one signature; threads may share it.

    Args:
        definition: The signature's definition in the SavedModel.
        prepare: Returns the signature's function, such as
            `SavedGraph.function`. It is called once, before the first run.

    Attributes:
        input_dtypes: TensorFlow's name of each input's dtype, such as
            `string` or `int32`, by the input's name.
        output_names: The outputs' names, ascending.

    Example:
    >>> graph = SavedGraph("models/query_encoder/1")
    >>> definition = graph.definitions["serving_default"]
    >>> call = SignatureCall(definition, graph.function)
    >>> reply = PredictResponse()
    >>> call(request, reply)
    """

    def __init__(
        self,
        definition: SignatureDef,
        prepare: Callable[[SignatureDef], GraphFunction],
    ) -> None:
        self._definition = definition
        self._prepare, self._preparing = prepare, threading.Lock()
        self._function: GraphFunction | None = None
        # A function orders its inputs and outputs by name.
        self._specs = {
            alias: tf.TensorSpec(info.tensor_shape, info.dtype)
            for alias, info in sorted(definition.inputs.items())
        }
        self.output_names = sorted(definition.outputs)
        self.input_dtypes = {
            alias: _cpp_name(spec.dtype.as_datatype_enum)
            for alias, spec in self._specs.items()
        }

    def __call__(self, request: PredictRequest, reply: PredictResponse) -> None:
        """Runs the graph and writes the requested outputs into the reply.

        The checks are in TF Serving's order: names and contents of the
        inputs, names of the outputs, and last the inputs' dtypes. Shapes
        are checked in addition; in TF Serving the graph fails instead.

        Args:
            request: The inputs by name, and the names of the outputs.
            reply: The message to write the outputs into.

        Raises:
            StatusError: The request does not fit the signature, or the graph
                rejects the values.
        """
        arrays = self._parse(request.inputs)
        wanted = self._wanted(request.output_filter)
        self._check_dtypes_and_shapes(request.inputs, arrays)
        outputs = self._run(arrays)
        for alias in wanted:
            to_proto(outputs[alias], reply.outputs[alias])

    def run_arrays(
        self, inputs: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Runs the graph on arrays, and returns all outputs as arrays.

        Args:
            inputs: An array for each name in `input_dtypes`, of that dtype;
                strings are object arrays of bytes.

        Raises:
            StatusError: A shape does not fit the signature, or the graph
                rejects the values.
        """
        for alias, spec in self._specs.items():
            if not spec.shape.is_compatible_with(inputs[alias].shape):
                raise _wrong_shape(alias, spec, inputs[alias].shape)
        return self._run(inputs)

    def _parse(
        self, protos: Mapping[str, TensorProto]
    ) -> dict[str, np.ndarray]:
        """Parses the inputs whose shapes fit the signature, of any dtype.

        A message of a few bytes can declare a huge shape, so only shapes that
        the signature allows are made into arrays.
        """
        specs = self._specs
        if len(protos) != len(specs):
            raise invalid_argument(
                f"input size does not match signature: "
                f"{len(protos)}!={len(specs)} "
                f"len({_set(protos)}) != len({_set(specs)}). "
                f"Sent extra: {_set(protos.keys() - specs.keys())}. "
                f"Missing but required: {_set(specs.keys() - protos.keys())}."
            )
        arrays = {}
        for alias, spec in specs.items():
            if alias not in protos:
                feed = self._definition.inputs[alias].name
                raise invalid_argument(
                    f"Signature input alias: {alias}(feed name: {feed}) not "
                    "found in request and no default value provided. Inputs "
                    f"expected to be in the request {_set(protos)}, or "
                    "default input alias set: "
                )
            if protos[alias].dtype not in _DTYPES:
                raise invalid_argument(f"tensor parsing error: {alias}")
            if _fits(protos[alias], spec):
                arrays[alias] = _array(alias, protos[alias])
        return arrays

    def _wanted(self, output_filter: Sequence[str]) -> list[str]:
        for index, alias in enumerate(output_filter):
            if alias not in self.output_names:
                raise invalid_argument(
                    f"output tensor alias not found in signature: {alias} "
                    "Outputs expected to be in the set "
                    f"{_set(self.output_names)}."
                )
            if alias in output_filter[:index]:
                raise invalid_argument(
                    f"duplicate output tensor alias: {alias}"
                )
        return list(output_filter or self.output_names)

    def _check_dtypes_and_shapes(
        self,
        protos: Mapping[str, TensorProto],
        arrays: Mapping[str, np.ndarray],
    ) -> None:
        for index, (alias, spec) in enumerate(self._specs.items()):
            expected = spec.dtype.as_datatype_enum
            if protos[alias].dtype != expected:
                raise invalid_argument(
                    f"Expects arg[{index}] to be {_cpp_name(expected)} but "
                    f"{_cpp_name(protos[alias].dtype)} is provided"
                )
        for alias, spec in self._specs.items():
            if alias not in arrays:
                sizes = [dim.size for dim in protos[alias].tensor_shape.dim]
                raise _wrong_shape(alias, spec, sizes)

    def _run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            function = self._function or self._prepared()
            outputs = function(*(inputs[alias] for alias in self._specs))
        except tf.errors.OpError as error:
            raise StatusError(CODES[error.error_code], error.message) from error
        return dict(zip(self.output_names, outputs, strict=True))

    def _prepared(self) -> GraphFunction:
        # Concurrent first runs would each prepare the graph.
        with self._preparing:
            if self._function is None:
                self._function = self._prepare(self._definition)
        return self._function


def _wrong_shape(
    alias: str, spec: tf.TensorSpec, sizes: Sequence[int]
) -> StatusError:
    return invalid_argument(
        f"input {alias} must have shape {spec.shape}, got {tuple(sizes)}"
    )


def _fits(proto: TensorProto, spec: tf.TensorSpec) -> bool:
    # Parsing reports a size below 0 as an error in the message, and does not
    # look at `unknown_rank`: without sizes the tensor is a scalar.
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
        # Parses either form of field, and fewer values than elements.
        tensor = tf.io.parse_tensor(
            proto.SerializeToString(), tf.as_dtype(proto.dtype)
        )
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise invalid_argument(f"tensor parsing error: {alias}") from error
    if not tensor.dtype.is_numpy_compatible:
        return np.empty(0)  # a resource or variant, which no signature takes
    values = tensor.numpy()
    return np.array(values, object) if isinstance(values, bytes) else values


# An array is made of one of these fields in a tenth of the time of others.
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

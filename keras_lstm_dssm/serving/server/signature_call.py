"""One signature of a loaded model: checks a request, runs it, replies."""

import threading
from collections.abc import Iterable, Mapping, Sequence

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm.serving.tensors import to_proto

_LONGEST = 2000


class Fault(Exception):
    """The status of a failed call.

    Codes and messages are those of TensorFlow Serving (`predict_util.cc`,
    `server_core.cc`, `get_model_status_impl.cc`), so that a client tested
    against the local server meets nothing new in production.

    Args:
        code: For example `grpc.StatusCode.NOT_FOUND`.
        details: The message; the first 2,000 bytes of it count.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        # It goes in a header, of 8 KiB at most; each byte may become three.
        details = details.encode()[:_LONGEST].decode(errors="ignore")
        super().__init__(details)
        self.code = code
        self.details = details


def invalid(details: str) -> Fault:
    """Returns the commonest one, INVALID_ARGUMENT."""
    return Fault(grpc.StatusCode.INVALID_ARGUMENT, details)


CODES = {code.value[0]: code for code in grpc.StatusCode}
"""gRPC's status by number; TensorFlow's error codes are the same numbers."""


class SignatureCall:
    """What Predict does with one signature; threads may share it.

    Args:
        function: The signature's function, of a model that stays loaded.

    Example:
    >>> call = SignatureCall(model.signatures["serving_default"])
    >>> reply = PredictResponse()
    >>> call(request, reply)
    """

    def __init__(
        self, function: tf.types.experimental.ConcreteFunction
    ) -> None:
        self._function = function
        # Asked for once: functions are slow to tell. Inputs and outputs of
        # signatures are ordered by name, variables come behind the inputs.
        specs = function.structured_input_signature[1]
        self._specs: dict[str, tf.TensorSpec] = dict(sorted(specs.items()))
        self._variables = list(function.captured_inputs)
        self._known = sorted(function.structured_outputs)
        self._dtypes = [tensor.dtype for tensor in function.outputs]
        self._first, self._ran = threading.Lock(), False

    def __call__(self, request: PredictRequest, reply: PredictResponse) -> None:
        """Runs a request, and writes the outputs asked for into a reply.

        Raises:
            Fault: The request does not fit the signature, or the graph
                refuses the values.
        """
        inputs = self._inputs(request.inputs)
        wanted = self._wanted(request.output_filter)
        try:
            outputs = self._run(inputs)
        except tf.errors.OpError as error:
            raise Fault(CODES[error.error_code], error.message) from error
        for alias in wanted:
            values = outputs[alias].numpy()
            if isinstance(values, bytes):  # a scalar
                values = np.array(values, object)
            to_proto(values, reply.outputs[alias])

    def _run(self, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        if not self._ran:
            # The first run prepares the graph. Threads that came together
            # would all do that, side by side, and take ten times as long.
            with self._first:
                outputs = self._call(inputs)
                self._ran = True
            return outputs
        return self._call(inputs)

    def _call(self, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        # What `self._function(**inputs)` does after a tenth of a millisecond
        # of Python.
        outputs = tf.raw_ops.StatefulPartitionedCall(
            args=[*inputs.values(), *self._variables],
            Tout=self._dtypes,
            f=self._function,
        )
        return dict(zip(self._known, outputs, strict=True))

    def _inputs(
        self, protos: Mapping[str, TensorProto]
    ) -> dict[str, tf.Tensor]:
        specs = self._specs
        if len(protos) != len(specs):
            raise invalid(
                f"input size does not match signature: "
                f"{len(protos)}!={len(specs)} "
                f"len({_set(protos)}) != len({_set(specs)}). "
                f"Sent extra: {_set(protos.keys() - specs.keys())}. "
                f"Missing but required: {_set(specs.keys() - protos.keys())}."
            )
        inputs = {}
        for index, (alias, spec) in enumerate(specs.items()):
            if alias not in protos:
                raise invalid(
                    f"Signature input alias: {alias} not found in request and "
                    "no default value provided. Inputs expected to be in the "
                    f"request {_set(protos)}"
                )
            proto = protos[alias]
            expected = spec.dtype.as_datatype_enum
            if proto.dtype != expected:
                raise invalid(
                    f"Expects arg[{index}] to be {_type_name(expected)} but "
                    f"{_type_name(proto.dtype)} is provided"
                )
            inputs[alias] = _tensor(alias, proto, spec)
        return inputs

    def _wanted(self, output_filter: Sequence[str]) -> list[str]:
        for index, alias in enumerate(output_filter):
            if alias not in self._known:
                raise invalid(
                    f"output tensor alias not found in signature: {alias} "
                    f"Outputs expected to be in the set {_set(self._known)}."
                )
            if alias in output_filter[:index]:
                raise invalid(f"duplicate output tensor alias: {alias}")
        return list(output_filter or self._known)


def _tensor(alias: str, proto: TensorProto, spec: tf.TensorSpec) -> tf.Tensor:
    tensor = _parsed(alias, proto, spec.dtype)
    if not spec.shape.is_compatible_with(tensor.shape):
        raise invalid(
            f"input {alias} must have shape {spec.shape}, got {tensor.shape}"
        )
    return tensor


def _parsed(alias: str, proto: TensorProto, dtype: tf.DType) -> tf.Tensor:
    texts = proto.string_val
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if dtype == tf.string and sizes == [len(texts)]:
        return tf.constant(list(texts), tf.string)  # in a third of the time
    try:
        # In C++, from either form of field, without a NumPy array.
        return tf.io.parse_tensor(proto.SerializeToString(), dtype)
    except tf.errors.OpError as error:
        raise invalid(f"tensor parsing error: {alias}") from error


def _set(names: Iterable[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def _type_name(number: int) -> str:
    """Returns C++'s name of a dtype: `float` for DT_FLOAT."""
    if number not in DataType.values():
        return f"unknown dtype enum ({number})"
    return DataType.Name(number).removeprefix("DT_").lower()

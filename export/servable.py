"""One loaded version of one model, answering Predict."""

from collections.abc import Mapping
from pathlib import Path

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that encoders use)
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.fault import Fault, invalid
from keras_lstm_dssm.export.signatures import signature_defs
from keras_lstm_dssm.export.tensors import to_proto

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Servable:
    """A SavedModel in memory; any number of threads may call `predict`.

    Args:
        name: The model's name.
        version: The version's number.
        folder: The version's folder.

    Raises:
        InputError: TensorFlow cannot load the folder.
    """

    def __init__(self, name: str, version: int, folder: Path) -> None:
        self.name = name
        self.version = version
        self.signature_defs = signature_defs(folder)
        try:
            # Kept, because the functions hold its variables only weakly.
            self._model = tf.saved_model.load(str(folder))
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise InputError(
                f"{folder}: TensorFlow cannot load it: {error}"
            ) from error

    def predict(self, request: PredictRequest) -> PredictResponse:
        """Runs one signature, `serving_default` when none is named.

        Args:
            request: Its inputs are the signature's, by name.

        Returns:
            The outputs asked for (all by default), and the model's name,
            version and signature.

        Raises:
            Fault: The request does not fit the signature, or the graph
                refuses the values.
        """
        key = request.model_spec.signature_name or "serving_default"
        if key not in self._model.signatures:
            raise Fault(
                grpc.StatusCode.FAILED_PRECONDITION,
                f'Serving signature key "{key}" not found.',
            )
        function = self._model.signatures[key]
        inputs = _inputs(function, request.inputs)
        wanted = _wanted(function, request.output_filter)
        try:
            outputs = function(**inputs)
        except tf.errors.OpError as error:
            raise Fault(_CODES[error.error_code], error.message) from error
        reply = PredictResponse()
        reply.model_spec.name = self.name
        reply.model_spec.version.value = self.version
        reply.model_spec.signature_name = key
        for alias in wanted:
            reply.outputs[alias].CopyFrom(to_proto(outputs[alias].numpy()))
        return reply


def _inputs(
    function: tf.types.experimental.ConcreteFunction,
    protos: Mapping[str, TensorProto],
) -> dict[str, tf.Tensor]:
    _, specs = function.structured_input_signature
    if len(protos) != len(specs):
        raise invalid(
            f"input size does not match signature: "
            f"{len(protos)}!={len(specs)} "
            f"len({_set(protos)}) != len({_set(specs)}). "
            f"Sent extra: {_set(protos.keys() - specs.keys())}. "
            f"Missing but required: {_set(specs.keys() - protos.keys())}."
        )
    inputs = {}
    for index, (alias, spec) in enumerate(sorted(specs.items())):
        if alias not in protos:
            raise invalid(
                f"Signature input alias: {alias} not found in request and no "
                "default value provided. Inputs expected to be in the "
                f"request {_set(protos)}"
            )
        proto = protos[alias]
        if proto.dtype != spec.dtype.as_datatype_enum:
            raise invalid(
                f"Expects arg[{index}] to be "
                f"{_type_name(spec.dtype.as_datatype_enum)} but "
                f"{_type_name(proto.dtype)} is provided"
            )
        try:
            # In C++, from either form of field, without a NumPy array.
            tensor = tf.io.parse_tensor(proto.SerializeToString(), spec.dtype)
        except tf.errors.InvalidArgumentError as error:
            raise invalid(f"tensor parsing error: {alias}") from error
        if not spec.shape.is_compatible_with(tensor.shape):
            raise invalid(
                f"input {alias} must have shape {spec.shape}, "
                f"got {tensor.shape}"
            )
        inputs[alias] = tensor
    return inputs


def _wanted(
    function: tf.types.experimental.ConcreteFunction,
    output_filter: list[str],
) -> list[str]:
    known = function.structured_outputs
    for index, alias in enumerate(output_filter):
        if alias not in known:
            raise invalid(
                f"output tensor alias not found in signature: {alias} "
                f"Outputs expected to be in the set {_set(known)}."
            )
        if alias in output_filter[:index]:
            raise invalid(f"duplicate output tensor alias: {alias}")
    return list(output_filter or known)


def _set(names: Mapping | set[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def _type_name(number: int) -> str:
    """Returns C++'s name of a dtype: `float` for DT_FLOAT."""
    return DataType.Name(number).removeprefix("DT_").lower()

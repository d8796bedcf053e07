"""Describes the models of a registry: their versions and signatures."""

import grpc
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataResponse,
    SignatureDefMap,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.serving.server.model_registry import ModelRegistry
from keras_lstm_dssm.serving.server.signature_call import StatusError


def model_metadata(
    models: ModelRegistry, spec: ModelSpec
) -> GetModelMetadataResponse:
    """Returns the signatures of a model.

    Raises:
        StatusError: See `ModelRegistry.find`.
    """
    servable = models.find(spec)
    reply = GetModelMetadataResponse()
    reply.model_spec.name = servable.name
    reply.model_spec.version.value = servable.version
    reply.metadata["signature_def"].Pack(
        SignatureDefMap(signature_def=servable.signature_defs)
    )
    return reply


def model_status(
    models: ModelRegistry, spec: ModelSpec
) -> GetModelStatusResponse:
    """Returns the state of each version of a model, or of one version.

    Raises:
        StatusError: There is no such model or version (NOT_FOUND).
    """
    states = models.states(spec.name)
    missing = f"Could not find any versions of model {spec.name}"
    if spec.HasField("version"):  # TF Serving ignores a label here, too
        wanted = spec.version.value
        states = {v: s for v, s in states.items() if v == wanted}
        missing = f"Could not find version {wanted} of model {spec.name}"
    if not states:
        raise StatusError(grpc.StatusCode.NOT_FOUND, missing)
    reply = GetModelStatusResponse()
    for version, (state, code, message) in states.items():
        status = reply.model_version_status.add(version=version, state=state)
        status.status.error_code = code
        status.status.error_message = message
    return reply

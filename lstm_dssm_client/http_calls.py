"""Makes the requests of a client over HTTP, in TF Serving's REST form.

Source: https://www.tensorflow.org/tfx/serving/api_rest
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from lstm_dssm_client.calls import (
    ATTEMPTS,
    Calls,
    Known,
    TextCalls,
    checked_version,
)
from lstm_dssm_client.errors import InputError, ServingError
from lstm_dssm_client.results import Prediction, Version, VersionStatus
from lstm_dssm_client.signatures import (
    DEFAULT,
    PREDICT,
    Output,
    Signature,
    TensorInfo,
    check_rows,
    dtype_name,
)

_DTYPES = {"float": "float32", "double": "float64", "half": "float16"}
"""NumPy's names of TensorFlow's dtypes, where they differ."""


class HttpRequest(NamedTuple):
    """Holds one request.

    Attributes:
        path: The path and, after it, what is asked for.
        model: The model's name, for errors.
        body: The body of a POST, as JSON; None for a GET.
    """

    path: str
    model: str
    body: bytes | None = None


class HttpCalls(TextCalls):
    """Makes the calls of one client; each request is an `HttpRequest`.

    The reply that is sent back is the value of its JSON.
    """

    def predict(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Calls[Prediction]:
        """Runs one request; see `TextClient.predict`."""
        key = signature or DEFAULT
        arrays = {name: np.asarray(values) for name, values in inputs.items()}
        body = json.dumps(
            {
                "signature_name": key,
                "inputs": {
                    name: _json_values(name, values)
                    for name, values in arrays.items()
                },
            }
        ).encode()
        path = _model_path(model, version)
        yield from self.check_fit(model, arrays, version, signature)
        reply = yield HttpRequest(f"{path}:predict", model, body)
        known = self._known[model, version].signatures.get(key)
        if known is None or not _names_fit(reply, known):
            # Another version has begun to answer.
            known = (yield from self.current(model, version))[key]
        found = _outputs(model, reply, known)
        wanted = list(outputs)
        return Prediction(
            model,
            version if isinstance(version, int) else None,
            key,
            {n: v for n, v in found.items() if n in wanted or not wanted},
        )

    def _of_one_version(
        self,
        model: str,
        chunks: Sequence[dict[str, np.ndarray]],
        output: Output,
        version: Version,
    ) -> Calls[np.ndarray]:
        """Returns an output for all chunks, of one version.

        A reply does not name its version. So several requests ask for the
        version by its number, and if it is unloaded meanwhile, all of them
        are sent again to the next one.
        """
        if len(chunks) == 1 or isinstance(version, int):
            return (
                yield from super()._of_one_version(
                    model, chunks, output, version
                )
            )
        for attempt in range(ATTEMPTS):
            yield from self.signatures(model, version)
            number = self._known[model, version].version
            try:
                return (
                    yield from super()._of_one_version(
                        model, chunks, output, number
                    )
                )
            except ServingError as error:
                gone = error.code is HTTPStatus.NOT_FOUND
                if not gone or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def signatures(
        self, model: str, version: Version
    ) -> Calls[dict[str, Signature]]:
        """Reads a model's inputs and outputs; see `HttpClient.signatures`."""
        path = _model_path(model, version)
        reply = yield HttpRequest(f"{path}/metadata", model)
        try:
            number = int(reply["model_spec"]["version"])
            defs = reply["metadata"]["signature_def"]["signature_def"]
            by_name = {
                name: Signature(
                    _specs(value.get("inputs", {})),
                    _specs(value.get("outputs", {})),
                )
                for name, value in sorted(defs.items())
                if value.get("method_name") == PREDICT
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _no_serving(model, "metadata") from error
        self._known[model, version] = Known(number, by_name)
        return by_name

    def status(self, model: str) -> Calls[dict[int, VersionStatus]]:
        """Reads the states of a model's versions; see `TextClient.status`."""
        reply = yield HttpRequest(_model_path(model, None), model)
        try:
            return {
                int(each["version"]): VersionStatus(
                    each["state"],
                    each["status"]["error_code"],
                    each["status"]["error_message"],
                )
                for each in reply["model_version_status"]
            }
        except (KeyError, TypeError, ValueError) as error:
            raise _no_serving(model, "status") from error


def _model_path(model: str, version: Version) -> str:
    """Returns the path of a model's version."""
    path = f"/v1/models/{quote(model, safe='')}"
    if isinstance(version, str):
        return f"{path}/labels/{quote(version, safe='')}"
    if version is None:
        return path
    return f"{path}/versions/{checked_version(version)}"


def _json_values(name: str, values: np.ndarray) -> Any:
    """Returns an input as nested lists; bytes become text, or base64.

    Raises:
        InputError: There are no rows, or values other than numbers and bytes.
    """
    check_rows(name, values)
    if dtype_name(values) == "string":
        flat = [_json_text(name, value) for value in values.ravel().tolist()]
        return _nested(flat, values.shape)
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"input {name!r} is {values.dtype}; expected an array of numbers,"
            " or of bytes for strings"
        )
    return values.tolist()


def _json_text(name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        raise InputError(
            f"input {name!r} has {value!r:.60}; expected an array of numbers,"
            " or of bytes for strings"
        )
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """Returns a flat list as nested lists of a shape."""
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat if shape else flat[0]


def _names_fit(reply: Any, signature: Signature) -> bool:
    if not isinstance(reply, dict) or "outputs" not in reply:
        return True  # an error of its own
    if len(signature.outputs) == 1:
        return not isinstance(reply["outputs"], dict)
    found = reply["outputs"]
    return isinstance(found, dict) and found.keys() == signature.outputs.keys()


def _outputs(
    model: str, reply: Any, signature: Signature
) -> dict[str, np.ndarray]:
    """Returns the outputs in a reply, of the signature's dtypes.

    The only output of a signature is not named in the reply.
    """
    try:
        values = reply["outputs"]
        if len(signature.outputs) == 1:
            values = {next(iter(signature.outputs)): values}
        return {
            name: _array(values[name], spec)
            for name, spec in signature.outputs.items()
        }
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _no_serving(model, "reply") from error


def _array(values: Any, spec: TensorInfo) -> np.ndarray:
    if spec.dtype == "string":
        array = np.array(_bytes(values), object)
    else:
        array = np.array(values, spec.dtype)
    rank = None if spec.shape is None else len(spec.shape)
    if array.ndim == 1 and rank == 2 and not array.size:
        return array.reshape(0, 0)
    return array


def _bytes(values: Any) -> Any:
    """Returns nested lists of texts with each text as bytes."""
    if isinstance(values, list):
        return [_bytes(value) for value in values]
    if isinstance(values, dict):
        return base64.b64decode(values["b64"], validate=True)
    if not isinstance(values, str):
        raise ValueError("a text is missing")
    return values.encode("utf-8", "surrogatepass")


def _specs(infos: Mapping[str, Any]) -> dict[str, TensorInfo]:
    """Returns the tensors of a signature, from the metadata."""
    specs = {}
    for name, info in sorted(infos.items()):
        dtype = info["dtype"].removeprefix("DT_").lower()
        shape = info["tensor_shape"]
        sizes = tuple(int(each["size"]) for each in shape.get("dim", []))
        specs[name] = TensorInfo(
            _DTYPES.get(dtype, dtype),
            None
            if shape.get("unknown_rank", False)
            else tuple(None if size < 0 else size for size in sizes),
        )
    return specs


def _no_serving(model: str, what: str) -> InputError:
    return InputError(
        f"model {model}: the {what} is not in TF Serving's form; give the"
        " address of its REST interface, such as http://127.0.0.1:8501"
    )

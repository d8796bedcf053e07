"""Runs a SavedModel through TensorFlow's C API, without its Python.

A script, started by `agreement.run_in_cpp`. It reads the job as JSON from
standard input and writes the outputs of each run, model by model, as JSON to
standard output.
The C API's loader is the one that TF Serving uses.

Source: tensorflow/c/c_api.h, tf_tensor.h, tf_tstring.h
"""

import ctypes
import json
import math
import sys
from collections.abc import Sequence
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np

NUMBERS = {1: "float32", 3: "int32"}
INT32, STRING = 3, 7
# sizeof(TF_TString) on 64-bit machines.
STRING_BYTES = 24


class Output(ctypes.Structure):
    """TF_Output: one output of one operation of the graph."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


class Library:
    """The C API, with a status that ends the process when it is not OK."""

    def __init__(self, folder: str) -> None:
        # The .so files of TF.Text find their symbols among the global ones.
        for name in ("framework", "cc"):
            path = f"{folder}/libtensorflow_{name}.so.2"
            self.api = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        self.api.TF_Dim.restype = c_int64
        self.api.TF_TensorByteSize.restype = c_size_t
        self.api.TF_StringGetSize.restype = c_size_t
        self.status = self.pointer("TF_NewStatus")

    def pointer(self, name: str, *arguments: Any) -> c_void_p:
        """Calls a function that returns a pointer."""
        function = getattr(self.api, name)
        function.restype = c_void_p
        return c_void_p(function(*arguments))

    def checked(self, name: str, *arguments: Any) -> c_void_p:
        """Calls a function whose last parameter is the status."""
        result = self.pointer(name, *arguments, self.status)
        if self.api.TF_GetCode(self.status):
            self.api.TF_Message.restype = c_char_p
            lines = self.api.TF_Message(self.status).decode().split("\n")
            message = " ".join(lines)  # one line, as `run_in_cpp` reads
            code = self.api.TF_GetCode(self.status)
            sys.exit(f"{name}: code {code}: {message}")
        return result


def to_tensor(library: Library, values: list) -> c_void_p:
    """Returns a TF_Tensor [batch]: int32, or strings, also when empty."""
    shape = (c_int64 * 1)(len(values))
    numbers = values and isinstance(values[0], int)
    dtype, each = (INT32, 4) if numbers else (STRING, STRING_BYTES)
    tensor = library.pointer(
        "TF_AllocateTensor", dtype, shape, 1, c_size_t(len(values) * each)
    )
    first = library.pointer("TF_TensorData", tensor).value or 0
    if numbers:
        ctypes.memmove(
            first, (ctypes.c_int32 * len(values))(*values), 4 * len(values)
        )
        return tensor
    for index, value in enumerate(values):
        place = c_void_p(first + index * STRING_BYTES)
        text = value.encode("latin-1")
        library.api.TF_StringInit(place)
        library.api.TF_StringCopy(place, text, c_size_t(len(text)))
    return tensor


def to_json(library: Library, tensor: c_void_p) -> dict[str, Any]:
    """Returns a TF_Tensor's values, flat, with their dtype and shape."""
    shape = [
        library.api.TF_Dim(tensor, axis)
        for axis in range(library.api.TF_NumDims(tensor))
    ]
    data = library.pointer("TF_TensorData", tensor)
    dtype = library.api.TF_TensorType(tensor)
    if dtype == STRING:
        values = [
            string(library, c_void_p((data.value or 0) + index * STRING_BYTES))
            for index in range(math.prod(shape))
        ]
        return {"dtype": "object", "shape": shape, "values": values}
    raw = ctypes.string_at(data, library.api.TF_TensorByteSize(tensor))
    numbers = np.frombuffer(raw, NUMBERS[dtype]).tolist()
    return {"dtype": NUMBERS[dtype], "shape": shape, "values": numbers}


def string(library: Library, place: c_void_p) -> str:
    """Returns a TF_TString's bytes, as latin-1."""
    data = library.pointer("TF_StringGetDataPointer", place)
    size = library.api.TF_StringGetSize(place)
    return ctypes.string_at(data, size).decode("latin-1")


def endpoints(library: Library, graph: c_void_p, names: Sequence[str]) -> Any:
    """Returns the TF_Outputs of tensors' names, such as `text:0`."""
    found = []
    for name in names:
        operation, index = name.rsplit(":", 1)
        pointer = library.pointer(
            "TF_GraphOperationByName", graph, operation.encode()
        )
        found.append(Output(pointer, int(index)))
    return (Output * len(found))(*found)


def run(
    library: Library, session: c_void_p, graph: c_void_p,
    inputs: dict[str, list], outputs: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    """Feeds tensors by name and fetches others; by alias, see `to_json`."""
    feeds = [to_tensor(library, values) for values in inputs.values()]
    fetches = (c_void_p * len(outputs))()
    library.checked(
        "TF_SessionRun", session, None,
        endpoints(library, graph, list(inputs)),
        (c_void_p * len(feeds))(*feeds), len(feeds),
        endpoints(library, graph, list(outputs.values())),
        fetches, len(outputs), None, 0, None,
    )  # fmt: skip
    return {
        alias: to_json(library, c_void_p(tensor))
        for alias, tensor in zip(outputs, fetches, strict=True)
    }


def run_model(
    library: Library, saved_model: str, runs: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Loads a SavedModel and runs it with each of some inputs."""
    graph = library.pointer("TF_NewGraph")
    session = library.checked(
        "TF_LoadSessionFromSavedModel",
        library.pointer("TF_NewSessionOptions"), None,
        saved_model.encode(), (c_char_p * 1)(b"serve"), 1, graph, None,
    )  # fmt: skip
    return [run(library, session, graph, **tensors) for tensors in runs]


def main() -> None:
    """Reads the job, runs it, writes the outputs."""
    job = json.load(sys.stdin)
    library = Library(job["tensorflow"])
    for path in job["op_libraries"]:
        library.checked("TF_LoadLibrary", path.encode())
    models = [run_model(library, **model) for model in job["models"]]
    json.dump(models, sys.stdout)


if __name__ == "__main__":
    main()

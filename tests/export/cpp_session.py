"""Runs a SavedModel through TensorFlow's C API, without its Python.

A script, started by `cpp_loader.run_in_cpp`. It reads the job as JSON from
standard input and writes the output tensor as .npy to standard output. The
C API's loader is the one that TF Serving uses.

Source: tensorflow/c/c_api.h, tf_tensor.h, tf_tstring.h
"""

import ctypes
import json
import sys
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np

FLOAT, STRING = 1, 7
# sizeof(TF_TString) on 64-bit machines.
STRING_BYTES = 24


class Output(ctypes.Structure):
    """TF_Output: one output of one operation of the graph."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


class Library:
    """The C API, with a status that ends the process when it is not OK."""

    def __init__(self, folder: str) -> None:
        # The .so files of TF.Text find their symbols among the global ones.
        ctypes.CDLL(
            f"{folder}/libtensorflow_framework.so.2", ctypes.RTLD_GLOBAL
        )
        self.api = ctypes.CDLL(
            f"{folder}/libtensorflow_cc.so.2", ctypes.RTLD_GLOBAL
        )
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
            message = self.api.TF_Message(self.status).decode()
            code = self.api.TF_GetCode(self.status)
            sys.exit(f"{name}: code {code}: {message}")
        return result


def string_tensor(library: Library, texts: list[bytes]) -> c_void_p:
    """Returns a TF_Tensor, string [batch]."""
    shape = (c_int64 * 1)(len(texts))
    size = c_size_t(len(texts) * STRING_BYTES)
    tensor = library.pointer("TF_AllocateTensor", STRING, shape, 1, size)
    first = library.pointer("TF_TensorData", tensor).value or 0
    for index, text in enumerate(texts):
        place = c_void_p(first + index * STRING_BYTES)
        library.api.TF_StringInit(place)
        library.api.TF_StringCopy(place, text, c_size_t(len(text)))
    return tensor


def float_array(library: Library, tensor: c_void_p) -> np.ndarray:
    """Returns a copy of a TF_Tensor's values, float32."""
    if library.api.TF_TensorType(tensor) != FLOAT:
        sys.exit("the output is not float32")
    library.api.TF_Dim.restype = c_int64
    shape = [
        library.api.TF_Dim(tensor, axis)
        for axis in range(library.api.TF_NumDims(tensor))
    ]
    library.api.TF_TensorByteSize.restype = c_size_t
    values = ctypes.string_at(
        library.pointer("TF_TensorData", tensor),
        library.api.TF_TensorByteSize(tensor),
    )
    return np.frombuffer(values, np.float32).reshape(shape)


def endpoint(library: Library, graph: c_void_p, name: str) -> Any:
    """Returns the TF_Output of a tensor's name, such as `text:0`."""
    operation, index = name.rsplit(":", 1)
    found = library.pointer(
        "TF_GraphOperationByName", graph, operation.encode()
    )
    return (Output * 1)(Output(found, int(index)))


def main() -> None:
    """Loads, feeds and runs."""
    job = json.load(sys.stdin)
    library = Library(job["tensorflow"])
    for path in job["op_libraries"]:
        library.checked("TF_LoadLibrary", path.encode())
    graph = library.pointer("TF_NewGraph")
    session = library.checked(
        "TF_LoadSessionFromSavedModel",
        library.pointer("TF_NewSessionOptions"),
        None,
        job["saved_model"].encode(),
        (c_char_p * 1)(b"serve"),
        1,
        graph,
        None,
    )
    texts = [text.encode("latin-1") for text in job["texts"]]
    feeds = (c_void_p * 1)(string_tensor(library, texts))
    fetches = (c_void_p * 1)()
    library.checked(
        "TF_SessionRun",
        *(session, None),
        *(endpoint(library, graph, job["input"]), feeds, 1),
        *(endpoint(library, graph, job["output"]), byref(fetches), 1),
        *(None, 0, None),
    )
    np.save(sys.stdout.buffer, float_array(library, c_void_p(fetches[0])))


if __name__ == "__main__":
    main()

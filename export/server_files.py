"""What TF Serving needs beside the models: configuration and a README.

Source: https://www.tensorflow.org/tfx/serving/serving_config
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import (
    ModelConfig,
    ModelConfigList,
    ModelServerConfig,
)

from keras_lstm_dssm.export.signatures import signature_defs, signatures
from keras_lstm_dssm.export.versions import model_folders, version_folders
from keras_lstm_dssm.files import replacing

# The newest server. Those from 2.12 on load the models too; their Unicode
# tables are older.
_IMAGE = "tensorflow/serving:2.20.0"

# Requests that arrive within a millisecond run together. Batches are padded
# to one of few sizes, the last of which must be the maximum.
_BATCHING = """\
max_batch_size { value: 512 }
batch_timeout_micros { value: 1000 }
max_enqueued_batches { value: 100 }
num_batch_threads { value: 2 }
allowed_batch_sizes: 1
allowed_batch_sizes: 8
allowed_batch_sizes: 64
allowed_batch_sizes: 512
"""

_README = """\
# Models for TensorFlow Serving

| model | signature | inputs | outputs |
| --- | --- | --- | --- |
{table}

Rows of `text` are UTF-8 strings. The newest version of each model is served.

## Start a server

In this folder, gRPC on port 8500 and REST on 8501:

```sh
docker run --rm -p 8500:8500 -p 8501:8501 -v "$PWD:{root}:ro" {image} \\
  --model_config_file={root}/models.config \\
  --enable_batching --batching_parameters_file={root}/batching.config
```

Without a container, where `tensorflow_model_server` (2.12 or newer) is
installed:

```sh
sed "s|{root}/|$PWD/|" models.config > /tmp/models.config
tensorflow_model_server --port=8500 --rest_api_port=8501 \\
  --model_config_file=/tmp/models.config \\
  --enable_batching --batching_parameters_file="$PWD/batching.config"
```

For a trial, without TensorFlow Serving: `lstm-dssm-serve --models=.`

## Ask it

gRPC:

```python
from keras_lstm_dssm.export.client import Client

with Client("127.0.0.1:8500") as client:
{calls}
```

REST:

```sh
{curls}
```
"""


def write_server_files(
    models_dir: str | os.PathLike[str], root: str = "/models"
) -> None:
    """Writes `models.config`, `batching.config` and `README.md`.

    Args:
        models_dir: A folder with models, `NAME/NUMBER/saved_model.pb`.
        root: Where the server sees the folder; TF Serving takes absolute
            paths only.

    Raises:
        InputError: There is no model in the folder.

    Example:
        >>> write_server_files("models")
        >>> print(Path("models/models.config").read_text())
        model_config_list {
          config {
            name: "query_encoder"
            base_path: "/models/query_encoder"
            model_platform: "tensorflow"
          }
        }
    """
    models_dir = Path(models_dir)
    folders = model_folders(models_dir)
    for name, content in (
        ("models.config", _models_config(folders, root)),
        ("batching.config", _BATCHING),
        ("README.md", _readme(folders, root)),
    ):
        with replacing(models_dir / name) as partial:
            partial.write_text(content, encoding="utf-8")


def _models_config(names: Iterable[str], root: str) -> str:
    configs = [
        ModelConfig(
            name=name, base_path=f"{root}/{name}", model_platform="tensorflow"
        )
        for name in names
    ]
    return text_format.MessageToString(
        ModelServerConfig(model_config_list=ModelConfigList(config=configs))
    )


def _readme(folders: Mapping[str, Path], root: str) -> str:
    table, calls, curls = [], [], []
    for name, base in folders.items():
        newest = list(version_folders(base).values())[-1]
        (key, signature), *_ = signatures(signature_defs(newest)).items()
        inputs, outputs = map(_cell, signature)
        table.append(f"| `{name}` | `{key}` | {inputs} | {outputs} |")
        ranks = "k" in signature.inputs
        result, method, k = (
            ("hits", "search", ", k=5") if ranks else ("vectors", "encode", "")
        )
        calls.append(
            f'    {result} = client.{method}(["bolt"]{k}, model="{name}")'
        )
        k = ', "k": [5]' if ranks else ""
        curls.append(
            f"curl http://127.0.0.1:8501/v1/models/{name}:predict \\\n"
            f'  -d \'{{"inputs": {{"text": ["bolt"]{k}}}}}\''
        )
    return _README.format(
        table="\n".join(table),
        calls="\n".join(calls),
        curls="\n".join(curls),
        image=_IMAGE,
        root=root,
    )


def _cell(specs: Mapping[str, tf.TensorSpec]) -> str:
    """Returns one cell of the table: "`text` string [batch]"."""
    parts = []
    for alias, spec in specs.items():
        sizes = ["any" if size is None else str(size) for size in spec.shape]
        sizes[:1] = ["batch"]
        parts.append(f"`{alias}` {spec.dtype.name} [{', '.join(sizes)}]")
    return ", ".join(parts)

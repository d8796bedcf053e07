"""The README that lies beside exported models, for the server's operator."""

import math
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from keras_lstm_dssm.export.model_versions import version_folders
from keras_lstm_dssm.export.signatures import signature_defs, signatures
from keras_lstm_dssm.export.warmup import BATCH_SIZES

# The newest server. Those from 2.12 on load the models too; their Unicode
# tables are older.
_IMAGE = "tensorflow/serving:2.20.0"

# A string that is held in a tensor, beside its own bytes.
_STRING_BYTES = 24

_README = """\
# Models for TensorFlow Serving

| model | signature | inputs | outputs |
| --- | --- | --- | --- |
{table}

Rows of `text` are UTF-8 strings, at most {rows} in a request to a server that
batches. The newest version of each model is served, unless `models.config`
says otherwise: it and `batching.config` are yours to edit, and later exports
leave alone what they find in them.

## Start a server

In this folder, gRPC on port 8500 and REST on 8501:

```sh
docker run --rm -p 8500:8500 -p 8501:8501 -v "$PWD:{root}:ro" {image} \\
  --model_config_file={root}/models.config \\
  --model_config_file_poll_wait_seconds=10 \\
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

Each version brings requests that the server replays before it serves the
version (`assets.extra/tf_serving_warmup_requests`).

## Which server

| TensorFlow Serving | TF.Text in it | Unicode tables |
| --- | --- | --- |
| before 2.12 | lacks ops of these models | |
| 2.12 to 2.19 | 2.12.1 | ICU 64 |
| 2.20 | 2.20.0 | ICU 77 |

Letters that are younger than a server's tables are neither folded nor
unified there; all other text has the same vector on each of them.

## Memory

| model | version | in memory |
| --- | --- | --- |
{memory}

Together {total}, and {twice} while new versions of all replace the old ones,
because a server loads the new one first. The server itself and the requests
come on top.

## Ask it

gRPC:

```python
from keras_lstm_dssm.serving.client.grpc_clients import Client

with Client("127.0.0.1:8500") as client:
{calls}
```

REST:

```sh
{curls}
```
"""


def server_readme(folders: Mapping[str, Path], root: str) -> str:
    """Writes what an operator needs to know of some models.

    Args:
        folders: Model name to folder, each with at least one version.
        root: Where the server sees the folder of them all.
    """
    table, memory, calls, curls, total = [], [], [], [], 0
    for name, base in folders.items():
        number, newest = list(version_folders(base).items())[-1]
        size = memory_bytes(newest)
        total += size
        memory.append(f"| `{name}` | {number} | {_megabytes(size)} |")
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
        memory="\n".join(memory),
        total=_megabytes(total),
        twice=_megabytes(2 * total),
        calls="\n".join(calls),
        curls="\n".join(curls),
        image=_IMAGE,
        root=root,
        rows=BATCH_SIZES[-1],
    )


def memory_bytes(version: Path) -> int:
    """Returns what a version's variables take in memory, from its files.

    Args:
        version: The version's folder.
    """
    variables = version / "variables"
    if not (variables / "variables.index").exists():
        return 0
    reader = tf.train.load_checkpoint(str(variables / "variables"))
    dtypes = reader.get_variable_to_dtype_map()
    strings = sum(
        math.prod(shape)
        for key, shape in reader.get_variable_to_shape_map().items()
        if dtypes[key] == tf.string
    )
    files = variables.glob("variables.data-*")
    return sum(f.stat().st_size for f in files) + _STRING_BYTES * strings


def _megabytes(size: int) -> str:
    return f"{max(size / 1e6, 0.1):,.1f} MB"


def _cell(specs: Mapping[str, tf.TensorSpec]) -> str:
    """Returns one cell of the table: "`text` string [batch]"."""
    parts = []
    for alias, spec in specs.items():
        sizes = ["any" if size is None else str(size) for size in spec.shape]
        sizes[:1] = ["batch"]
        parts.append(f"`{alias}` {spec.dtype.name} [{', '.join(sizes)}]")
    return ", ".join(parts)

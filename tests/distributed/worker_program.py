"""lstm-dssm-train as one of the two workers that TF_CONFIG names, without Ray.

`python -m tests.distributed.worker_program FLAGS`; the same command goes on
with a run that exists, as Ray does when it starts lost workers again."""

import sys
from pathlib import Path
from typing import Any

from keras_lstm_dssm.distributed import on_ray
from keras_lstm_dssm.distributed.worker import train_worker
from keras_lstm_dssm.tools import train


def train_here(
    output: Path, config: Any, *, cpus: int, save_minutes: float, **_: Any
) -> None:
    """Takes the place of `train_on_ray`, whose workers call `train_worker`."""
    train_worker(str(output), config, save_minutes, cpus)


if __name__ == "__main__":
    on_ray.train_on_ray = train_here
    flags = ["--workers=2", "--worker_cpus=1", *sys.argv[1:]]
    sys.exit(train.program.run(["train", *flags]))

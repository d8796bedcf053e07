#!/usr/bin/env bash
# ray 2.60.0 with pyarrow, pandas and others of its extra train; Python 3.11, Linux; run on 2026-11-28.
# A function is trained by `ray.train.tensorflow.TensorflowTrainer`. TensorFlow has
# Keras 3 since version 2.16, and the documentation of Ray does not tell of Keras 2.
# Expected: a worker has the environment of the driver, and TF_CONFIG.
# Seen: each worker also has TF_USE_LEGACY_KERAS=1. There `tf.keras` is the package
# tf-keras; where that is not installed, `tf.keras` raises ImportError in the workers
# only, though the driver set no such variable.
# Exit code: 0 while this is so, 1 if it has changed, 2 if the set-up failed.
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work" || exit 2
python3 -m venv env || exit 2
env/bin/pip install --quiet "ray[train]" ray==2.60.0 || exit 2
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cat > check.py <<'END'
import os
import sys
import tempfile

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.tensorflow import TensorflowTrainer


def loop(settings):
    with open(settings["file"], "w") as file:
        file.write(str(os.environ.get("TF_USE_LEGACY_KERAS")))


os.environ.pop("TF_USE_LEGACY_KERAS", None)
ray.init(num_cpus=2, log_to_driver=False)
folder = tempfile.mkdtemp(dir=os.getcwd())
path = os.path.join(folder, "legacy")
TensorflowTrainer(
    loop,
    train_loop_config={"file": path},
    scaling_config=ScalingConfig(num_workers=1),
    run_config=RunConfig(storage_path=folder),
).fit()
legacy = open(path).read()
print("TF_USE_LEGACY_KERAS of the worker:", legacy, "of the driver: None")
sys.exit(legacy != "1")
END
env/bin/python check.py
